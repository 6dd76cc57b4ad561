// All builtin kernels.
#ifndef WEIR_CORE_BUILTIN_REGISTER_H_
#define WEIR_CORE_BUILTIN_REGISTER_H_

#include "core/kernel/registry.h"

namespace weir::builtin {

/// Adds all kernels of platform `host`, with one call per family.
void AddAll(kernel::KernelRegistry& kernels);

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_REGISTER_H_
