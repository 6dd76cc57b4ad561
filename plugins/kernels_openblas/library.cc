#include "plugins/kernels_openblas/library.h"

#include <string>

#include "sdk/cpp/late_part.h"

namespace weir::kernels_openblas {
namespace {

const Library* functions = nullptr;  // set once by LoadOpenBlas

/// Sets `functions`. Returns why they cannot be used, or nothing.
std::string Load() {
  const sdk::LatePart part = sdk::LoadLatePart(reinterpret_cast<const void*>(&LoadOpenBlas),
                                               "kernels_openblas/gemm.so", WEIR_OPENBLAS_SYMBOL);
  if (part.symbol != nullptr) functions = reinterpret_cast<LibraryFn>(part.symbol)(sdk::HighestIsa());
  return part.why;
}

}  // namespace

int32_t LoadOpenBlas(const sdk::Error& error) {
  static const std::string why = Load();
  return why.empty() ? int32_t{WEIR_OK} : error.Unimplemented("OpenBLAS: ", why);
}

const Library& OpenBlas() { return *functions; }

}  // namespace weir::kernels_openblas
