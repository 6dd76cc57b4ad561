#include "plugins/kernels_onednn/library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <string>
#include <type_traits>

#include "sdk/cpp/isa.h"

namespace weir::kernels_onednn {
namespace {

Library functions;

/// Fills `functions`. Returns why they cannot be used, or nothing.
std::string Load() {
  void* const library = dlopen(WEIR_ONEDNN_FILE, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
  const auto find = [library](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
#define WEIR_ONEDNN_FIND(name) \
  if (!find(#name, functions.name)) return std::string(WEIR_ONEDNN_FILE) + " lacks " #name;
  WEIR_ONEDNN_FUNCTIONS(WEIR_ONEDNN_FIND)
#undef WEIR_ONEDNN_FIND
  const sdk::Isa highest = sdk::HighestIsa();
  if (highest == sdk::Isa::kAuto) return "";
  // oneDNN selects the instruction set on its first use, for the whole process.
  const dnnl_cpu_isa_t isa = highest == sdk::Isa::kV4   ? dnnl_cpu_isa_avx512_core
                             : highest == sdk::Isa::kV3 ? dnnl_cpu_isa_avx2
                                                        : dnnl_cpu_isa_sse41;
  if (functions.dnnl_set_max_cpu_isa(isa) == dnnl_success) return "";
  return "it cannot be limited to an instruction set, because it was used before";
}

}  // namespace

int32_t LoadOneDnn(const sdk::Error& error) {
  static const std::string why = Load();
  return why.empty() ? int32_t{WEIR_OK} : error.Unimplemented("oneDNN: ", why);
}

const Library& OneDnn() { return functions; }

int32_t NeedsOneDnn::Start(const sdk::Options&, const sdk::Error& error) {
  if (access(WEIR_ONEDNN_FOLDER "/" WEIR_ONEDNN_FILE, R_OK) == 0) return WEIR_OK;
  return LoadOneDnn(error);  // it may lie in another folder that the dynamic linker searches
}

}  // namespace weir::kernels_onednn
