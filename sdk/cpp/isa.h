// The option `isa`, for plugins whose kernels choose their instruction set at run time.
#ifndef WEIR_SDK_CPP_ISA_H_
#define WEIR_SDK_CPP_ISA_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "sdk/abi/plugin.h"
#include "sdk/cpp/options.h"
#include "sdk/cpp/status.h"

namespace weir::sdk {

/// The highest level of x86-64 that kernels may use; kAuto: the CPU's own.
enum class Isa { kAuto, kBaseline, kV2, kV3, kV4 };

/// The value of the plugin's option `isa`; kAuto before init and in plugins without the option. Written by init only.
inline Isa& HighestIsa() {
  static Isa highest = Isa::kAuto;
  return highest;
}

/// A part of WEIR_PLUGIN: declares the option, whose value is that of the key plugins.isa, and calls `kLimit` once from
/// init unless the value is kAuto. `kLimit` returns a code, and its error text in the record.
template <int32_t (*kLimit)(Isa highest, weir_error* error)>
struct IsaOption {
  static std::span<const weir_option_spec* const> Options() {
    static const weir_option_spec isa = [] {
      weir_option_spec spec{};
      spec.struct_size = sizeof spec;
      spec.type = WEIR_VALUE_STRING;
      spec.key = Str("isa");
      spec.doc = Str("highest instruction set of the kernels: auto, x86-64, x86-64-v2, x86-64-v3 or x86-64-v4");
      spec.default_value.key = spec.key;
      spec.default_value.type = WEIR_VALUE_STRING;
      spec.default_value.value.s = Str("auto");
      return spec;
    }();
    static const weir_option_spec* const specs[] = {&isa};
    return specs;
  }

  static int32_t Start(const sdk::Options& options, const Error& error) {
    constexpr std::string_view kLevels[] = {"auto", "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
    const std::string_view wanted = options.String("isa", kLevels[0]);
    for (int level = 0; level < 5; ++level) {
      if (kLevels[level] != wanted) continue;
      HighestIsa() = static_cast<Isa>(level);
      return level == 0 ? WEIR_OK : kLimit(static_cast<Isa>(level), error.record());
    }
    return error.InvalidArgument("isa: wanted auto, x86-64, x86-64-v2, x86-64-v3 or x86-64-v4, got '", wanted, "'");
  }
};

}  // namespace weir::sdk

#endif  // WEIR_SDK_CPP_ISA_H_
