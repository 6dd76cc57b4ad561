// What weir can be told: ConfigProto's fields under their names, and weir's own tables beside them.
#ifndef WEIR_CORE_CONFIG_CONFIG_H_
#define WEIR_CORE_CONFIG_CONFIG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/member.h"
#include "core/config/value.h"

namespace weir::config {

// Each field is one key; what it means, its range and whether it has an effect stand in the table of schema.cc, and for
// users in config/weir.toml. The values here are the defaults. Of a list, an entry of a map and a device's or link's
// figure, one that is empty or 0 says nothing; device_count is an exception.

/// One physical device cut into logical ones: as many as there are limits.
struct VirtualDevices {
  std::vector<double> memory_limit_mb = {};
  std::vector<double> priority = {};
  std::vector<double> device_ordinal = {};
};

struct GpuOptionsExperimental {
  /// For the visible devices in order.
  std::vector<VirtualDevices> virtual_devices = {};
  Member<bool> use_unified_memory = {};
  Member<int32_t> num_dev_to_dev_copy_streams = {};
};

struct GpuOptions {
  Member<double> per_process_gpu_memory_fraction = {};
  Member<std::string> allocator_type = {};
  Member<int64_t> deferred_deletion_bytes = {};
  Member<bool> allow_growth = {};
  Member<std::string> visible_device_list = {};
  Member<int32_t> polling_active_delay_usecs = {};
  Member<int32_t> polling_inactive_delay_msecs = {};
  Member<bool> force_gpu_compatible = {};
  GpuOptionsExperimental experimental = {};
};

struct OptimizerOptions {
  Member<bool> do_common_subexpression_elimination = {};
  Member<bool> do_constant_folding = {};
  Member<std::string> opt_level = {kUnset, "L1"};
  Member<bool> do_function_inlining = {};
  Member<std::string> global_jit_level = {kUnset, "DEFAULT"};
  Member<int64_t> max_folded_constant_in_bytes = {};
};

struct RewriterConfig {
  Member<std::string> constant_folding = {kUnset, "DEFAULT"};
  Member<std::string> common_subgraph_elimination = {kUnset, "DEFAULT"};
  Member<std::string> remapping = {kUnset, "DEFAULT"};
};

struct GraphOptions {
  Member<bool> enable_recv_scheduling = {};
  OptimizerOptions optimizer_options = {};
  Member<int64_t> build_cost_model = {};
  Member<bool> infer_shapes = {};
  Member<bool> place_pruned_graph = {};
  Member<bool> enable_bfloat16_sendrecv = {};
  Member<int32_t> timeline_step = {};
  Member<int64_t> build_cost_model_after = {};
  RewriterConfig rewrite_options = {};
};

/// Read by the placer.
struct PlacementConfig {
  Member<std::string> algorithm = {kUnset, "costsim"};
  Member<std::string> graph_devices = {kUnset, "keep"};
  Member<std::string> file = {};
  Member<std::string> explain = {kUnset, "summary"};
  Member<std::string> explain_file = {};
  Member<std::string> log_file = {};
  Member<int64_t> refine_iterations = {kUnset, 2000};
  Member<int64_t> unknown_dim = {kUnset, 32};
  Member<int64_t> replace_period = {};
  Member<bool> replace_moves_state = {};
  Member<double> min_gain = {kUnset, 0.05};
  Member<std::string> profile = {kUnset, "off"};
  Member<int32_t> max_devices = {};
  Member<bool> strict_devices = {};
  Member<bool> verify = {kUnset, true};
  /// Node name pattern (RE2) -> device; the longest pattern that matches wins.
  std::map<std::string, std::string> pin = {};
};

/// `[device."GPU:0"]`, or of all devices of a kind as `[device.GPU]`. Absent or 0 = as the plugin and gpu_options say.
struct DeviceConfig {
  /// By the short name of an element type: "f32".
  std::map<std::string, double> peak_gflops = {};
  double mem_gbps = 0;
  double launch_us = 0;
  double memory_fraction = 0;
  double memory_limit_mb = 0;
  double initial_memory_mb = 0;
  std::optional<bool> allow_growth = {};
  std::vector<double> virtual_memory_limit_mb = {};
  std::string visible_device_list = {};
  bool enabled = false;
};

/// `[link."CPU:0->GPU:0"]`: what the placer believes of a link instead of the plugin's figures. 0 = the plugin's.
struct LinkConfig {
  double latency_us = 0;
  double gbps = 0;
};

/// `[plugins]`: which files are loaded.
struct PluginsConfig {
  std::vector<std::string> folders = {};
  std::vector<std::string> deny = {};
  Member<bool> strict = {};
  Member<bool> probe = {};
  Member<std::string> isa = {kUnset, "auto"};
  Member<int32_t> time_limit_ms = {kUnset, 10000};
  Member<int32_t> open_limit_ms = {kUnset, 60000};
};

/// A key of `[plugin.NAME]`; its type is known to the plugin only.
struct PluginSetting {
  Given given = {};
  Origin origin = {};
};

/// Everything. A copyable value.
struct Config {
  std::map<std::string, int32_t> device_count = {};
  Member<int32_t> intra_op_parallelism_threads = {};
  Member<int32_t> placement_period = {};
  std::vector<std::string> device_filters = {};
  Member<int32_t> inter_op_parallelism_threads = {};
  GpuOptions gpu_options = {};
  Member<bool> allow_soft_placement = {kUnset, true};
  Member<bool> log_device_placement = {};
  Member<bool> use_per_session_threads = {};
  GraphOptions graph_options = {};
  Member<int64_t> operation_timeout_in_ms = {};
  Member<bool> isolate_session_state = {};

  Member<bool> deterministic = {};
  PlacementConfig placement = {};
  std::map<std::string, DeviceConfig> device = {};
  std::map<std::string, LinkConfig> link = {};
  PluginsConfig plugins = {};
  /// Plugin -> key -> setting.
  std::map<std::string, std::map<std::string, PluginSetting>> plugin = {};

  /// Variables whose names begin with WEIR_ and that are no key of weir's: WEIR_<PLUGIN>_<KEY> sets a plugin's option.
  std::map<std::string, std::string> environment = {};
  /// Where each key that somebody set came from, by its text (`gpu_options.allow_growth`).
  std::map<std::string, Origin> origins = {};

  /// "weir.toml:12: gpu_options.allow_growth": how errors begin that are about this key; without an origin the key.
  std::string Where(const std::string& key) const;
};

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_CONFIG_H_
