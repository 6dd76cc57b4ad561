// Names of plugins/functors/region_ops.h in this namespace.
#ifndef WEIR_PLUGINS_COMPILER_LLVM_OPS_H_
#define WEIR_PLUGINS_COMPILER_LLVM_OPS_H_

#include "plugins/functors/region_ops.h"

namespace weir::compiler_llvm {

using functors::FindOp;
using functors::FitsRule;
using functors::FloatAttr;
using functors::Form;
using functors::IntAttr;
using functors::IsFloating;
using functors::IsInteger;
using functors::IsUnsigned;
using functors::OpRule;
using functors::StringAttr;

}  // namespace weir::compiler_llvm

#endif  // WEIR_PLUGINS_COMPILER_LLVM_OPS_H_
