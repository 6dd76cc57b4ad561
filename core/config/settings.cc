#include "core/config/settings.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/config/logical_devices.h"
#include "core/config/pins.h"
#include "core/config/schema.h"
#include "core/device/device_name.h"

namespace weir::config {
namespace {

constexpr std::string_view kPluginTable = "plugin";

// Prepends the origin to errors about a value that users wrote.
Status At(const Origin& origin, const Status& status) {
  if (status.ok() || origin.source == Source::kCallSite) return status;
  return status.Prepend(origin.ToString() + ": ");
}

bool IsPluginKey(const Path& path) { return path.front() == kPluginTable; }

Status CheckPluginKey(const Path& path) {
  if (path.size() >= 3) return {};
  return InvalidArgument("'{}': wanted plugin.NAME.KEY, with a plugin's name and one of its options", ToString(path));
}

// A plugin's key may contain dots.
std::string PluginKey(const Path& path) {
  std::string key;
  for (size_t i = 2; i < path.size(); ++i) key += (key.empty() ? "" : ".") + path[i];
  return key;
}

// True if a program set the member.
bool IsSet(const Key& key, const Path& path, Field field) {
  return std::visit(
      [&]<class T>(const T* member) {
        if constexpr (requires { member->is_set(); }) {
          return member->is_set();
        } else if constexpr (std::is_same_v<T, std::optional<bool>>) {
          return member->has_value();
        } else {
          Config fresh;
          return path.front() == "device_count" || Load(field) != Load(key.field(fresh, path));
        }
      },
      field);
}

Status CheckPlacement(const Config& config) {
  Pins pins;
  for (const auto& [pattern, device] : config.placement.pin) {
    const std::string where = config.Where(ToString({"placement", "pin", pattern}));
    if (const Status added = pins.Add(pattern, device); !added.ok()) return added.Prepend(where + ": ");
    if (const Result<device::DeviceName> name = device::ParseDeviceName(device); !name.ok()) {
      return name.status().Prepend(where + ": ");
    }
  }
  for (const auto& [type, devices] : config.placement.alias) {
    const std::string where = config.Where(ToString({"placement", "alias", type}));
    const Result<device::DeviceName> name = device::ParseDeviceName("/device:" + type);
    if (!name.ok() || !name->type || name->id) {
      return InvalidArgument("{}: '{}' is no device type; wanted a name as FAST, for requests of /device:FAST:0", where,
                             type);
    }
    if (devices.empty()) return InvalidArgument("{}: wanted at least one device", where);
    for (const std::string& text : devices) {
      const Result<device::DeviceName> device = device::ParseDeviceName(text);
      if (!device.ok()) return device.status().Prepend(where + ": ");
      const bool again = device->type && std::ranges::any_of(config.placement.alias, [&](const auto& other) {
                           const Result<device::DeviceName> as = device::ParseDeviceName("/device:" + other.first);
                           return as.ok() && as->type == device->type;
                         });
      if (again) return InvalidArgument("{}: '{}' is an alias itself; wanted a device", where, text);
    }
  }
  for (const std::string& filter : config.device_filters) {
    const Result<device::DeviceName> name = device::ParseDeviceName(filter);
    if (!name.ok()) return name.status().Prepend(config.Where("device_filters") + ": ");
  }
  if (config.placement.algorithm == "file" && config.placement.file.value().empty()) {
    return InvalidArgument("{} = \"file\": wanted the plan's name in placement.file",
                           config.Where("placement.algorithm"));
  }
  return {};
}

Status CheckFraction(const Config& config, const std::string& key, double fraction) {
  if (fraction <= 1 || config.gpu_options.experimental.use_unified_memory) return {};
  return InvalidArgument(
      "{} = {}: wanted 0 to 1; more than a device has is possible with "
      "gpu_options.experimental.use_unified_memory = true only",
      config.Where(key), fraction);
}

Status CheckDevices(const Config& config) {
  WEIR_TRY(CheckFraction(config, "gpu_options.per_process_gpu_memory_fraction",
                         config.gpu_options.per_process_gpu_memory_fraction));
  for (const auto& [name, device] : config.device) {
    const bool one = name.find(':') != std::string::npos;
    const auto key = [&name = name](const char* last) { return ToString({"device", name, last}); };
    WEIR_TRY(CheckFraction(config, key("memory_fraction"), device.memory_fraction));
    for (const auto& [type, gflops] : device.peak_gflops) {
      if (ElementType(type)) continue;
      return InvalidArgument("{}: '{}' is no element type; wanted f64, f32, f16, bf16, i8 and so on",
                             config.Where(ToString({"device", name, "peak_gflops", type})), type);
    }
    if (one && !device.visible_device_list.empty()) {
      return InvalidArgument("{}: a list of devices belongs in the table of the kind, [device.{}]",
                             config.Where(key("visible_device_list")), name.substr(0, name.find(':')));
    }
    if (!one && !device.virtual_memory_limit_mb.empty()) {
      return InvalidArgument("{}: wanted one device, as [device.\"{}:0\"]",
                             config.Where(key("virtual_memory_limit_mb")), name);
    }
  }
  if (const auto cpus = config.device_count.find("CPU"); cpus != config.device_count.end() && cpus->second == 0) {
    return InvalidArgument("{} = 0: the CPU runs what no other device can; wanted at least 1",
                           config.Where("device_count.CPU"));
  }
  for (const std::string& folder : config.plugins.folders) {
    if (!folder.starts_with('/')) {
      return InvalidArgument("{}: \"{}\" is no absolute path", config.Where("plugins.folders"), folder);
    }
  }
  return {};
}

}  // namespace

std::string Config::Where(const std::string& key) const {
  const auto found = origins.find(key);
  if (found == origins.end() || found->second.source == Source::kCallSite) return key;
  return found->second.ToString() + ": " + key;
}

Status Settings::Set(Path path, Given given, Origin origin) {
  if (IsPluginKey(path)) {
    WEIR_TRY(At(origin, CheckPluginKey(path)));
  } else {
    const Key* key = FindKey(path);
    if (key == nullptr) {
      if (!IsTable(path)) return At(origin, UnknownKey(path));
      return At(origin, InvalidArgument("{}: wanted a table of keys, got {}", ToString(path), Describe(given.value)));
    }
    Result<Path> checked = CheckedPath(*key, std::move(path));
    if (!checked.ok()) return At(origin, checked.status());
    path = std::move(*checked);
    Config scratch;
    WEIR_TRY(At(origin, Store(*key, path, given, scratch)));
  }
  const auto [entry, added] = all_.try_emplace(std::move(path));
  if (added || entry->second.origin.source <= origin.source) entry->second = {std::move(given), std::move(origin)};
  return {};
}

Result<Config> Settings::Build() const {
  Config config;
  config.environment = environment_;
  for (const auto& [path, setting] : all_) {
    config.origins.emplace(ToString(path), setting.origin);
    if (IsPluginKey(path)) {
      config.plugin[path[1]][PluginKey(path)] = {setting.given, setting.origin};
    } else {
      WEIR_TRY(At(setting.origin, Store(*FindKey(path), path, setting.given, config)));
    }
  }
  WEIR_TRY(CheckPlacement(config));
  WEIR_TRY(CheckDevices(config));
  return config;
}

Status AddCallSite(const Config& config, Settings& settings) {
  Config given = config;
  Status status;
  ForEachField(given, [&](const Key& key, const Path& path, Field field) {
    if (IsSet(key, path, field) && status.ok()) {
      status = settings.Set(path, {Load(field), false}, {.source = Source::kCallSite});
    }
  });
  for (const auto& [plugin, table] : config.plugin) {
    for (const auto& [key, setting] : table) {
      if (!status.ok()) return status;
      status = settings.Set({"plugin", plugin, key}, setting.given, {.source = Source::kCallSite});
    }
  }
  return status;
}

Result<Config> Overlay(const Config& config, Settings settings) {
  WEIR_TRY(AddCallSite(config, settings));
  return settings.Build();
}

}  // namespace weir::config
