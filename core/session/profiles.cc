#include "core/session/profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/device/device.h"
#include "core/kernel/calibration.h"

namespace weir::session {
namespace {

uint64_t HashOf(std::string_view text) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

/// Why the file does not count on this machine; empty if it does.
std::string Mismatch(const kernel::Calibration& file, const std::string& device, const plugin::Catalogue& plugins) {
  if (file.device() != device) return fmt::format("it is of '{}', this is '{}'", file.device(), device);
  if (file.plugins() != KernelSets(plugins)) return "it was measured with other kernel sets";
  return {};
}

}  // namespace

std::string ProfilePath(std::string_view description, io::CacheUse use) {
  const std::string folder = io::CacheFolder("profiles", use);
  return folder.empty() ? folder : fmt::format("{}/{:016x}.json", folder, HashOf(description));
}

std::map<std::string, std::string> KernelSets(const plugin::Catalogue& plugins) {
  std::map<std::string, std::string> sets;
  for (const plugin::FileReport& file : plugins.files()) {
    if (file.verdict == plugin::Verdict::kLoaded && file.kernels > 0 && !file.foreign) sets[file.name] = file.version;
  }
  return sets;
}

std::string UseProfile(const config::Config& config, Runtime& runtime) {
  const std::string& wanted = config.placement.profile.value();
  const bool automatic = wanted == kAutoProfile;
  if (wanted == "off" || (automatic && config.deterministic)) return {};
  const auto& devices = runtime.plugins->devices().all();
  const auto measured = [](const std::shared_ptr<device::Device>& device) { return device->info().kind == "CPU"; };
  const auto cpu = std::ranges::find_if(devices, measured);
  if (cpu == devices.end()) return {};
  const std::string& description = (*cpu)->info().display_name;
  const std::string path = automatic ? ProfilePath(description, io::CacheUse::kRead) : wanted;
  if (path.empty()) return {};
  const Result<std::shared_ptr<const kernel::Calibration>> file = kernel::Calibration::Read(path);
  if (!file.ok()) {
    // A session reports the faults of a file that its options name.
    if (!automatic || file.status().code() == Code::kNotFound) return {};
    return fmt::format("the profile of this machine is not used: {}; `weir profile calibrate` makes it anew",
                       file.status().message());
  }
  if (automatic) {
    if (const std::string why = Mismatch(**file, description, *runtime.plugins); !why.empty()) {
      return fmt::format("{} is not used: {}; `weir profile calibrate` makes it anew", path, why);
    }
    runtime.calibration = *file;
  }
  for (const auto& device : devices) {
    if (device->info().display_name == (*file)->device()) device->SetMeasuredCosts((*file)->rates());
  }
  return {};
}

}  // namespace weir::session
