// Facts about elementwise ops that their records do not state.
#ifndef WEIR_CORE_OPS_ELEMENTWISE_H_
#define WEIR_CORE_OPS_ELEMENTWISE_H_

#include "core/op/op_def.h"
#include "core/tensor/dtype.h"

namespace weir::ops {

/// True if the op on elements of this type fails for some of them: integer division by zero, integers to negative
/// powers.
bool MayRefuseElements(const op::OpDef& op, DType type);

}  // namespace weir::ops

#endif  // WEIR_CORE_OPS_ELEMENTWISE_H_
