// Session: runs subgraphs of a graph, keeps variables between runs.
#ifndef WEIR_CORE_SESSION_SESSION_H_
#define WEIR_CORE_SESSION_SESSION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/config/config.h"
#include "core/graph/graph.h"
#include "core/kernel/resource.h"
#include "core/place/explanation.h"
#include "core/session/memory_report.h"
#include "core/session/runtime.h"
#include "core/tensor/tensor.h"
#include "core/trace/span.h"

namespace weir::place {
struct PlaceOptions;
}  // namespace weir::place

namespace weir::session {

struct SessionOptions {
  bool allow_soft_placement = true;
  /// Writes "name: (Op): device" for every node that runs need, once, and again where a later plan moves it. Nodes that
  /// are fed or folded away have the device that they ask for, else the host's.
  bool log_device_placement = false;
  /// Where these lines, the one-line summary of every plan and the placer's warnings go, each a call with whole lines.
  /// Empty: to standard error, at once; summaries of several devices only, and each text once.
  std::function<void(const std::string& lines)> placement_log = {};
  /// A file that the same is appended to and flushed, instead of standard error; empty = none.
  std::string placement_log_file = {};
  /// Algorithm, pins and the like; null = the defaults. The two options above and `default_device` take precedence.
  std::shared_ptr<const place::PlaceOptions> placement = {};
  /// Checks after cutting a step that each node is where the placement put it.
  bool verify_placement = true;
  /// Device for nodes that ask for none, as "GPU:0"; empty = the placer's choice.
  std::string default_device = {};
  bool constant_folding = true;
  bool common_subexpressions = true;
  /// One op for several where a device has a kernel for it (core/fuse).
  bool fusion = true;
  /// Ops of one step that may run at once; 0 = as many as the process has CPUs, less = one, on the caller's thread.
  int inter_op_parallelism_threads = 0;
  /// Threads that one op may use; 0 or less = as many as the process has CPUs.
  int intra_op_parallelism_threads = 0;
  /// Every run of a program gives the same bits: random ops need seeds, and kernels that cannot promise it decline.
  bool deterministic = false;
  /// Limit of every run that states none itself; 0 or less = none.
  int64_t operation_timeout_in_ms = 0;
  /// A calibration file (core/kernel/calibration.h) by which kernels are chosen; empty = by declared costs.
  std::string profile_file = {};
  /// Results larger than this and than their operands are not folded.
  uint64_t max_folded_bytes = 10u << 20;
  /// Where variables live; null = a scope of this session's own.
  std::shared_ptr<kernel::ResourceScope> resources = {};
};

/// A device as TensorFlow's clients list it.
struct DeviceAttributes {
  std::string name;  // full
  std::string device_type;
  uint64_t memory_limit_bytes = 0;  // 0 = the plugin does not say
};

/// What there is, from the plugin folders to what a session runs on.
struct DeviceReport {
  std::vector<std::string> compiled;  // plugins in the folders, whether they load here or not
  std::vector<std::string> loaded;    // those of them that did
  std::vector<std::string> visible;   // devices that the configuration leaves
  std::vector<std::string> used;      // devices that have run nodes of this session
};

/// Where a node runs, and why: "cost", "requested", "only device", … (place::Reason).
struct PlacedNode {
  std::string node;
  std::string op;
  std::string device;  // full name
  std::string reason;
};
using Placement = std::vector<PlacedNode>;
/// A line for each node: "y (Square): /job:localhost/replica:0/task:0/device:CPU:0  only device".
std::string ToText(const Placement& placement);
/// A list of objects with the keys of `weir explain --json`: name, op, device and reason.
std::string ToJson(const Placement& placement);

/// The devices that sessions of the runtime see; opens none.
std::vector<DeviceAttributes> ListDevices(const Runtime& runtime);

using Feed = std::pair<std::string, Tensor>;

/// What a prepared call feeds, fetches and runs, by tensor and node names.
struct CallableOptions {
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
};

using CallableHandle = int64_t;

/// What one compiled run looks like; for tests and `weir run`. A run replaces all of it.
struct RunReport {
  std::map<std::string, int> placement;     // device name -> nodes
  std::vector<std::string> executed_nodes;  // in tape order; only when RunOptions::collect_nodes
  int instructions = 0;
  uint64_t arena_bytes = 0;
  uint64_t live_bytes = 0;                    // of them in use at once, at most, when ops run one after the other
  trace::StepTrace trace;                     // only when RunOptions::trace, also of a run that fails
  std::vector<std::string> partition_graphs;  // serialized GraphDefs; only when RunOptions::output_partition_graphs
};

struct RunOptions {
  bool collect_nodes = false;
  /// DeadlineExceeded when the step takes longer; 0 = the session's operation_timeout_in_ms.
  int64_t timeout_in_ms = 0;
  /// Records in RunReport::trace when each op ran.
  bool trace = false;
  /// Writes to RunReport::partition_graphs what each device got of the step.
  bool output_partition_graphs = false;
  /// Ends the step at the first op that gives a NaN or an infinity: InvalidArgument naming the op, its device, where it
  /// was defined, and what its inputs were like. Nothing is folded then (a callable's plan excepted), and each value is
  /// read once more.
  bool check_numerics = false;
  /// -1 runs one op after the other; 0 as the session does. InvalidArgument for any other.
  int inter_op_thread_pool = 0;
  /// Cancelled when it becomes true; outlives the run.
  const std::atomic<bool>* cancelled = nullptr;
};

/// Thread-safe: runs may be concurrent. The graph is borrowed and may grow between runs (the session looks at its node
/// count); it must not change during one.
class Session {
 public:
  /// FailedPrecondition naming the folders searched when there is no device at all.
  static Result<std::unique_ptr<Session>> Make(std::shared_ptr<Runtime> runtime, const graph::Graph& graph,
                                               SessionOptions options = {});
  ~Session();

