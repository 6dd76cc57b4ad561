// The loops of a program.
#ifndef WEIR_PLUGINS_COMPILER_LLVM_BACKEND_NEST_H_
#define WEIR_PLUGINS_COMPILER_LLVM_BACKEND_NEST_H_

#include "plugins/compiler_llvm/backend/backend.h"
#include "plugins/compiler_llvm/backend/ir.h"

namespace weir::compiler_llvm {

/// Adds the function `name`, a CodeFn.
void EmitNest(Ir& ir, const Program& program, Level level, const char* name);

}  // namespace weir::compiler_llvm

#endif  // WEIR_PLUGINS_COMPILER_LLVM_BACKEND_NEST_H_
