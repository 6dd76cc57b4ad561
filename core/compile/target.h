// The processor for which regions are compiled.
#ifndef WEIR_CORE_COMPILE_TARGET_H_
#define WEIR_CORE_COMPILE_TARGET_H_

#include <optional>
#include <string>

#include "sdk/abi/compiler.h"

namespace weir::compile {

/// "GenuineIntel family6 model85 sse4_2 avx2 …" from /proc/cpuinfo; empty if the system does not say. Read once.
const std::string& ProcessorText();

/// Owns what a weir_compile_target points to.
struct Target {
  std::string platform;
  std::string isa;
  std::string cpu;
  std::optional<weir_profile> profile;

  /// Borrows this.
  weir_compile_target View() const;
};

}  // namespace weir::compile

#endif  // WEIR_CORE_COMPILE_TARGET_H_
