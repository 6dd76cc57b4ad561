// A part of a plugin in a file of its own, loaded by its first use, with the libraries that it needs. A plugin is
// opened by every process, and few processes need all of it.
#ifndef WEIR_SDK_CPP_LATE_PART_H_
#define WEIR_SDK_CPP_LATE_PART_H_

#include <dlfcn.h>

#include <string>
#include <string_view>

namespace weir::sdk {

/// A loaded part, or why there is none.
struct LatePart {
  void* symbol = nullptr;
  std::string why;
};

/// Loads `file` ("remote/tls.so"), relative to the folder above the one that holds the plugin, and finds `symbol` in
/// it. `own`: the address of a function of the plugin. The file is kept for the life of the process, and its symbols
/// and those of its libraries serve no other file: the process may use another version of them.
inline LatePart LoadLatePart(const void* own, std::string_view file, const char* symbol) {
  Dl_info info{};
  const bool known = dladdr(own, &info) != 0 && info.dli_fname != nullptr;
  const std::string_view plugin = known ? info.dli_fname : "";
  const size_t name = plugin.rfind('/');
  if (name == std::string_view::npos) return {nullptr, "the folder of the plugin is not known"};
  const std::string path = std::string(plugin.substr(0, name)) + "/../" + std::string(file);
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return {nullptr, dlerror()};
  void* const found = dlsym(library, symbol);
  return found != nullptr ? LatePart{found, ""} : LatePart{nullptr, path + " is not of this build"};
}

}  // namespace weir::sdk

#endif  // WEIR_SDK_CPP_LATE_PART_H_
