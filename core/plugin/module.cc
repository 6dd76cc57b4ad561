#include "core/plugin/module.h"

#define BOOST_DLL_USE_STD_FS
#include <dlfcn.h>
#include <algorithm>

#include <algorithm>
#include <bit>
#include <boost/dll/shared_library.hpp>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/base/legible.h"
#include "core/kernel/host.h"
#include "core/plugin/missing.h"
#include "core/tensor/buffer.h"

namespace weir::plugin {
namespace {

using kernel::CallPlugin;
using kernel::Text;
using kernel::ViewOf;

// The result of a call that may hang.
struct Started {
  Status status;
  const weir_plugin* table = nullptr;
  std::shared_ptr<const PluginOptions> options;
  const weir_device_api* devices = nullptr;
  const weir_kernels_api* kernels = nullptr;
  const weir_cost_api* cost = nullptr;
  const weir_compiler_api* compiler = nullptr;
  const weir_front_door_api* front_door = nullptr;
  const weir_ops_api* ops = nullptr;
  const weir_transport_api* transport = nullptr;
  device::StreamApis streams;
};

// Keeps a handle for the life of the process, so that plugin code stays mapped.
void KeepForever(boost::dll::shared_library library) {
  static std::mutex* const mutex = new std::mutex;  // protects kept; neither is ever destroyed
  static auto* const kept = new std::vector<boost::dll::shared_library>;
  const std::lock_guard lock(*mutex);
  kept->push_back(std::move(library));
}

// Maps the file and returns its query function.
Result<weir_plugin_query_fn> Map(const ScannedFile& file) {
  if (!file.loadable.ok()) return FailedPrecondition("{}", file.loadable.message());
  boost::dll::shared_library library;
  const auto mode = static_cast<boost::dll::load_mode::type>(static_cast<unsigned>(boost::dll::load_mode::rtld_now) |
                                                             static_cast<unsigned>(RTLD_NODELETE));
  boost::dll::fs::error_code error;
  library.load(boost::dll::fs::path(file.path), mode, error);
  if (error) {
    const char* text = dlerror();  // Boost keeps only a code
    return FailedPrecondition("cannot be loaded: {}",
                              WithAllMissing(text != nullptr ? text : error.message(), file.path));
  }
  void* query = dlsym(library.native(), WEIR_PLUGIN_QUERY_SYMBOL);
  KeepForever(std::move(library));
  WEIR_ASSIGN(const FileIdentity now, FileIdentity::Of(file.path));
  if (now != file.identity) return FailedPrecondition("the file changed while it was loaded");
  if (query == nullptr) {
    return FailedPrecondition("it has a plugin's note but does not export {}", WEIR_PLUGIN_QUERY_SYMBOL);
  }
  return reinterpret_cast<weir_plugin_query_fn>(query);
}

Status CheckTable(const weir_plugin* table, const PluginNote& note) {
  if (table == nullptr) {
    return FailedPrecondition("it declines to work with ABI {}.{}", WEIR_ABI_MAJOR, WEIR_ABI_MINOR);
  }
  if (!WEIR_HAS(table, init) || !WEIR_HAS(table, get_interface)) {
    return FailedPrecondition("its table ({} bytes) lacks init or get_interface", table->struct_size);
  }
  if (Text(table->name) != note.name) {
    return FailedPrecondition("its note says '{}', its table '{}'", note.name, Text(table->name));
  }
  if (table->needs_minor > WEIR_ABI_MINOR) {
    return FailedPrecondition("its table needs ABI {}.{}, this weir has {}.{}", WEIR_ABI_MAJOR, table->needs_minor,
                              WEIR_ABI_MAJOR, WEIR_ABI_MINOR);
  }
  return {};
}

Status GetInterfaces(Started& started) {
  return CallPlugin("get_interface", [&](weir_error*) {
    const auto get = [&]<class Api>(std::string_view id, const Api*& api) {
      api = static_cast<const Api*>(started.table->get_interface(ViewOf(id)));
    };
    get(WEIR_DEVICE_INTERFACE, started.devices);
    get(WEIR_KERNELS_INTERFACE, started.kernels);
    get(WEIR_COST_INTERFACE, started.cost);
    get(WEIR_COMPILER_INTERFACE, started.compiler);
    get(WEIR_FRONT_DOOR_INTERFACE, started.front_door);
    get(WEIR_STREAM_INTERFACE, started.streams.stream);
    get(WEIR_MEMORY_INTERFACE, started.streams.memory);
    get(WEIR_COPY_INTERFACE, started.streams.copy);
    get(WEIR_NATIVE_INTERFACE, started.streams.native);
    get(WEIR_PROFILER_INTERFACE, started.streams.profiler);
    get(WEIR_OPS_INTERFACE, started.ops);
    get(WEIR_TRANSPORT_INTERFACE, started.transport);
    return WEIR_OK;
  });
}

Started Start(const ScannedFile& file, const config::Config& config) {
  Started started;
  const Result<weir_plugin_query_fn> query = Map(file);
  if (!query.ok()) return {.status = query.status()};
  started.status = CallPlugin("the query function", [&](weir_error*) {
    started.table = (*query)(WEIR_ABI_MAJOR, WEIR_ABI_MINOR);
    return WEIR_OK;
  });
  if (started.status.ok()) started.status = CheckTable(started.table, file.note);
  if (!started.status.ok()) return started;
  Result<std::shared_ptr<const PluginOptions>> resolved = PluginOptions::Resolve(*started.table, config);
  if (!resolved.ok()) return {.status = resolved.status()};
  started.options = std::move(*resolved);
  const std::vector<weir_opt> options = started.options->View();
  const Status init = CallPlugin("init", [&](weir_error* error) {
    return started.table->init(&kernel::HostTable(), options.data(), options.size(), error);
  });
  started.status = init.ok() ? GetInterfaces(started) : FailedPrecondition("init failed: {}", init.message());
  return started;
}

// A larger count is a plugin bug.
constexpr size_t kMostDevices = 1024;
constexpr uint64_t kMostAlignment = uint64_t{1} << 21;

// Copies a device record to the core's own type, or returns the fault.
Result<device::DeviceInfo> Convert(const weir_device_record* record) {
  const auto needed = static_cast<uint32_t>(offsetof(weir_device_record, memory_bytes));
  if (record == nullptr || record->struct_size < needed) return InvalidArgument("a device record that is too short");
  device::DeviceInfo info;
  info.uid = Text(record->uid);
  info.class_id = Text(record->class_id);
  info.kind = Text(record->kind);
  info.platform = Text(record->platform);
  info.display_name = LegibleLine(Text(record->name));
  info.driver_version = LegibleLine(Text(record->driver_version));
  info.flags = record->flags;
  info.numa_node = record->numa_node;
  if (WEIR_HAS(record, memory_bytes)) info.memory_bytes = record->memory_bytes;
  if (WEIR_HAS(record, alignment)) info.alignment = std::max<uint64_t>(record->alignment, kBufferAlignment);
  if (WEIR_HAS(record, largest_allocation)) info.largest_allocation = record->largest_allocation;
  const Result<device::DeviceName> name = device::ParseDeviceName("/device:" + info.kind + ":0");
  if (!name.ok() || name->type != info.kind) {
    return InvalidArgument("device '{}': kind '{}' is no device type", info.uid, info.kind);
  }
  if (info.uid.empty()) return InvalidArgument("a device of kind {} without uid", info.kind);
  if (!std::has_single_bit(info.alignment) || info.alignment > kMostAlignment) {
    return InvalidArgument("device '{}': alignment {} is no power of two of at most {}", info.uid, info.alignment,
                           kMostAlignment);
  }
  if (info.platform.empty()) return InvalidArgument("device '{}' without platform", info.uid);
  for (const std::string* text : {&info.uid, &info.class_id, &info.platform}) {
    if (LegibleLine(*text) == *text) continue;
    return InvalidArgument("device '{}': control characters in its record", LegibleLine(info.uid));
  }
  return info;
}

struct Enumerated {
  Status status;
  std::vector<device::DeviceInfo> devices;
  std::vector<std::string> faults;
  bool too_many = false;
};

Enumerated CallEnumerate(const weir_device_api* api, const PluginOptions& values) {
  Enumerated found;
  const auto emit = [](void* ctx, const weir_device_record* record) {
    auto* to = static_cast<Enumerated*>(ctx);
    if (to->devices.size() == kMostDevices) {
      to->too_many = true;
      return;
    }
    Result<device::DeviceInfo> info = Convert(record);
    if (info.ok()) {
      to->devices.push_back(std::move(*info));
    } else {
      to->faults.push_back(info.status().message());
    }
  };
  const std::vector<weir_opt> options = values.View();
  found.status = CallPlugin("enumerate", [&](weir_error* error) {
    const int32_t code = api->enumerate(options.data(), options.size(), emit, &found, error);
    // Success with a text and no device: the reason why there is none.
    if (code == WEIR_OK && found.devices.empty() && found.faults.empty() && error->length != 0) {
      found.faults.emplace_back(error->message, std::min(error->length, error->capacity));
    }
    return code;
  });
  if (found.too_many) found.faults.push_back(fmt::format("more than {} devices: the others are ignored", kMostDevices));
  return found;
}

}  // namespace

// All modules of the process, and the errors of files that failed.
class ModuleTable {
 public:
  static ModuleTable& Get() {
    // Never destroyed: plugins stay mapped, and exit handlers use the table.
    static ModuleTable* const table = [] {
      auto* made = new ModuleTable;
      std::atexit([] { Get().ShutdownIdle(); });
      return made;
    }();
    return *table;
  }

