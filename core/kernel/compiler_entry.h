// A compiler that a plugin brings.
#ifndef WEIR_CORE_KERNEL_COMPILER_ENTRY_H_
#define WEIR_CORE_KERNEL_COMPILER_ENTRY_H_

#include <memory>
#include <string>

#include "sdk/abi/compiler.h"

namespace weir::kernel {

struct CompilerEntry {
  const weir_compiler_api* api = nullptr;  // complete (IsComplete); lives as long as the process
  std::string plugin;
  std::string version;
  std::shared_ptr<const void> keep;  // keeps the plugin from being shut down
};

/// True if the table has every function that is not optional.
inline bool IsComplete(const weir_compiler_api* api) {
  return WEIR_HAS(api, claim) && WEIR_HAS(api, compile) && WEIR_HAS(api, io_spec) && WEIR_HAS(api, execute) &&
         WEIR_HAS(api, destroy);
}

/// True if executables can be kept as bytes.
inline bool Serializes(const weir_compiler_api* api) {
  return WEIR_HAS(api, serialize) && WEIR_HAS(api, deserialize) && WEIR_HAS(api, compat) && WEIR_HAS(api, key);
}

/// True if regions that are loops may be shown to it.
inline bool TakesLoops(const weir_compiler_api* api) { return WEIR_HAS(api, claim_loop); }

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_COMPILER_ENTRY_H_