  /// Runs what `fetches` ("name:0", "name") and `targets` need. Fetched tensors are on the host, in order, and outlive
  /// the session; no run changes them. A fetched feed or constant is a copy of that tensor (core/tensor/tensor.h).
  /// Errors carry TensorFlow's codes and texts, and the node.
  Result<std::vector<Tensor>> Run(std::span<const Feed> feeds, std::span<const std::string> fetches,
                                  std::span<const std::string> targets, const RunOptions& options = {},
                                  RunReport* report = nullptr);

  /// The same through a handle that skips name look-ups.
  Result<CallableHandle> MakeCallable(const CallableOptions& options);
  /// `feeds` in the callable's order; the result replaces `fetches`.
  Status RunCallable(CallableHandle handle, std::span<const Tensor> feeds, std::vector<Tensor>* fetches,
                     const RunOptions& options = {}, RunReport* report = nullptr);
  /// Running calls go on.
  Status ReleaseCallable(CallableHandle handle);

  /// Prepares a run in parts, whose every op runs at most once over all parts. Gives a handle that names feeds, fetches
  /// and targets. ResourceExhausted when 1024 such runs have begun and not ended.
  Result<std::string> PRunSetup(std::span<const std::string> feeds, std::span<const std::string> fetches,
                                std::span<const std::string> targets);
  /// The next part: runs what the feeds given so far allow. InvalidArgument with TensorFlow's texts for feeds and
  /// fetches that the setup does not name, that came before, or that cannot be computed yet, and for feeds of another
  /// type or shape. The run ends when all is fed and fetched, and at any other error.
  Result<std::vector<Tensor>> PRun(const std::string& handle, std::span<const Feed> feeds,
                                   std::span<const std::string> fetches);

  /// Later runs fail with Cancelled "Session has been closed."; running ones end with Cancelled soon, none is waited
  /// for. Plans and, unless SessionOptions::resources has them, variables go with the last run. Twice is no error.
  Status Close();
  /// Forgets what the named containers hold ("localhost", the default one, when none is named) in all sessions of this
  /// process, and closes these, as TensorFlow's. Unimplemented for a `target` other than "" and "local".
  static Status Reset(const std::string& target = {}, const std::vector<std::string>& containers = {});
  /// Which device such a run would give each node and why, with all candidates; runs nothing.
  Result<place::Explanation> ExplainPlacement(std::span<const Feed> feeds, std::span<const std::string> fetches,
                                              std::span<const std::string> targets);
  /// Where the nodes are that this session has run, each as the latest plan with it has it.
  Placement ReportPlacement() const;
  /// The devices of the runtime; opens none.
  std::vector<DeviceAttributes> ListDevices() const;
  DeviceReport ReportDevices() const;
  /// What this session holds on each device, and what is left there.
  MemoryReport ReportMemory() const;
  const std::shared_ptr<kernel::ResourceScope>& resources() const;

 private:
  class Impl;
  explicit Session(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_SESSION_H_
