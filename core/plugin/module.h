// A loaded plugin file: its function tables, and the calls that start it.
#ifndef WEIR_CORE_PLUGIN_MODULE_H_
#define WEIR_CORE_PLUGIN_MODULE_H_

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/base/timed.h"
#include "core/device/device.h"
#include "core/plugin/options.h"
#include "core/plugin/scan.h"
#include "sdk/abi/compiler.h"
#include "sdk/abi/cost.h"
#include "sdk/abi/device.h"
#include "sdk/abi/frontdoor.h"
#include "sdk/abi/kernel.h"
#include "sdk/abi/ops.h"
#include "sdk/abi/plugin.h"
#include "sdk/abi/transport.h"

namespace weir::plugin {

/// Loaded once per process and file, initialised once, mapped until the process ends. `shutdown` is called at exit if
/// the module is no longer in use. Thread-safe.
class Module {
 public:
  /// dlopen, query, init with the options from `config`, and interfaces. FailedPrecondition with the text of the
  /// dynamic linker or plugin; DeadlineExceeded if a call exceeds `limit`. A file that failed returns the same error
  /// again without another call. `calls` makes the calls. InvalidArgument if `config` contradicts the plugin's options,
  /// or differs from the options of an earlier start in this process.
  static Result<std::shared_ptr<Module>> Load(const ScannedFile& file, std::chrono::milliseconds limit,
                                              const std::shared_ptr<const config::Config>& config, TimedCalls& calls);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const weir_plugin& table() const { return *table_; }
  const PluginOptions& options() const { return *options_; }
  /// Null if the plugin has none.
  const weir_device_api* devices() const { return devices_; }
  const weir_kernels_api* kernels() const { return kernels_; }
  const weir_cost_api* cost() const { return cost_; }
  const weir_compiler_api* compiler() const { return compiler_; }
  const weir_front_door_api* front_door() const { return front_door_; }
  const weir_ops_api* ops() const { return ops_; }
  const weir_transport_api* transport() const { return transport_; }
  const device::StreamApis& streams() const { return streams_; }

  /// The plugin's devices, without names. DeadlineExceeded if the call exceeds `limit`; it is not repeated then.
  /// Unusable records are reported in `faults`.
  Result<std::vector<device::DeviceInfo>> Enumerate(std::chrono::milliseconds limit, std::vector<std::string>& faults,
                                                    TimedCalls& calls);

 private:
  friend class ModuleTable;
  Module() = default;

  const weir_plugin* table_ = nullptr;
  std::shared_ptr<const PluginOptions> options_;
  const weir_device_api* devices_ = nullptr;
  const weir_kernels_api* kernels_ = nullptr;
  const weir_cost_api* cost_ = nullptr;
  const weir_compiler_api* compiler_ = nullptr;
  const weir_front_door_api* front_door_ = nullptr;
  const weir_ops_api* ops_ = nullptr;
  const weir_transport_api* transport_ = nullptr;
  device::StreamApis streams_;
  std::mutex mutex_;  // serializes enumerate, protects hung_
  Status hung_;
};

/// The default values of a plugin's options, as passed to init. Borrowed from the plugin.
std::vector<weir_opt> DefaultOptions(const weir_plugin& plugin);

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_MODULE_H_