  Result<std::shared_ptr<Module>> Load(const ScannedFile& file, std::chrono::milliseconds limit,
                                       const std::shared_ptr<const config::Config>& config, TimedCalls& calls) {
    const std::lock_guard lock(mutex_);
    if (const auto known = modules_.find(file.identity); known != modules_.end()) {
      if (known->second.ok()) {
        const Module& module = **known->second;
        WEIR_ASSIGN(const auto options, PluginOptions::Resolve(module.table(), *config));
        WEIR_TRY(module.options().CheckSame(*options));
      }
      return known->second;
    }
    Result<std::shared_ptr<Module>> module = LoadOnce(file, limit, config, calls);
    // Configuration errors are not cached as errors of the file.
    if (module.status().code() != Code::kInvalidArgument) modules_.emplace(file.identity, module);
    return module;
  }

 private:
  static Result<std::shared_ptr<Module>> LoadOnce(const ScannedFile& file, std::chrono::milliseconds limit,
                                                  const std::shared_ptr<const config::Config>& config,
                                                  TimedCalls& calls) {
    const std::optional<Started> started = calls.Run<Started>(limit, [file, config] { return Start(file, *config); });
    if (!started) return DeadlineExceeded("loading and init did not end within {} ms", limit.count());
    WEIR_TRY(started->status);
    std::shared_ptr<Module> module(new Module);
    module->table_ = started->table;
    module->options_ = started->options;
    module->devices_ = started->devices;
    module->kernels_ = started->kernels;
    module->cost_ = started->cost;
    module->compiler_ = started->compiler;
    module->front_door_ = started->front_door;
    module->ops_ = started->ops;
    module->transport_ = started->transport;
    module->streams_ = started->streams;
    return module;
  }

