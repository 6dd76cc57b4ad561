// The passes behind Optimize.
#ifndef WEIR_CORE_OPTIMIZE_PASSES_INTERNAL_H_
#define WEIR_CORE_OPTIMIZE_PASSES_INTERNAL_H_

#include "core/optimize/optimize.h"

namespace weir::optimize {

/// What a pass may look at besides the step.
struct PassContext {
  const OptimizeOptions& options;
  const graph::StepRequest& request;
  Evaluator* evaluator;
};

/// Builds the step: ancestors of fetches and targets, feeds in place of what they replace, in topological order.
Result<graph::StepGraph> Prune(const graph::Graph& graph, const graph::StepRequest& request);

/// Shape inference from the fed shapes on, folding constants on the way, since each serves the other.
Status InferAndFold(const PassContext& context, graph::StepGraph& step);

/// Takes back what is known of the shapes of reference variables that some Assign of the graph may give another shape
/// (validate_shape = false), and of all that is made from them. What was folded stays: static shapes do not change.
Status ForgetShapes(const PassContext& context, graph::StepGraph& step);

/// Replaces stateless nodes by an earlier equal one.
Status MergeEqualNodes(const PassContext& context, graph::StepGraph& step);

/// Lets nobody wait for a stateless node whose value nobody reads, as in TensorFlow's gradients, where groups order all
/// gradients of an op before any of them is used.
Status RelaxControls(const PassContext& context, graph::StepGraph& step);

/// Drops nodes that neither a fetch nor a target needs.
Status DropUnused(const PassContext& context, graph::StepGraph& step);

}  // namespace weir::optimize

#endif  // WEIR_CORE_OPTIMIZE_PASSES_INTERNAL_H_
