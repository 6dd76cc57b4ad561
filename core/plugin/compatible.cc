#include "core/plugin/compatible.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <string>
#include <string_view>

#include "core/base/errors.h"

#ifndef WEIR_SANITIZER_KIND
#define WEIR_SANITIZER_KIND 0
#endif

namespace weir::plugin {
namespace {

#if defined(__x86_64__)
// Register state that the operating system saves on a context switch; wide registers are usable only if it does.
uint64_t SavedState() {
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

// The feature sets of the x86-64 psABI levels.
uint32_t DetectIsa() {
  uint32_t eax = 0, ebx1 = 0, ecx1 = 0, edx1 = 0;
  if (__get_cpuid(1, &eax, &ebx1, &ecx1, &edx1) == 0) return 0;
  uint32_t ebx7 = 0, ecx7 = 0, edx7 = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx7, &ecx7, &edx7) == 0) ebx7 = 0;
  uint32_t ebx_ext = 0, ecx_ext = 0, edx_ext = 0;
  if (__get_cpuid(0x80000001, &eax, &ebx_ext, &ecx_ext, &edx_ext) == 0) ecx_ext = 0;

  constexpr uint32_t kV2 = bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT | bit_CMPXCHG16B;
  constexpr uint32_t kLahf = 1u << 0;
  if ((ecx1 & kV2) != kV2 || (ecx_ext & kLahf) == 0) return 0;
  uint32_t isa = WEIR_ISA_X86_64_V2;

  constexpr uint32_t kV3 = bit_AVX | bit_FMA | bit_F16C | bit_MOVBE | bit_OSXSAVE;
  constexpr uint32_t kV3Leaf7 = bit_AVX2 | bit_BMI | bit_BMI2;
  if ((ecx1 & kV3) != kV3 || (ebx7 & kV3Leaf7) != kV3Leaf7 || (ecx_ext & bit_LZCNT) == 0) return isa;
  const uint64_t saved = SavedState();
  if ((saved & 0x6) != 0x6) return isa;
  isa |= WEIR_ISA_X86_64_V3;

  constexpr uint32_t kV4Leaf7 = bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;
  if ((ebx7 & kV4Leaf7) == kV4Leaf7 && (saved & 0xe6) == 0xe6) isa |= WEIR_ISA_X86_64_V4;
  return isa;
}
#else
uint32_t DetectIsa() { return 0; }
#endif

constexpr uint32_t kKnownIsa = WEIR_ISA_X86_64_V2 | WEIR_ISA_X86_64_V3 | WEIR_ISA_X86_64_V4;

std::string IsaName(uint32_t isa) {
  return IsaLevel(isa) == 0 ? "plain x86-64" : fmt::format("x86-64-v{}", IsaLevel(isa));
}

std::string_view SanitizerName(uint32_t kind) {
  switch (kind) {
    case WEIR_SANITIZER_NONE:
      return "no sanitizer";
    case WEIR_SANITIZER_ADDRESS:
      return "the address sanitizer";
    case WEIR_SANITIZER_THREAD:
      return "the thread sanitizer";
    case WEIR_SANITIZER_MEMORY:
      return "the memory sanitizer";
    default:
      return "an unknown sanitizer";
  }
}

}  // namespace

HostTraits HostTraits::Current(std::string_view isa) {
  HostTraits host;
#if defined(__aarch64__)
  host.machine = WEIR_MACHINE_AARCH64;
#else
  host.machine = WEIR_MACHINE_X86_64;
#endif
  static const uint32_t detected = DetectIsa();
  host.cpu_isa = detected;
  host.isa = detected & IsaUpTo(isa);
  host.sanitizer = WEIR_SANITIZER_KIND;
  return host;
}

Status CheckCompatible(const PluginNote& note, const HostTraits& host) {
  if (note.machine != host.machine) {
    return FailedPrecondition("built for machine {} (ELF number), this is {}", note.machine, host.machine);
  }
  if (note.abi_major != host.abi_major) {
    return FailedPrecondition("built for ABI major {}, this weir has {}", note.abi_major, host.abi_major);
  }
  if (note.needs_minor > host.abi_minor) {
    return FailedPrecondition("needs ABI {}.{}, this weir has {}.{}", note.abi_major, note.needs_minor, host.abi_major,
                              host.abi_minor);
  }
  if (note.must_understand != 0) {
    return FailedPrecondition("its note has must-understand bits {:#x}, none of which this weir knows",
                              note.must_understand);
  }
  if (note.sanitizer != host.sanitizer) {
    return FailedPrecondition("built with {}, this weir with {}", SanitizerName(note.sanitizer),
                              SanitizerName(host.sanitizer));
  }
  if ((note.isa & ~kKnownIsa) != 0) {
    return FailedPrecondition("needs instruction-set bits {:#x}, of which this weir knows {:#x}", note.isa, kKnownIsa);
  }
  return {};
}

Status CheckIsa(const PluginNote& note, const HostTraits& host) {
  if ((note.isa & ~host.isa) == 0) return {};
  const bool capped = (note.isa & ~host.cpu_isa) == 0;
  return FailedPrecondition("needs {}, {} {}", IsaName(note.isa), capped ? "plugins.isa allows" : "this CPU has",
                            IsaName(capped ? host.isa : host.cpu_isa));
}

uint32_t IsaUpTo(std::string_view level) {
  if (level == "x86-64") return 0;
  if (level == "x86-64-v2") return WEIR_ISA_X86_64_V2;
  if (level == "x86-64-v3") return WEIR_ISA_X86_64_V2 | WEIR_ISA_X86_64_V3;
  return kKnownIsa;
}

std::string IsaText(std::string_view isa) {
  const int level = IsaLevel(HostTraits::Current(isa).isa);
  return level == 0 ? "x86-64" : fmt::format("x86-64-v{}", level);
}

int IsaLevel(uint32_t isa) {
  if ((isa & WEIR_ISA_X86_64_V4) != 0) return 4;
  if ((isa & WEIR_ISA_X86_64_V3) != 0) return 3;
  return (isa & WEIR_ISA_X86_64_V2) != 0 ? 2 : 0;
}

}  // namespace weir::plugin
