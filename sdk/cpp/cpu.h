// The processor of this machine, for plugins whose costs depend on it.
#ifndef WEIR_SDK_CPP_CPU_H_
#define WEIR_SDK_CPP_CPU_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "sdk/cpp/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace weir::sdk {

/// Kinds of processors with constants of their own: maker, and the instruction set that kernels may use.
/// Zen 5 is the first of AMD whose units are as wide as the vectors of AVX-512.
enum class CpuClass : uint8_t { kBaseline, kAmdAvx2, kAmdAvx512, kAmdZen5, kIntelAvx2, kIntelAvx512 };

/// "amd-avx512"
inline std::string_view Name(CpuClass kind) {
  constexpr std::string_view kNames[] = {"baseline", "amd-avx2",   "amd-avx512",
                                         "amd-zen5", "intel-avx2", "intel-avx512"};
  return kNames[static_cast<size_t>(kind)];
}

struct Cpu {
  bool amd = false;          // AMD or Hygon
  bool zen5 = false;         // AMD since family 26; read only where the system supports AVX-512
  Isa isa = Isa::kBaseline;  // the highest level that the processor and the system support

  /// The level that kernels use if `highest` is the limit.
  Isa Below(Isa highest) const { return highest == Isa::kAuto || highest > isa ? isa : highest; }
  /// The nearest class: makers other than AMD and Hygon count as Intel.
  CpuClass Class(Isa highest) const {
    const Isa level = Below(highest);
    if (level == Isa::kV4 && zen5) return CpuClass::kAmdZen5;
    if (level == Isa::kV4) return amd ? CpuClass::kAmdAvx512 : CpuClass::kIntelAvx512;
    if (level == Isa::kV3) return amd ? CpuClass::kAmdAvx2 : CpuClass::kIntelAvx2;
    return CpuClass::kBaseline;
  }
};

/// What the processor calls itself.
struct CpuModel {
  std::string brand;  // "AMD EPYC"; empty if the processor does not tell
  uint32_t family = 0, model = 0, stepping = 0;
};

namespace internal {

/// Of the first word of leaf 1: the base family and, where that is 15, the extended one.
inline uint32_t FamilyOf(uint32_t signature) {
  const uint32_t base = signature >> 8 & 0xf;
  return base == 0xf ? base + (signature >> 20 & 0xff) : base;
}

// In a virtual machine each `cpuid` takes microseconds; what the compiler's own check has read costs nothing more.
inline Cpu ReadCpu() {
  Cpu cpu;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("sse4.2") != 0) cpu.isa = Isa::kV2;
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) cpu.isa = Isa::kV3;
  if (cpu.isa == Isa::kV3 && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0) {
    cpu.isa = Isa::kV4;
  }
  cpu.amd = __builtin_cpu_is("amd") != 0;
  if (cpu.amd && cpu.isa == Isa::kV4) {
    uint32_t a = 0, b = 0, c = 0, d = 0;
    __cpuid(1, a, b, c, d);
    cpu.zen5 = FamilyOf(a) >= 26;
  }
  if (!cpu.amd && __builtin_cpu_is("intel") == 0) {
    uint32_t a = 0, b = 0, c = 0, d = 0;
    __cpuid(0, a, b, c, d);
    char maker[12];
    std::memcpy(maker, &b, 4);
    std::memcpy(maker + 4, &d, 4);
    std::memcpy(maker + 8, &c, 4);
    cpu.amd = std::string_view(maker, sizeof maker) == "HygonGenuine";
  }
#endif
  return cpu;
}

}  // namespace internal

/// Reads it anew.
inline CpuModel ReadCpuModel() {
  CpuModel cpu;
#if defined(__x86_64__)
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) {
    cpu.stepping = a & 0xf;
    cpu.family = internal::FamilyOf(a);
    cpu.model = a >> 4 & 0xf;
    if (cpu.family >= 0xf || cpu.family == 6) cpu.model += (a >> 16 & 0xf) << 4;
  }
  __cpuid(0x80000000, a, b, c, d);
  if (a >= 0x80000004) {
    uint32_t words[12] = {};
    for (uint32_t i = 0; i < 3; ++i) {
      __cpuid(0x80000002 + i, words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]);
    }
    char text[sizeof words + 1] = {};
    std::memcpy(text, words, sizeof words);
    const std::string_view brand(text);
    const size_t begin = brand.find_first_not_of(' '), end = brand.find_last_not_of(' ');
    if (begin != std::string_view::npos) cpu.brand = brand.substr(begin, end - begin + 1);
  }
#endif
  return cpu;
}

/// Read once. The instruction sets do not include what `plugins.isa` forbids: see Cpu::Below and HighestIsa.
inline const Cpu& ThisCpu() {
  static const Cpu cpu = internal::ReadCpu();
  return cpu;
}

/// The class of this machine under the plugin's option `isa`, if it has one (IsaOption).
inline CpuClass ThisCpuClass() { return ThisCpu().Class(HighestIsa()); }

}  // namespace weir::sdk

#endif  // WEIR_SDK_CPP_CPU_H_
