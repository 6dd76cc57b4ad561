#include "core/session/device_report.h"

#include <utility>

#include "core/session/session.h"

namespace weir::session {

std::vector<DeviceAttributes> ListDevices(const Runtime& runtime) {
  std::vector<DeviceAttributes> list;
  for (const auto& device : runtime.plugins->devices().all()) {
    list.push_back({device->name(), device->info().kind, device->info().memory_bytes});
  }
  return list;
}

DeviceReport MakeDeviceReport(const Runtime& runtime, std::vector<std::string> used) {
  DeviceReport report;
  for (const plugin::FileReport& file : runtime.plugins->files()) {
    if (file.verdict == plugin::Verdict::kNotAPlugin) continue;
    report.compiled.push_back(file.name);
    if (file.verdict == plugin::Verdict::kLoaded) report.loaded.push_back(file.name);
  }
  for (const DeviceAttributes& device : ListDevices(runtime)) report.visible.push_back(device.name);
  report.used = std::move(used);
  return report;
}

}  // namespace weir::session
