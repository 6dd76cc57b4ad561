// Calibration files in the user's cache folder, one for each kind of processor.
#ifndef WEIR_CORE_SESSION_PROFILES_H_
#define WEIR_CORE_SESSION_PROFILES_H_

#include <map>
#include <string>
#include <string_view>

#include "core/config/config.h"
#include "core/io/cache_folder.h"
#include "core/plugin/catalogue.h"
#include "core/session/runtime.h"
#include "core/session/session.h"

namespace weir::session {

/// The value of placement.profile and of SessionOptions::profile_file for the file in the cache folder.
inline constexpr std::string_view kAutoProfile = "auto";

/// Where the times of a device with this description are kept; empty without a cache folder.
std::string ProfilePath(std::string_view description, io::CacheUse use);

/// Where the times of runs on a device with this fingerprint (kernel::FingerprintOf) are kept; empty without a cache
/// folder.
std::string MeasuredPath(std::string_view fingerprint, io::CacheUse use);

/// The profiles of a session; both may be null.
struct UsedProfile {
  std::shared_ptr<const kernel::Calibration> calibration;
  std::shared_ptr<const kernel::MeasuredCosts> measured;
};
/// Reads the file that the options name, of either kind, or takes those of the runtime for "auto". Errors of the file;
/// FailedPrecondition for times of runs on devices that are not here, or with other kernel sets.
Result<UsedProfile> ProfileOf(const SessionOptions& options, const Runtime& runtime);

/// The plugins that brought kernels for the CPU, with their versions.
std::map<std::string, std::string> KernelSets(const plugin::Catalogue& plugins);

/// Finds the calibration file for `config`'s placement.profile, and gives its rates to the devices that it describes.
/// With "auto", the file of the CPU goes to runtime.calibration, unless the configuration is deterministic. Devices
/// must be unused. Returns a note if a file is damaged or belongs to another device or other kernel sets: it is not
/// used then. A missing file needs no note.
std::string UseProfile(const config::Config& config, Runtime& runtime);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_PROFILES_H_
