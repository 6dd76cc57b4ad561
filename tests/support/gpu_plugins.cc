#include "tests/support/gpu_plugins.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

namespace weir::testing {

namespace fs = std::filesystem;

GpuFolder::GpuFolder() {
  const char* const build = std::getenv("WEIR_BUILD_DIR");
  std::string pattern = (fs::temp_directory_path() / "weir_gpu_XXXXXX").string();
  if (build == nullptr || mkdtemp(pattern.data()) == nullptr) return;
  chmod(pattern.c_str(), 0755);
  path_ = fs::canonical(pattern).string();
  for (const char* file : {"plugins/cpu.so", "plugins/kernels_eigen.so", "gpu_emulated/gpu_emulated.so",
                           "gpu_emulated/kernels_gpu_emulated.so"}) {
    const fs::path from = fs::path(build) / "lib/weir" / file, to = fs::path(path_) / from.filename();
    std::error_code error;
    if (fs::copy_file(from, to, error)) {
      chmod(to.c_str(), 0755);
    } else if (from.stem() != "kernels_gpu_emulated") {
      fs::remove_all(path_, error);
      path_.clear();
      return;
    }
  }
}

GpuFolder::~GpuFolder() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
}

plugin::LoadOptions GpuFolder::Load(const GpuOptions& gpu, config::Config config) const {
  for (const auto& [key, value] : gpu) config.plugin["gpu_emulated"][key] = {{value, true}, {}};
  plugin::LoadOptions options;
  options.folders = {path_};
  options.config = std::move(config);
  return options;
}

}  // namespace weir::testing
