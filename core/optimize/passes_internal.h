// The passes of Optimize.
#ifndef WEIR_CORE_OPTIMIZE_PASSES_INTERNAL_H_
#define WEIR_CORE_OPTIMIZE_PASSES_INTERNAL_H_

#include "core/optimize/optimize.h"

namespace weir::optimize {

/// Inputs of a pass besides the step.
struct PassContext {
  const OptimizeOptions& options;
  const graph::Definition& graph;
  const graph::StepRequest& request;
  Evaluator* evaluator;
};

/// Builds the step, which is empty before: ancestors of fetches and targets in topological order, with feeds in place
/// of the nodes that they replace.
Status Prune(const PassContext& context, graph::StepGraph& step);

/// What was read from a reference variable shares the variable's memory in TensorFlow: a user that must follow a write
/// of the step gets the value after that write, and a fetch the value at the end of the step. Gives such users reads of
/// their own, which have the source of the first read. Follows references and values through ops that hand them on, but
/// not through conds, loops and reshapes.
Status ReadLate(const PassContext& context, graph::StepGraph& step);

/// Infers shapes from the feeds' shapes and folds constants in one walk, because each depends on the other.
Status InferAndFold(const PassContext& context, graph::StepGraph& step);

/// Drops the known shapes of reference variables that an Assign in the graph may reshape (validate_shape = false), and
/// of all values derived from them. Folded values stay: they depend on static shapes only.
Status ForgetShapes(const PassContext& context, graph::StepGraph& step);

/// Sorts the two operands of a commutative op by name where their shapes are not known, as TensorFlow's rewrites do:
/// the error of shapes that do not fit names them in that order. Bits stay.
Status OrderOperands(const PassContext& context, graph::StepGraph& step);

/// Replaces a stateless node by an equal earlier one.
Status MergeEqualNodes(const PassContext& context, graph::StepGraph& step);

/// Drops control edges from stateless nodes whose outputs are unused. TensorFlow's gradients create them: a group
/// forces all gradients of an op before the first use.
Status RelaxControls(const PassContext& context, graph::StepGraph& step);

/// In deterministic mode, InvalidArgument for a random op without a seed.
Status CheckSeeds(const PassContext& context, graph::StepGraph& step);

/// Drops arithmetic that changes nothing (x * 1, two transposes that cancel), and merges ops of one kind in a row. The
/// bits of integers stay; those of floats change only where constants of one sign, or factors, are merged.
Status Simplify(const PassContext& context, graph::StepGraph& step);

/// Multiplies constant filters by the constant factors behind their convolutions, batch norms in inference among them,
/// and merges the summands into one bias. Within 1e-5 of the largest sum of absolute products.
Status FoldIntoFilters(const PassContext& context, graph::StepGraph& step);

/// Removes nodes that no fetch or target needs.
Status DropUnused(const PassContext& context, graph::StepGraph& step);

}  // namespace weir::optimize

#endif  // WEIR_CORE_OPTIMIZE_PASSES_INTERNAL_H_
