// The backend's library, loaded on first use.
#ifndef WEIR_PLUGINS_COMPILER_LLVM_LINK_H_
#define WEIR_PLUGINS_COMPILER_LLVM_LINK_H_

#include <string>

#include "plugins/compiler_llvm/backend/backend.h"

namespace weir::compiler_llvm {

/// The backend beside this plugin: compiler_llvm/backend.so in the folder above the plugin's. Loaded once, with LLVM,
/// and kept; null with a reason if it cannot be loaded, or belongs to another build. Any thread.
const Backend* LoadBackend(std::string* why);

}  // namespace weir::compiler_llvm

#endif  // WEIR_PLUGINS_COMPILER_LLVM_LINK_H_
