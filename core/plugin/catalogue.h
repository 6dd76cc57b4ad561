// Finds plugin files, reads their notes, loads what fits, and says of every file what became of it.
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
#include "core/kernel/registry.h"
#include "core/op/registry.h"
#include "core/plugin/options.h"

namespace weir::plugin {

class Module;

/// kPassedOver: a form of a plugin for instructions that this CPU lacks or `plugins.isa` excludes, beside another form.
enum class Verdict { kLoaded, kNotAPlugin, kPassedOver, kRefused, kCrashed, kHung, kNoDevices };
/// "loaded", "not-a-plugin", "passed-over", "refused", "crashed", "hung", "no-devices".
std::string_view Name(Verdict verdict);

/// What became of one file (or of a folder that may not be searched).
struct FileReport {
  std::string file;  // absolute path
  std::string name;
  std::string version;
  Verdict verdict = Verdict::kNotAPlugin;
  std::string reason;  // of a verdict other than loaded; with loaded, what of the file was refused
  int devices = 0;
  int kernels = 0;
  bool foreign = false;  // kernels for devices that are not here: nothing that anyone misses

  /// The file ought to have been loaded and was not.
  bool failed() const {
    return verdict == Verdict::kRefused || verdict == Verdict::kCrashed || verdict == Verdict::kHung;
  }
};

struct LoadOptions {
  /// Folders to search, in order; empty = the folder fixed relative to the library or command (`SearchPath`).
  std::vector<std::string> folders;
  /// Plugin names not to load.
  std::vector<std::string> deny;
  /// Which devices there are and how much memory they may use, and the options of plugins.
  config::Config config;
  /// For loading and init together, and for enumerate; a plugin that takes longer is listed as hung and left alone.
  int time_limit_ms = 10000;
  /// What `plugins.probe` runs; empty = ProbeProgram().
  std::string probe_program;
};

/// The default folders: $WEIR_PLUGIN_PATH (absolute paths separated by colons; ignored with privileges), else the usual
/// one.
std::vector<std::string> SearchPath();
/// `../lib/weir/plugins` from the running command's folder when it exists, else `weir/plugins` beside the core library.
std::string UsualFolder();

/// Everything that plugins brought. Loading never fails as a whole: an empty or missing folder gives an empty
/// catalogue.
class Catalogue {
 public:
  /// Device plugins first, then kernel sets whose platform has a device; sorted by file name.
  static std::unique_ptr<Catalogue> Load(const op::OpRegistry& ops, const LoadOptions& options);

  const device::DeviceSet& devices() const { return devices_; }
  const kernel::KernelRegistry& kernels() const { return kernels_; }
  const std::vector<FileReport>& files() const { return files_; }
  /// Plugins of which no file was loaded, with the reason, "gpu: libcuda.so.1: cannot open …". Kernels for devices that
  /// are not here are left out: their absence is no cause of a request that cannot be met.
  std::vector<std::string> Absent() const;
  const std::vector<std::string>& folders() const { return folders_; }
  /// What of the configuration does not fit the plugins and devices that were found: places and reasons, in order.
  const std::vector<Status>& config_faults() const { return config_faults_; }
  /// What of the configuration is about nothing that was found, a line each.
  const std::vector<std::string>& config_notes() const { return config_notes_; }
  /// The options of the loaded plugins with their values, by plugin name.
  const std::map<std::string, std::vector<PluginOption>>& options() const { return options_; }

 private:
  friend class Loader;
  device::DeviceSet devices_;
  kernel::KernelRegistry kernels_;
  std::vector<FileReport> files_;
  std::vector<std::string> folders_;
  std::vector<std::shared_ptr<Module>> modules_;
  std::vector<Status> config_faults_;
  std::vector<std::string> config_notes_;
  std::map<std::string, std::vector<PluginOption>> options_;
};

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_CATALOGUE_H_
