// Plugin folders with the CPU, the emulated GPUs and their kernels. The emulated memory cannot be read by the host, so
// a missing copy ends a test with a fault.
#ifndef WEIR_TESTS_SUPPORT_GPU_PLUGINS_H_
#define WEIR_TESTS_SUPPORT_GPU_PLUGINS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config.h"
#include "core/plugin/catalogue.h"

namespace weir::testing {

/// Options of the plugin gpu_emulated, as texts: {"devices", "2"}.
using GpuOptions = std::vector<std::pair<std::string, std::string>>;

/// A folder with copies of the plugins, whose options are independent of other folders': a plugin keeps the options
/// that it was started with. Removed with the object.
class GpuFolder {
 public:
  GpuFolder();
  ~GpuFolder();
  GpuFolder(const GpuFolder&) = delete;
  GpuFolder& operator=(const GpuFolder&) = delete;

  /// Empty if the build lacks a plugin.
  const std::string& path() const { return path_; }
  plugin::LoadOptions Load(const GpuOptions& gpu, config::Config config = {}) const;

 private:
  std::string path_;
};

}  // namespace weir::testing

#endif  // WEIR_TESTS_SUPPORT_GPU_PLUGINS_H_
