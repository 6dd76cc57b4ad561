// Laying out an object file.
#ifndef WEIR_PLUGINS_COMPILER_LLVM_BACKEND_OBJECT_H_
#define WEIR_PLUGINS_COMPILER_LLVM_BACKEND_OBJECT_H_

#include <span>
#include <string>

#include "plugins/compiler_llvm/backend/backend.h"

namespace weir::compiler_llvm {

/// Lays out the code and constants of an ELF object for x86-64 behind each other, which resolves all references: the
/// object may refer to nothing else. `entry` is the name of a function.
bool LayOut(std::span<const uint8_t> object, const char* entry, Code* code, std::string* why);

}  // namespace weir::compiler_llvm

#endif  // WEIR_PLUGINS_COMPILER_LLVM_BACKEND_OBJECT_H_
