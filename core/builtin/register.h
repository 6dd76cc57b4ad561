// All builtin kernels.
#ifndef WEIR_CORE_BUILTIN_REGISTER_H_
#define WEIR_CORE_BUILTIN_REGISTER_H_

#include "core/kernel/builtin.h"

namespace weir::builtin {

/// Adds every builtin kernel: one call per family, in visible order.
void AddAll(kernel::BuiltinRegistry& kernels);

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_REGISTER_H_
