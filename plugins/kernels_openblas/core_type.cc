// Replaces OpenBLAS's reads of the environment. Version 0.3.21 mistakes newer cores for old ones (Prescott, Haswell)
// and runs 2 to 5 times slower on them, so the plugin names the core type by CPUID and by the option `isa`. No variable
// of the real environment is read or written.
#include <cstring>

#include "plugins/kernels_openblas/library.h"
#include "plugins/kernels_openblas/work_space.h"

extern "C" {
// OpenBLAS calls the first one from a constructor. Calling both selects the kernels again.
void gotoblas_dynamic_init(void);
void gotoblas_dynamic_quit(void);
}

namespace weir::kernels_openblas {
namespace {

// Written before any kernel runs.
sdk::Isa highest_isa = sdk::Isa::kAuto;

/// Null, for processors older than AVX2, leaves the choice to OpenBLAS.
const char* CoreType() {
#if defined(__x86_64__)
  __builtin_cpu_init();  // OpenBLAS calls this from a constructor
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const auto allowed = [](sdk::Isa isa) { return highest_isa == sdk::Isa::kAuto || highest_isa >= isa; };
  if (avx512 && allowed(sdk::Isa::kV4)) return "SKYLAKEX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && allowed(sdk::Isa::kV3)) return "HASWELL";
  if (highest_isa == sdk::Isa::kV2 && __builtin_cpu_supports("sse4.2")) return "NEHALEM";
  if (highest_isa == sdk::Isa::kBaseline) return "PRESCOTT";
#endif
  return nullptr;
}

}  // namespace
}  // namespace weir::kernels_openblas

extern "C" __attribute__((visibility("default"))) const weir::kernels_openblas::Library* weir_openblas_1(
    weir::sdk::Isa highest) {
  using namespace weir::kernels_openblas;
  if (highest != weir::sdk::Isa::kAuto) {
    highest_isa = highest;
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
  }
  static constexpr Library kLibrary = {&cblas_sgemm, &cblas_dgemm, &cblas_cgemm,  &cblas_zgemm,
                                       &cblas_sgemv, &cblas_dgemv, &HaveWorkSpace};
  return &kLibrary;
}

/// Replaces getenv in the archive (linker option --wrap).
extern "C" char* __wrap_getenv(const char* name) {
  const bool asked = std::strcmp(name, "OPENBLAS_CORETYPE") == 0;
  return asked ? const_cast<char*>(weir::kernels_openblas::CoreType()) : nullptr;
}
