// Parts of products that do not depend on a loop, made ahead of it.
#ifndef WEIR_CORE_FUSE_LIFT_INTERNAL_H_
#define WEIR_CORE_FUSE_LIFT_INTERNAL_H_

#include "core/fuse/expression_internal.h"

namespace weir::fuse {

/// Replaces the expressions of fused ops that have a part ahead of the loop (Lift): the input of a recurrent product is
/// multiplied for all steps at once. Conditions are those of other expressions, and that the operands of the part are
/// loop constants. Stateful nodes of an expression stay, and the fused node waits for them, unless they read each
/// element of an array once that holds nothing but the operand.
Status LiftFromLoops(const FuseOptions& options, graph::StepGraph& step, graph::Placement& placement);

}  // namespace weir::fuse

#endif  // WEIR_CORE_FUSE_LIFT_INTERNAL_H_
