// What weir can be told: ConfigProto's fields under their names, and weir's own tables beside them.
#ifndef WEIR_CORE_CONFIG_CONFIG_H_
#define WEIR_CORE_CONFIG_CONFIG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/value.h"

namespace weir::config {

// Each field is one key; what it means, its range and whether it has an effect stand in the table of schema.cc, and for
// users in config/weir.toml. The values here are the defaults.

/// One physical device cut into logical ones: as many as there are limits.
struct VirtualDevices {
  std::vector<double> memory_limit_mb = {};
  std::vector<double> priority = {};
  std::vector<double> device_ordinal = {};
};

struct GpuOptionsExperimental {
  /// For the visible devices in order.
  std::vector<VirtualDevices> virtual_devices = {};
  bool use_unified_memory = false;
  int32_t num_dev_to_dev_copy_streams = 0;
};

struct GpuOptions {
  double per_process_gpu_memory_fraction = 0;
  std::string allocator_type = {};
  int64_t deferred_deletion_bytes = 0;
  bool allow_growth = false;
  std::string visible_device_list = {};
  int32_t polling_active_delay_usecs = 0;
  int32_t polling_inactive_delay_msecs = 0;
  bool force_gpu_compatible = false;
  GpuOptionsExperimental experimental = {};
};

struct OptimizerOptions {
  bool do_common_subexpression_elimination = false;
  bool do_constant_folding = false;
  std::string opt_level = "L1";
  bool do_function_inlining = false;
  std::string global_jit_level = "DEFAULT";
  int64_t max_folded_constant_in_bytes = 0;
};

struct RewriterConfig {
  std::string constant_folding = "DEFAULT";
  std::string common_subgraph_elimination = "DEFAULT";
  std::string remapping = "DEFAULT";
};

struct GraphOptions {
  bool enable_recv_scheduling = false;
  OptimizerOptions optimizer_options = {};
  int64_t build_cost_model = 0;
  bool infer_shapes = false;
  bool place_pruned_graph = false;
  bool enable_bfloat16_sendrecv = false;
  int32_t timeline_step = 0;
  int64_t build_cost_model_after = 0;
  RewriterConfig rewrite_options = {};
};

/// Read by the placer.
struct PlacementConfig {
  std::string algorithm = "costsim";
  std::string graph_devices = "keep";
  std::string file = {};
  std::string explain = "summary";
  std::string explain_file = {};
  std::string log_file = {};
  int64_t refine_iterations = 2000;
  int64_t unknown_dim = 32;
  int64_t replace_period = 0;
  bool replace_moves_state = false;
  double min_gain = 0.05;
  std::string profile = "off";
  int32_t max_devices = 0;
  bool strict_devices = false;
  bool verify = true;
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
  bool strict = false;
  bool probe = false;
  int32_t time_limit_ms = 10000;
};

/// A key of `[plugin.NAME]`; its type is known to the plugin only.
struct PluginSetting {
  Given given = {};
  Origin origin = {};
};

/// Everything. A copyable value.
struct Config {
  std::map<std::string, int32_t> device_count = {};
  int32_t intra_op_parallelism_threads = 0;
  int32_t placement_period = 0;
  std::vector<std::string> device_filters = {};
  int32_t inter_op_parallelism_threads = 0;
  GpuOptions gpu_options = {};
  bool allow_soft_placement = true;
  bool log_device_placement = false;
  bool use_per_session_threads = false;
  GraphOptions graph_options = {};
  int64_t operation_timeout_in_ms = 0;
  bool isolate_session_state = false;

  bool deterministic = false;
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
