// Finds plugin files, reads their notes, loads the compatible ones, and reports the outcome for every file.
#ifndef WEIR_CORE_PLUGIN_CATALOGUE_H_
#define WEIR_CORE_PLUGIN_CATALOGUE_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/config/config.h"
#include "core/device/device.h"
#include "core/kernel/compiler_entry.h"
#include "core/kernel/front_door_entry.h"
#include "core/kernel/registry.h"
#include "core/kernel/transport_entry.h"
#include "core/op/registry.h"
#include "core/plugin/options.h"

namespace weir::plugin {

class Module;

/// kPassedOver: a build for instructions that this CPU lacks or `plugins.isa` excludes, while another build is usable.
enum class Verdict { kLoaded, kNotAPlugin, kPassedOver, kRefused, kCrashed, kHung, kNoDevices };
/// "loaded", "not-a-plugin", "passed-over", "refused", "crashed", "hung", "no-devices".
std::string_view Name(Verdict verdict);

/// The outcome for one file (or for a folder that may not be searched).
struct FileReport {
  std::string file;  // absolute path
  std::string name;
  std::string version;
  Verdict verdict = Verdict::kNotAPlugin;
  std::string reason;  // for verdicts other than loaded; for loaded, the parts that were refused
  int devices = 0;
  int kernels = 0;
  bool foreign = false;  // kernels for platforms without a device here

  /// True if the file should have been loaded but was not.
  bool failed() const {
    return verdict == Verdict::kRefused || verdict == Verdict::kCrashed || verdict == Verdict::kHung;
  }
};

struct LoadOptions {
  /// Folders to search, in order; empty = the folder derived from the library or command (`SearchPath`).
  std::vector<std::string> folders;
  /// Names of plugins that must not be loaded.
  std::vector<std::string> deny;
  /// Defines the logical devices, their memory limits and the options of plugins.
  config::Config config;
  /// Limit for loading and init together, and again for enumerate. A plugin that exceeds it is listed as hung and not
  /// called again.
  int time_limit_ms = 10000;
  /// The program that `plugins.probe` runs; empty = ProbeProgram().
  std::string probe_program;
  /// The task whose devices these are: "/job:worker/replica:0/task:1/…".
  std::string job = "localhost";
  int task = 0;
  /// The core's own kernels, registered before any plugin's.
  kernel::KernelRegistry kernels;
  /// Compares kernels with their ops on use instead of at once: `files()` then counts all records and names only faults
  /// of records themselves, CheckedFiles has the whole truth. `ops` must then outlive the catalogue.
  bool check_kernels_on_use = false;
};

/// The default folders: $WEIR_PLUGIN_PATH (absolute paths separated by colons; ignored in privileged processes), else
/// UsualFolder().
std::vector<std::string> SearchPath();
/// `../lib/weir/plugins` relative to the running command's folder if it exists, else `weir/plugins` beside the core
/// library.
std::string UsualFolder();

/// The devices and kernels of all plugins. Loading never fails as a whole: an empty or missing folder gives an empty
/// catalogue.
class Catalogue {
 public:
  /// Loads device plugins first, then kernel sets whose platform has a device; each sorted by file name.
  static std::unique_ptr<Catalogue> Load(const op::OpRegistry& ops, const LoadOptions& options);

  /// These plugins and kernels with other devices, for placement over several processes.
  std::unique_ptr<Catalogue> WithDevices(device::DeviceSet devices) const;
  /// Also with other kernels, whose records `keep` owns.
  std::unique_ptr<Catalogue> WithDevices(device::DeviceSet devices, kernel::KernelRegistry kernels,
                                         std::shared_ptr<const void> keep) const;

  const device::DeviceSet& devices() const { return devices_; }
  const kernel::KernelRegistry& kernels() const { return kernels_; }
  const std::vector<kernel::CompilerEntry>& compilers() const { return compilers_; }
  /// In the order of loading, like compilers and front doors; only complete ones.
  const std::vector<kernel::TransportEntry>& transports() const { return transports_; }
  const std::vector<kernel::FrontDoorEntry>& front_doors() const { return front_doors_; }
  const std::vector<FileReport>& files() const { return files_; }
  /// `files()` after a comparison of all kernels with their ops.
  std::vector<FileReport> CheckedFiles() const;
  /// Plugins without a loaded file, with the reason: "gpu: libcuda.so.1: cannot open …". Excludes kernels for platforms
  /// without a device here, since they cannot explain a failed request.
  std::vector<std::string> Absent() const;
  const std::vector<std::string>& folders() const { return folders_; }
  /// Settings that contradict the plugins and devices found, with their location and the reason, in order.
  const std::vector<Status>& config_faults() const { return config_faults_; }
  /// Settings that match no plugin or device found, one line each.
  const std::vector<std::string>& config_notes() const { return config_notes_; }
  /// The options of the loaded plugins with their values, by plugin name.
  const std::map<std::string, std::vector<PluginOption>>& options() const { return options_; }

 private:
  friend class Loader;
  device::DeviceSet devices_;
  kernel::KernelRegistry kernels_;
  std::vector<kernel::CompilerEntry> compilers_;
  std::vector<kernel::TransportEntry> transports_;
  std::vector<kernel::FrontDoorEntry> front_doors_;
  std::vector<FileReport> files_;
  std::vector<std::string> folders_;
  std::vector<std::shared_ptr<Module>> modules_;
  std::vector<Status> config_faults_;
  std::vector<std::string> config_notes_;
  std::map<std::string, std::vector<PluginOption>> options_;
  std::shared_ptr<const void> keep_;
};

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_CATALOGUE_H_
