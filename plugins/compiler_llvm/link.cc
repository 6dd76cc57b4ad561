#include "plugins/compiler_llvm/link.h"

#include <dlfcn.h>

#include <cstring>
#include <mutex>

#include "plugins/compiler_llvm/build.h"

namespace weir::compiler_llvm {
namespace {

struct Loaded {
  const Backend* backend = nullptr;
  std::string why;
};

/// ".../lib/weir/plugins/compiler_llvm.so" -> ".../lib/weir/compiler_llvm/backend.so"; empty if that is not known.
std::string BackendPath() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&LoadBackend), &info) == 0 || info.dli_fname == nullptr) return "";
  const std::string file = info.dli_fname;
  const size_t name = file.rfind('/');
  if (name == std::string::npos) return "";
  return file.substr(0, name) + "/../compiler_llvm/backend.so";
}

Loaded Load() {
  const std::string path = BackendPath();
  if (path.empty()) return {nullptr, "the folder of the plugin compiler_llvm is not known"};
  // Local: other parts of the process may use another LLVM.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {nullptr, dlerror()};
  const auto entry = reinterpret_cast<BackendFn>(dlsym(library, WEIR_LLVM_BACKEND_SYMBOL));
  const Backend* backend = entry == nullptr ? nullptr : entry();
  if (backend == nullptr || std::strcmp(backend->build, kBuild) != 0) {
    return {nullptr, path + " is not of this build: wanted " + kBuild};
  }
  return {backend, ""};
}

}  // namespace

const Backend* LoadBackend(std::string* why) {
  static const Loaded loaded = Load();
  *why = loaded.why;
  return loaded.backend;
}

}  // namespace weir::compiler_llvm
