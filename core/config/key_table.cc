// The rows of the schema.
#include "core/config/key_table_internal.h"

#include <charconv>
#include <utility>

namespace weir::config {
namespace {

constexpr double kMaxInt32 = 2147483647;
constexpr double kMaxInt64 = 9.2e18;
constexpr double kMaxMb = 1e12;
constexpr double kAny = std::numeric_limits<double>::infinity();

// The index was checked by the caller.
VirtualDevices& Entry(std::vector<VirtualDevices>& list, const std::string& index) {
  size_t i = 0;
  std::from_chars(index.data(), index.data() + index.size(), i);
  if (list.size() <= i) list.resize(i + 1);
  return list[i];
}

// Set the effect of a row.
Key Hint(Key key) {
  key.effect = Effect::kHint;
  return key;
}
Key NotYet(Key key) {
  key.effect = Effect::kNotYet;
  return key;
}
Key OneOf(std::vector<std::string_view> choices, Key key) {
  key.choices = std::move(choices);
  return key;
}
Key NamesPlace(Key key) {
  key.names_place = true;
  return key;
}
Key Of(Star star, Key key) {
  key.star = star;
  return key;
}

#define WEIR_FIELD(member) [](Config& c, [[maybe_unused]] const Path& p) -> Field { return &c.member; }
#define WEIR_VIRTUAL(member) \
  [](Config& c, const Path& p) -> Field { return &Entry(c.gpu_options.experimental.virtual_devices, p[3]).member; }

std::vector<Key> SessionKeys() {
  return {
      {"allow_soft_placement",
       "A node whose device is missing or has no kernel for it runs elsewhere; false makes it an error.",
       WEIR_FIELD(allow_soft_placement)},
      {"log_device_placement", "Print one line per node with the device that runs it.",
       WEIR_FIELD(log_device_placement)},
      {"inter_op_parallelism_threads",
       "Threads that run nodes of one session in parallel. 0: one per core. Negative: the caller's thread only.",
       WEIR_FIELD(inter_op_parallelism_threads)},
      {"intra_op_parallelism_threads", "Threads that share the work of one node. 0 or less: one per core.",
       WEIR_FIELD(intra_op_parallelism_threads)},
      {"deterministic",
       "Equal programs give equal bits. A random op without a seed, or an op without a deterministic kernel, is an "
       "error.",
       WEIR_FIELD(deterministic)},
      {"operation_timeout_in_ms",
       "A step that takes longer fails with DEADLINE_EXCEEDED. 0 or less: no limit. A limit of the run overrides it.",
       WEIR_FIELD(operation_timeout_in_ms)},
      Hint({"use_per_session_threads", "The process has one pool, with a cap per session.",
            WEIR_FIELD(use_per_session_threads)}),
      {"isolate_session_state",
       "A session on a server has variables of its own. Others share those of the server's tasks.",
       WEIR_FIELD(isolate_session_state)},
      {"placement_period", "As placement.replace_period, which wins. Negative: 0.", WEIR_FIELD(placement_period)},
      {"device_filters",
       "Devices of other tasks visible to a session, as partial names: [\"/job:ps\"]. Those of its own task always "
       "are.",
       WEIR_FIELD(device_filters)},
      {"device_count.*",
       "Maximum number of devices of a type in a session. More CPUs than exist: the CPU is split into that many.",
       [](Config& c, const Path& p) -> Field { return &c.device_count[p[1]]; }, 0, 1024},
  };
}

std::vector<Key> GpuKeys() {
  return {
      {"gpu_options.per_process_gpu_memory_fraction",
       "Maximum share of a device's memory that weir uses. 0: all. Above 1 only with unified memory.",
       WEIR_FIELD(gpu_options.per_process_gpu_memory_fraction), 0, 1024},
      {"gpu_options.allow_growth", "Allocate memory on demand, instead of all of it at the first use.",
       WEIR_FIELD(gpu_options.allow_growth)},
      {"gpu_options.visible_device_list",
       "GPUs to use, as comma-separated indices or uids, numbered in this order: \"1,0\". \"\": all.",
       WEIR_FIELD(gpu_options.visible_device_list)},
      Hint(OneOf({"", "BFC"}, {"gpu_options.allocator_type", "weir has one allocator, the best-fit arena.",
                               WEIR_FIELD(gpu_options.allocator_type)})),
      Hint({"gpu_options.deferred_deletion_bytes", "Chunks are always freed at once.",
            WEIR_FIELD(gpu_options.deferred_deletion_bytes)}),
      Hint({"gpu_options.polling_active_delay_usecs", "Nothing polls.",
            WEIR_FIELD(gpu_options.polling_active_delay_usecs)}),
      Hint({"gpu_options.polling_inactive_delay_msecs", "Nothing polls.",
            WEIR_FIELD(gpu_options.polling_inactive_delay_msecs)}),
      Hint({"gpu_options.force_gpu_compatible", "Host memory is chosen for each transfer.",
            WEIR_FIELD(gpu_options.force_gpu_compatible)}),
      {"gpu_options.experimental.use_unified_memory", "Allow a memory fraction above 1 on devices with unified memory.",
       WEIR_FIELD(gpu_options.experimental.use_unified_memory)},
      Hint({"gpu_options.experimental.num_dev_to_dev_copy_streams", "Plugins choose their own streams.",
            WEIR_FIELD(gpu_options.experimental.num_dev_to_dev_copy_streams)}),
      Of(Star::kIndex,
         {"gpu_options.experimental.virtual_devices.*.memory_limit_mb",
          "Splits the visible GPU at this position of the list into logical devices with these limits in MiB.",
          WEIR_VIRTUAL(memory_limit_mb), 1.0 / 1048576, kMaxMb}),
      NotYet(Of(Star::kIndex,
                {"gpu_options.experimental.virtual_devices.*.priority",
                 "Priorities of the streams of the logical devices.", WEIR_VIRTUAL(priority), -kMaxInt32, kMaxInt32})),
      NotYet(Of(Star::kIndex, {"gpu_options.experimental.virtual_devices.*.device_ordinal",
                               "Numbers of the logical devices.", WEIR_VIRTUAL(device_ordinal), 0, kMaxInt32})),
  };
}

std::vector<Key> GraphKeys() {
  const std::vector<std::string_view> toggles = {"DEFAULT", "ON", "OFF", "AGGRESSIVE"};
  return {
      OneOf({"L1", "L0"},
            {"graph_options.optimizer_options.opt_level",
             "L1: fold constants, merge equal nodes, fuse ops. L0: only the optimisations of the two keys below.",
             WEIR_FIELD(graph_options.optimizer_options.opt_level)}),
      {"graph_options.optimizer_options.do_constant_folding",
       "Compute nodes that depend only on constants before the run.",
       WEIR_FIELD(graph_options.optimizer_options.do_constant_folding)},
      {"graph_options.optimizer_options.do_common_subexpression_elimination", "Merge equal stateless nodes.",
       WEIR_FIELD(graph_options.optimizer_options.do_common_subexpression_elimination)},
      {"graph_options.optimizer_options.max_folded_constant_in_bytes",
       "Results larger than this and larger than their operands are not folded. 0 or less: 10 MiB.",
       WEIR_FIELD(graph_options.optimizer_options.max_folded_constant_in_bytes)},
      Hint({"graph_options.optimizer_options.do_function_inlining", "Functions are always inlined.",
            WEIR_FIELD(graph_options.optimizer_options.do_function_inlining)}),
      Hint(OneOf({"DEFAULT", "OFF", "ON_1", "ON_2"},
                 {"graph_options.optimizer_options.global_jit_level", "weir has no XLA.",
                  WEIR_FIELD(graph_options.optimizer_options.global_jit_level)})),
      OneOf(toggles, {"graph_options.rewrite_options.constant_folding", "OFF: fold no constants at any level.",
                      WEIR_FIELD(graph_options.rewrite_options.constant_folding)}),
      OneOf(toggles, {"graph_options.rewrite_options.common_subgraph_elimination", "OFF: merge no nodes at any level.",
                      WEIR_FIELD(graph_options.rewrite_options.common_subgraph_elimination)}),
      OneOf(toggles, {"graph_options.rewrite_options.remapping", "OFF: fuse no ops at any level.",
                      WEIR_FIELD(graph_options.rewrite_options.remapping)}),
      {"graph_options.enable_recv_scheduling",
       "Run nodes, receives among them, as late as their users allow: less memory, but less runs at the same time.",
       WEIR_FIELD(graph_options.enable_recv_scheduling)},
      Hint({"graph_options.infer_shapes", "Shapes are always inferred.", WEIR_FIELD(graph_options.infer_shapes)}),
      Hint({"graph_options.place_pruned_graph", "Only the nodes of a run are placed, in any case.",
            WEIR_FIELD(graph_options.place_pruned_graph)}),
      {"graph_options.enable_bfloat16_sendrecv",
       "Send float32 values between devices as their upper 16 bits; the receiver's lower bits are 0.",
       WEIR_FIELD(graph_options.enable_bfloat16_sendrecv)},
      NotYet({"graph_options.build_cost_model", "Return the costs of nodes once in this number of steps.",
              WEIR_FIELD(graph_options.build_cost_model), 0, kMaxInt64}),
      NotYet({"graph_options.build_cost_model_after", "Steps before costs are first returned.",
              WEIR_FIELD(graph_options.build_cost_model_after), 0, kMaxInt64}),
      NotYet({"graph_options.timeline_step", "Record a timeline once in this number of steps.",
              WEIR_FIELD(graph_options.timeline_step), 0, kMaxInt32}),
  };
}

std::vector<Key> PlacementKeys() {
  return {
      OneOf({"costsim", "whitepaper", "tf", "single", "file"},
            {"placement.algorithm",
             "costsim: by simulated cost. whitepaper: the greedy algorithm of the 2015 paper. tf: TensorFlow's. "
             "single: the best single device. file: as placement.file says, and by cost where it says nothing.",
             WEIR_FIELD(placement.algorithm)}),
      OneOf({"keep", "ignore"},
            {"placement.graph_devices", "keep: honour the device fields of graphs. ignore: ignore them.",
             WEIR_FIELD(placement.graph_devices)}),
      NamesPlace({"placement.file",
                  "A placement (JSON): {\"nodes\": {\"NAME\": \"/device:GPU:0\"}}, or the output of weir explain "
                  "--json. costsim tries it in addition to its own plans.",
                  WEIR_FIELD(placement.file)}),
      OneOf({"none", "summary", "all"},
            {"placement.explain",
             "Report on each placement. none: warnings only. summary: one line, on standard error only if there are "
             "several devices or the log level is info. all: every node with the cost of each device, as weir explain "
             "shows.",
             WEIR_FIELD(placement.explain)}),
      NamesPlace({"placement.explain_file",
                  "File to which these reports are appended. \"\": placement.log_file, or standard error.",
                  WEIR_FIELD(placement.explain_file)}),
      NamesPlace({"placement.log_file",
                  "File for the lines of log_device_placement, the placer's warnings and one summary per plan, instead "
                  "of standard error. Each line is flushed.",
                  WEIR_FIELD(placement.log_file)}),
      {"placement.unknown_dim", "Assumed extent of unknown dimensions.", WEIR_FIELD(placement.unknown_dim), 1, 1e9},
      NamesPlace({"placement.profile",
                  "Measured times of kernels. auto: those of weir profile on this machine; off; or a file.",
                  WEIR_FIELD(placement.profile)}),
      {"placement.max_devices",
       "Maximum number of devices of a plan by cost, where kernels and requests allow. 0: all.",
       WEIR_FIELD(placement.max_devices), 0, 4096},
      {"placement.strict_devices", "Fail if a node would run on another type of device than requested.",
       WEIR_FIELD(placement.strict_devices)},
      {"placement.verify", "After partitioning, check that each node is on its planned device.",
       WEIR_FIELD(placement.verify)},
      {"placement.refine_iterations", "Most simulations for improving the best plan. 0: none.",
       WEIR_FIELD(placement.refine_iterations), 0, kMaxInt32},
      {"placement.replace_period",
       "Measure a step and place it again after this number of runs of it, and at later powers of two of that number. "
       "0: never. TensorFlow's placement_period sets it too.",
       WEIR_FIELD(placement.replace_period), 0, kMaxInt64},
      {"placement.replace_moves_state", "Placing again may choose other devices for variables, which then move there.",
       WEIR_FIELD(placement.replace_moves_state)},
      {"placement.min_gain", "Minimum gain, as a share of the predicted time, for using a new placement.",
       WEIR_FIELD(placement.min_gain), 0, 1},
      {"placement.pin.*",
       "Device of all nodes with a matching name, overriding the graph; the longest matching pattern wins.",
       [](Config& c, const Path& p) -> Field { return &c.placement.pin[p[2]]; }},
      {"placement.alias.*",
       "A device type that stands for several devices: requests for it go to the first that exists and has a kernel.",
       [](Config& c, const Path& p) -> Field { return &c.placement.alias[p[2]]; }},
  };
}

#define WEIR_DEVICE(member) [](Config& c, const Path& p) -> Field { return &c.device[p[1]].member; }
#define WEIR_LINK(member) [](Config& c, const Path& p) -> Field { return &c.link[p[1]].member; }

Key DeviceKey(std::string_view path, std::string_view doc, Field (*field)(Config&, const Path&), double maximum) {
  return Of(Star::kDevice, {path, doc, field, 0, maximum});
}

std::vector<Key> DeviceKeys() {
  return {
      DeviceKey("device.*.memory_fraction", "Like per_process_gpu_memory_fraction, for this device. 0: use that key.",
                WEIR_DEVICE(memory_fraction), 1024),
      DeviceKey("device.*.memory_limit_mb",
                "Limit in MiB; the lowest of limit, fraction and actual memory applies. 0: none. Fetched copies of "
                "variables belong to the caller and do not count.",
                WEIR_DEVICE(memory_limit_mb), kMaxMb),
      DeviceKey("device.*.initial_memory_mb", "Initial size of a growing arena in MiB. 0: 1.",
                WEIR_DEVICE(initial_memory_mb), kMaxMb),
      DeviceKey("device.*.allow_growth", "Like gpu_options.allow_growth, for this device.", WEIR_DEVICE(allow_growth),
                kAny),
      DeviceKey("device.*.virtual_memory_limit_mb",
                "Splits this physical device into logical devices with these limits in MiB.",
                WEIR_DEVICE(virtual_memory_limit_mb), kMaxMb),
      DeviceKey("device.*.enabled", "Treat an opt-in device like any other device.", WEIR_DEVICE(enabled), kAny),
      DeviceKey("device.*.mem_gbps", "Memory bandwidth in GB/s. 0: the plugin's value.", WEIR_DEVICE(mem_gbps), 1e9),
      DeviceKey("device.*.launch_us", "Launch time of a kernel in us. 0: the plugin's value.", WEIR_DEVICE(launch_us),
                1e9),
      DeviceKey(
          "device.*.peak_gflops.*", "Peak by element type: f64, f32, f16, bf16, i8, …",
          [](Config& c, const Path& p) -> Field { return &c.device[p[1]].peak_gflops[p[3]]; }, 1e12),
      DeviceKey("device.*.visible_device_list", "Like gpu_options.visible_device_list, for a device type.",
                WEIR_DEVICE(visible_device_list), kAny),
      Of(Star::kLink, {"link.*.latency_us", "Time of an empty transfer in us. 0: the plugin's value.",
                       WEIR_LINK(latency_us), 0, 1e9}),
      Of(Star::kLink, {"link.*.gbps", "Bandwidth in GB/s. 0: the plugin's value.", WEIR_LINK(gbps), 0, 1e9}),
  };
}

std::vector<Key> PluginsKeys() {
  return {
      NamesPlace({"plugins.folders", "Plugin folders (absolute), searched before the default one.",
                  WEIR_FIELD(plugins.folders)}),
      {"plugins.deny", "Names of plugins to ignore.", WEIR_FIELD(plugins.deny)},
      {"plugins.strict", "A plugin that is refused or hangs is an error, unless deny names it.",
       WEIR_FIELD(plugins.strict)},
      {"plugins.time_limit_ms",
       "Time limit for loading a plugin, for its enumeration of devices, and for compiling a region; beyond it the "
       "plugin counts as hung.",
       WEIR_FIELD(plugins.time_limit_ms), 1, kMaxInt32},
      {"plugins.open_limit_ms",
       "Time limit for opening a device on its first use; beyond it steps that use the device fail.",
       WEIR_FIELD(plugins.open_limit_ms), 1, kMaxInt32},
      {"plugins.cancel_limit_ms",
       "Time limit for ops and devices to finish after their step was cancelled; beyond it the step returns, and they "
       "count as lost.",
       WEIR_FIELD(plugins.cancel_limit_ms), 0, kMaxInt32},
      OneOf({"auto", "on", "off"},
            {"plugins.compile_regions",
             "Regions of ops that compilers take when a plan is made. auto: where the gain of many runs repays it; on: "
             "all that they claim. Never with fusion off.",
             WEIR_FIELD(plugins.compile_regions)}),
      {"plugins.keep_regions", "Keep compiled regions in the user's cache folder.", WEIR_FIELD(plugins.keep_regions)},
      {"plugins.probe",
       "First load each file in a separate process, once per file and contents; a file that crashes there is ignored.",
       WEIR_FIELD(plugins.probe)},
      OneOf({"auto", "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"},
            {"plugins.isa",
             "Highest instruction set of plugins, for equal bits on different machines. auto: the CPU's own.",
             WEIR_FIELD(plugins.isa)}),
  };
}

std::vector<Key> ClusterKeys() {
  return {
      {"cluster.spec",
       "Jobs and the addresses of their tasks: \"ps=h1:2222;h2:2222,worker=h3:2222\". \"\": as the launcher says "
       "(TF_CONFIG, Slurm, mpirun, torchrun, Kubernetes), else this task alone. As all keys here: of servers.",
       WEIR_FIELD(cluster.spec)},
      {"cluster.job", "The job of this task. \"\": the only one.", WEIR_FIELD(cluster.job)},
      {"cluster.task", "The number of this task in its job. -1: the only one.", WEIR_FIELD(cluster.task), -1,
       kMaxInt32},
      {"cluster.name", "Tasks and clients that both have a name connect only if it is the same.",
       WEIR_FIELD(cluster.name)},
      {"cluster.roles", "Jobs of ranks where a launcher says only those: \"ps=2,worker=*\". \"\": all are workers.",
       WEIR_FIELD(cluster.roles)},
      {"cluster.listen",
       "Address for tasks and for clients with weir://. Port 0: the system chooses. \"\": that of this task in the "
       "cluster, else 127.0.0.1:0.",
       WEIR_FIELD(cluster.listen)},
      {"cluster.grpc", "Address for TensorFlow's clients, with grpc://. \"\": none.", WEIR_FIELD(cluster.grpc)},
      {"cluster.status", "Address for a status page, health and metrics over HTTP, on this machine. \"\": none.",
       WEIR_FIELD(cluster.status)},
      {"cluster.devices", "Devices that this task offers, as partial names: [\"CPU\", \"GPU:1\"]. []: all.",
       WEIR_FIELD(cluster.devices)},
      NamesPlace({"cluster.token_file",
                  "File with the secret that tasks and clients share; others must not be able to read it. \"\": none.",
                  WEIR_FIELD(cluster.token_file)}),
      NamesPlace({"cluster.tls_certificate", "PEM file with the certificate of this task. \"\": no TLS.",
                  WEIR_FIELD(cluster.tls_certificate)}),
      NamesPlace({"cluster.tls_key", "PEM file with its private key.", WEIR_FIELD(cluster.tls_key)}),
      NamesPlace({"cluster.tls_authorities", "PEM file with the certificates that sign those of peers.",
                  WEIR_FIELD(cluster.tls_authorities)}),
      {"cluster.insecure_listen", "Allow connections from other machines without a token and TLS.",
       WEIR_FIELD(cluster.insecure_listen)},
      {"cluster.exit_when_done",
       "The server ends with status 0 when another task ends the job; a task alone when its last session was closed.",
       WEIR_FIELD(cluster.exit_when_done)},
      {"cluster.peer_timeout_ms", "Silence after which a peer counts as lost.", WEIR_FIELD(cluster.peer_timeout_ms),
       100, kMaxInt32},
      {"cluster.creation_limit_ms", "Time that a client waits for the start of its session at a server.",
       WEIR_FIELD(cluster.creation_limit_ms), 1, kMaxInt32},
      {"cluster.drain_limit_ms", "Time that steps under way have to end when the server is told to stop.",
       WEIR_FIELD(cluster.drain_limit_ms), 0, kMaxInt32},
      {"cluster.remote_devices",
       "Addresses of servers whose devices sessions of this process (target \"\") use beside their own: "
       "[\"host:port\"]. Those of the first are /job:remote/task:0/…; nodes go there by cost, or by name.",
       WEIR_FIELD(cluster.remote_devices)},
      {"cluster.required_devices", "As remote_devices, and after them; without one of these no session begins.",
       WEIR_FIELD(cluster.required_devices)},
      {"cluster.remote_own_cpu",
       "Nodes without a request may also go to the CPU of a server at a loopback address, which is this machine's.",
       WEIR_FIELD(cluster.remote_own_cpu)},
      {"cluster.remote_limit_ms", "Time for a connection to such a server and its first answers.",
       WEIR_FIELD(cluster.remote_limit_ms), 1, kMaxInt32},
  };
}

#undef WEIR_LINK
#undef WEIR_DEVICE
#undef WEIR_VIRTUAL
#undef WEIR_FIELD

}  // namespace

std::vector<Key> MakeKeyTable() {
  std::vector<Key> table;
  for (const auto& rows : {SessionKeys(), GpuKeys(), GraphKeys(), PlacementKeys(), DeviceKeys(), PluginsKeys(),
                          ClusterKeys()}) {
    table.insert(table.end(), rows.begin(), rows.end());
  }
  return table;
}

}  // namespace weir::config
