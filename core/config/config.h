// The configuration: ConfigProto's fields under their names, and weir's own tables.
#ifndef WEIR_CORE_CONFIG_CONFIG_H_
#define WEIR_CORE_CONFIG_CONFIG_H_

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace weir::config {

/// Marks a member's value as its default, not set by anyone.
struct Unset {};
inline constexpr Unset kUnset;

/// Converts from and to T. A member that a program initializes or assigns counts as set, even to the default.
template <class T>
class Member {
 public:
  Member() = default;
  Member(Unset, T value) : value_(std::move(value)) {}
  template <std::convertible_to<T> U>
  requires(!std::same_as<std::remove_cvref_t<U>, Member>) Member(U&& value)
      : value_(static_cast<T>(std::forward<U>(value))), is_set_(true) {}  // NOLINT

  const T& value() const { return value_; }
  operator const T&() const { return value_; }  // NOLINT(google-explicit-constructor)
  bool is_set() const { return is_set_; }
  // Numbers need no overload; the standard comparison of strings is a template, which ignores conversions.
  friend bool operator==(const Member& member, std::string_view text) requires std::same_as<T, std::string> {
    return member.value_ == text;
  }

 private:
  T value_ = {};
  bool is_set_ = false;
};

using Value = std::variant<bool, int64_t, double, std::string, std::vector<std::string>, std::vector<double>>;

/// A value before conversion. Text becomes a value of the key's type, from TOML syntax (`["a", "b"]`) or bare (`a,b`).
struct Given {
  Value value;
  bool text = false;  // of the environment or the command line, which have no types
};

/// Sources in ascending precedence.
enum class Source { kDefault, kPlugin, kEnvironment, kFile, kSet, kCallSite };

struct Origin {
  Source source = Source::kDefault;
  std::string name = {};  // of the file or variable
  int line = 0;           // in the file, from 1; 0 = no line

  /// "default", "plugin default", "environment WEIR_X", "weir.toml:12", "--set", "call site".
  std::string ToString() const;
};

// Fields are keys of config/weir.toml. Empty or 0 in a list, map (not device_count), device or link: not specified.

/// A physical device split into logical ones, one per limit.
struct VirtualDevices {
  std::vector<double> memory_limit_mb = {}, priority = {}, device_ordinal = {};
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
  Member<bool> do_common_subexpression_elimination = {}, do_constant_folding = {};
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

/// Settings of the placer.
struct PlacementConfig {
  Member<std::string> algorithm = {kUnset, "costsim"}, graph_devices = {kUnset, "keep"};
  Member<std::string> file = {};
  Member<std::string> explain = {kUnset, "summary"};
  Member<std::string> explain_file = {}, log_file = {};
  Member<int64_t> refine_iterations = {kUnset, 2000}, unknown_dim = {kUnset, 32};
  Member<int64_t> replace_period = {};
  Member<bool> replace_moves_state = {};
  Member<double> min_gain = {kUnset, 0.05};
  Member<std::string> profile = {kUnset, "auto"};
  Member<int32_t> max_devices = {};
  Member<bool> strict_devices = {};
  Member<bool> verify = {kUnset, true};
  /// Node name pattern (RE2) -> device; the longest matching pattern wins.
  std::map<std::string, std::string> pin = {};
  std::map<std::string, std::vector<std::string>> alias = {};  // device type -> devices in order of preference
};

/// `[device."GPU:0"]`, or `[device.GPU]` for a kind. Absent or 0 = as the plugin and gpu_options specify.
struct DeviceConfig {
  /// Keys are short names of element types: "f32".
  std::map<std::string, double> peak_gflops = {};
  double mem_gbps = 0, launch_us = 0, memory_fraction = 0, memory_limit_mb = 0, initial_memory_mb = 0;
  std::optional<bool> allow_growth = {};
  std::vector<double> virtual_memory_limit_mb = {};
  std::string visible_device_list = {};
  bool enabled = false;
};

/// `[link."CPU:0->GPU:0"]`: overrides the plugin's link figures in the placer. 0 = the plugin's.
struct LinkConfig {
  double latency_us = 0, gbps = 0;
};

/// `[plugins]`: the plugin files to load.
struct PluginsConfig {
  std::vector<std::string> folders = {}, deny = {};
  Member<bool> strict = {}, probe = {};
  Member<std::string> isa = {kUnset, "auto"};
  Member<int32_t> time_limit_ms = {kUnset, 10000}, open_limit_ms = {kUnset, 60000}, cancel_limit_ms = {kUnset, 2000};
  Member<std::string> compile_regions = {kUnset, "auto"};
  Member<bool> keep_regions = {kUnset, true};
};

/// `[cluster]`: the task that a server is, where it listens, and what protects it; servers whose devices sessions use.
struct ClusterConfig {
  Member<std::string> spec = {}, job = {}, name = {}, roles = {}, listen = {}, grpc = {}, status = {};
  Member<std::string> token_file = {}, tls_certificate = {}, tls_key = {}, tls_authorities = {};
  std::vector<std::string> devices = {}, remote_devices = {}, required_devices = {};
  Member<bool> insecure_listen = {}, exit_when_done = {}, remote_own_cpu = {};
  Member<int32_t> task = {kUnset, -1}, peer_timeout_ms = {kUnset, 10000}, creation_limit_ms = {kUnset, 300000};
  Member<int32_t> drain_limit_ms = {kUnset, 30000}, remote_limit_ms = {kUnset, 2000};
};

/// A key of `[plugin.NAME]`; only the plugin knows its type.
struct PluginSetting {
  Given given = {};
  Origin origin = {};
};

/// The whole configuration. A copyable value.
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
  ClusterConfig cluster = {};
  /// Plugin -> key -> setting.
  std::map<std::string, std::map<std::string, PluginSetting>> plugin = {};

  /// Variables with the prefix WEIR_ that are not keys of weir: WEIR_<PLUGIN>_<KEY> sets a plugin's option.
  std::map<std::string, std::string> environment = {};
  /// Origin of each key that was set, by key text (`gpu_options.allow_growth`).
  std::map<std::string, Origin> origins = {};

  /// The start of errors about this key: "weir.toml:12: gpu_options.allow_growth".
  std::string Where(const std::string& key) const;
};

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_CONFIG_H_
