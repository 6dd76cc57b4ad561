// Gradients of calls and of functional control flow. They recompute the forward values that they need, so the values of
// the bodies must depend on their arguments only. Merging of equal nodes removes computations that a step would do
// twice.
#ifndef WEIR_CORE_OPS_FUNCTIONAL_GRADIENTS_H_
#define WEIR_CORE_OPS_FUNCTIONAL_GRADIENTS_H_

#include <vector>

#include "core/base/status.h"
#include "core/op/grad_context.h"

namespace weir::ops {

/// A SymbolicGradient of the function.
Result<std::vector<op::Grad>> CallGradient(op::GradContext& g);
/// An If or Case over gradients of the branches.
Result<std::vector<op::Grad>> IfGradient(op::GradContext& g);
Result<std::vector<op::Grad>> CaseGradient(op::GradContext& g);
/// Two loops: a forward loop that saves the variables of each iteration in lists, and a backward loop that passes the
/// saved values to the gradient of the body.
Result<std::vector<op::Grad>> WhileGradient(op::GradContext& g);

}  // namespace weir::ops

#endif  // WEIR_CORE_OPS_FUNCTIONAL_GRADIENTS_H_
