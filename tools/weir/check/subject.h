// The plugin under test in a child process: loaded without the core's loader, with a host table that counts calls.
#ifndef WEIR_TOOLS_WEIR_CHECK_SUBJECT_H_
#define WEIR_TOOLS_WEIR_CHECK_SUBJECT_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/config/config.h"
#include "core/device/device.h"
#include "core/op/registry.h"
#include "core/plugin/note.h"
#include "core/plugin/options.h"
#include "sdk/abi/device.h"
#include "sdk/abi/kernel.h"
#include "sdk/abi/plugin.h"

namespace weir::check {

/// The input of every stage.
struct Target {
  std::string path;  // canonical
  const op::OpRegistry* ops = nullptr;
  int time_limit_ms = 0;
  std::vector<std::string> folders;  // canonical where they exist, each once; the plugin's own first
  std::shared_ptr<const config::Config> config;
  std::string cases;  // the folder of op cases
};

/// The host table for plugins under test: the core's functions, with every call counted and log lines discarded.
const weir_host& WatchingHost();
/// The number of host table calls so far, on any thread.
uint64_t HostCalls();

/// A loaded plugin. Never unloaded.
class Subject {
 public:
  /// Calls dlopen and query. FailedPrecondition with the dynamic linker's text.
  static Result<Subject> Load(const std::string& path);
  /// Loads the file, resolves its options by the target's configuration, and calls Init unless this process has already
  /// initialised the file. InvalidArgument names the setting for a configuration that contradicts the schema.
  static Result<Subject> Start(const Target& target, const std::string& path);
  static Result<Subject> Start(const Target& target) { return Start(target, target.path); }
  /// Calls init with the options.
  Status Init() const;

  /// The configured options, or the schema's defaults before Start. Borrowed from the subject and the plugin.
  std::vector<weir_opt> options() const;
  const std::shared_ptr<const plugin::PluginOptions>& resolved() const { return options_; }
  weir_plugin_query_fn query() const { return query_; }
  const weir_plugin& table() const { return *table_; }
  template <class Api>
  const Api* Interface(std::string_view id) const {
    return static_cast<const Api*>(table_->get_interface({id.data(), id.size()}));
  }
  const weir_device_api* devices() const { return Interface<weir_device_api>(WEIR_DEVICE_INTERFACE); }
  const weir_kernels_api* kernels() const { return Interface<weir_kernels_api>(WEIR_KERNELS_INTERFACE); }
  device::StreamApis streams() const;

 private:
  weir_plugin_query_fn query_ = nullptr;
  const weir_plugin* table_ = nullptr;
  std::shared_ptr<const plugin::PluginOptions> options_;
};

/// A device from enumerate.
struct FoundDevice {
  std::string uid;
  std::string kind;
  std::string platform;
  uint32_t flags = 0;
  uint64_t memory_bytes = 0;
  uint64_t alignment = 0;
  bool operator==(const FoundDevice&) const = default;
};
Result<std::vector<FoundDevice>> Enumerate(const Subject& subject);

/// An open device, closed by the destructor. `subject`'s table stays valid, as plugins are never unloaded.
class OpenedDevice {
 public:
  static Result<std::unique_ptr<OpenedDevice>> Open(const Subject& subject, const FoundDevice& found);
  ~OpenedDevice();
  OpenedDevice(const OpenedDevice&) = delete;
  OpenedDevice& operator=(const OpenedDevice&) = delete;

  const weir_device_api& api() const { return *api_; }
  weir_device* handle() const { return handle_; }
  const FoundDevice& found() const { return found_; }

 private:
  OpenedDevice() = default;
  const weir_device_api* api_ = nullptr;
  weir_device* handle_ = nullptr;
  FoundDevice found_;
};

/// Paths of the other plugin files in the target's folders that this process may load and that have one of the kinds
/// (WEIR_KIND_*), by folder and name.
std::vector<std::string> OtherPlugins(const Target& target, uint32_t kinds);

/// An open device of `platform`, with the core's arena and streams: a device of the subject, else of a device plugin in
/// the target's folders. NotFound if there is none.
Result<std::unique_ptr<device::Device>> DeviceFor(const Target& target, const Subject& subject,
                                                  std::string_view platform);

}  // namespace weir::check

#endif  // WEIR_TOOLS_WEIR_CHECK_SUBJECT_H_
