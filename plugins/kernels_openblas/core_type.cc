// What OpenBLAS gets for its questions to the environment. Version 0.3.21 takes cores that are newer than itself for
// old ones (Prescott, Haswell) and runs 2 to 5 times slower on them, so the plugin names the core type by CPUID. No
// variable of the real environment is read or written.
#include <cstring>

namespace {

/// Null leaves the choice to OpenBLAS: a processor older than AVX2.
const char* CoreType() {
#if defined(__x86_64__)
  __builtin_cpu_init();  // OpenBLAS asks from a constructor
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512) return "SKYLAKEX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "HASWELL";
#endif
  return nullptr;
}

}  // namespace

/// Called wherever the archive calls getenv (linker option --wrap).
extern "C" char* __wrap_getenv(const char* name) {
  return std::strcmp(name, "OPENBLAS_CORETYPE") == 0 ? const_cast<char*>(CoreType()) : nullptr;
}