  // At exit: shuts down unused modules. Modules still in use are skipped, since no call may be in flight at shutdown.
  void ShutdownIdle() {
    const std::lock_guard lock(mutex_);
    for (auto& [identity, module] : modules_) {
      if (module.ok() && module->use_count() == 1 && (*module)->hung_.ok() && WEIR_HAS((*module)->table_, shutdown)) {
        (*module)->table_->shutdown();
      }
    }
  }

  std::mutex mutex_;  // serializes loading, protects modules_
  std::map<FileIdentity, Result<std::shared_ptr<Module>>> modules_;
};

Module::~Module() = default;

Result<std::shared_ptr<Module>> Module::Load(const ScannedFile& file, std::chrono::milliseconds limit,
                                             const std::shared_ptr<const config::Config>& config, TimedCalls& calls) {
  return ModuleTable::Get().Load(file, limit, config, calls);
}

Result<std::vector<device::DeviceInfo>> Module::Enumerate(std::chrono::milliseconds limit,
                                                          std::vector<std::string>& faults, TimedCalls& calls) {
  const std::lock_guard lock(mutex_);
  WEIR_TRY(hung_);
  if (!WEIR_HAS(devices_, enumerate)) return FailedPrecondition("it declares devices but cannot enumerate them");
  std::optional<Enumerated> found =
      calls.Run<Enumerated>(limit, [api = devices_, options = options_] { return CallEnumerate(api, *options); });
  if (!found) {
    hung_ = DeadlineExceeded("enumerate did not end within {} ms", limit.count());
    return hung_;
  }
  if (!found->status.ok()) return FailedPrecondition("enumerate failed: {}", found->status.message());
  faults = std::move(found->faults);
  return std::move(found->devices);
}

std::vector<weir_opt> DefaultOptions(const weir_plugin& plugin) {
  std::vector<weir_opt> options;
  for (uint64_t i = 0; plugin.options != nullptr && i < plugin.option_count; ++i) {
    const weir_option_spec* spec = plugin.options[i];
    if (spec == nullptr || spec->struct_size < offsetof(weir_option_spec, minimum)) continue;
    weir_opt option = spec->default_value;
    option.key = spec->key;
    option.type = spec->type;
    options.push_back(option);
  }
  return options;
}

}  // namespace weir::plugin
