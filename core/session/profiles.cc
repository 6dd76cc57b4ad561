#include "core/session/profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "core/base/errors.h"
#include "core/device/device.h"
#include "core/io/files.h"
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

std::string MeasuredPath(std::string_view fingerprint, io::CacheUse use) {
  const std::string folder = io::CacheFolder("profiles", use);
  return folder.empty() ? folder : fmt::format("{}/{:016x}.measured.json", folder, HashOf(fingerprint));
}

namespace {

/// Why the times of a device do not count; empty if they do.
std::string Stale(const kernel::MeasuredDevice& device, const plugin::Catalogue& plugins) {
  return device.plugins.empty() || device.plugins == KernelSets(plugins) ? ""
                                                                         : "it was measured with other kernel sets";
}

/// Adds the times of this machine's devices to `runtime`; returns a note about files that do not count.
std::string UseMeasured(Runtime& runtime) {
  auto all = std::make_shared<kernel::MeasuredCosts>();
  std::string notes;
  std::set<std::string> seen;
  for (const auto& device : runtime.plugins->devices().all()) {
    const std::string fingerprint = kernel::FingerprintOf(device->info());
    const std::string path = MeasuredPath(fingerprint, io::CacheUse::kRead);
    if (path.empty() || !seen.insert(path).second) continue;
    const Result<kernel::MeasuredCosts> file = kernel::MeasuredCosts::Read(path);
    if (!file.ok() && file.status().code() == Code::kNotFound) continue;
    std::string why(file.ok() ? "" : file.status().message());
    if (file.ok() && !file->devices().contains(fingerprint)) why = fmt::format("it has no times of '{}'", fingerprint);
    if (file.ok() && why.empty()) why = Stale(file->devices().at(fingerprint), *runtime.plugins);
    if (why.empty()) {
      all->Merge(*file);
    } else {
      notes += fmt::format("{}{} is not used: {}; `weir profile record` makes it anew, `weir profile clear` removes it",
                           notes.empty() ? "" : "; ", path, why);
    }
  }
  if (!all->empty()) runtime.measured = std::move(all);
  return notes;
}

}  // namespace

Result<UsedProfile> ProfileOf(const SessionOptions& options, const Runtime& runtime) {
  UsedProfile profile;
  const std::string& path = options.profile_file;
  if (path.empty()) return profile;
  if (path == kAutoProfile) {
    if (!options.deterministic) profile = {runtime.calibration, runtime.measured};
    return profile;
  }
  constexpr uint64_t kMostBytes = uint64_t{64} << 20;
  WEIR_ASSIGN(const std::string text, io::ReadFile(path, kMostBytes));
  if (!kernel::MeasuredCosts::IsMeasured(text)) {
    WEIR_ASSIGN(profile.calibration, kernel::Calibration::Parse(text, path));
    return profile;
  }
  WEIR_ASSIGN(kernel::MeasuredCosts measured, kernel::MeasuredCosts::Parse(text, path));
  std::set<std::string> here;
  for (const auto& device : runtime.plugins->devices().all()) here.insert(kernel::FingerprintOf(device->info()));
  bool any = false;
  for (const auto& [name, device] : measured.devices()) {
    if (!here.contains(name)) continue;
    any = true;
    const std::string why = Stale(device, *runtime.plugins);
    if (why.empty()) continue;
    return FailedPrecondition("{}: the times of '{}' do not count: {}; `weir profile record` makes it anew", path, name,
                              why);
  }
  if (!any) {
    std::vector<std::string> of;
    for (const auto& [name, device] : measured.devices()) of.push_back(name);
    return FailedPrecondition(
        "{} has times of [{}], but the devices here are [{}]; `weir profile record --out FILE` "
        "measures them, and `placement.profile = \"off\"` does without",
        path, fmt::join(of, ", "), fmt::join(here, ", "));
  }
  profile.measured = std::make_shared<kernel::MeasuredCosts>(std::move(measured));
  return profile;
}

namespace {

std::string UseCalibration(const config::Config& config, Runtime& runtime) {
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

}  // namespace

std::string UseProfile(const config::Config& config, Runtime& runtime) {
  std::string note = UseCalibration(config, runtime);
  if (config.placement.profile != kAutoProfile || config.deterministic) return note;
  const std::string measured = UseMeasured(runtime);
  return note.empty() || measured.empty() ? note + measured : note + "; " + measured;
}

}  // namespace weir::session
