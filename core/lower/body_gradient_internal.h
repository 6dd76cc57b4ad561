// Bodies derived from other bodies: gradients, and bodies reduced to their results.
#ifndef WEIR_CORE_LOWER_BODY_GRADIENT_INTERNAL_H_
#define WEIR_CORE_LOWER_BODY_GRADIENT_INTERNAL_H_

#include <memory>
#include <span>

#include "core/base/status.h"
#include "core/graph/function_body.h"

namespace weir::lower {

/// Operand types of a SymbolicGradient.
struct GradientTypes {
  std::span<const DType> inputs;               // arguments, then gradients of the results
  std::span<const PartialShape> input_shapes;  // as far as known
  std::span<const DType> results;              // gradients of the arguments; for a handle the variable's type
};

/// A body with the arguments of `body` followed by gradients of its results. Its results are gradients of the
/// arguments, zeros if there are none. It recomputes the values of `body` that it needs and adds functions that it
/// calls to `bodies`. Unimplemented for v1 control flow in the body and as in ValuesBody; InvalidArgument if types
/// differ from those of the body; otherwise errors of gradient functions.
Result<std::unique_ptr<const graph::FunctionBody>> GradientBody(const graph::FunctionBody& body,
                                                                const GradientTypes& types,
                                                                graph::FunctionBodies& bodies);

/// The body reduced to the nodes that its results need. Because the caller computes them a second time, Unimplemented
/// if one of them has side effects or is not deterministic, such as random ops.
Result<std::unique_ptr<const graph::FunctionBody>> ValuesBody(const graph::FunctionBody& body);

}  // namespace weir::lower

#endif  // WEIR_CORE_LOWER_BODY_GRADIENT_INTERNAL_H_
