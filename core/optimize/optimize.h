// Optimization: from a graph and a request to the step graph to execute.
#ifndef WEIR_CORE_OPTIMIZE_OPTIMIZE_H_
#define WEIR_CORE_OPTIMIZE_OPTIMIZE_H_

#include <cstdint>
#include <vector>

#include "core/base/passes.h"
#include "core/base/status.h"
#include "core/graph/step_graph.h"

namespace weir::optimize {

/// Computes a stateless node from host values; implemented by the owner of the kernels. On an error the node is not
/// folded.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual Result<std::vector<Tensor>> Evaluate(const graph::Node& node, const std::vector<Tensor>& inputs) = 0;
};

class FoldedFilters;

struct OptimizeOptions {
  bool constant_folding = true;
  bool common_subexpressions = true;
  /// Constant factors behind a convolution go into its filter; needs constant_folding.
  bool fold_into_filters = true;
  /// Steps that share it share the filters that are made; may be null.
  FoldedFilters* folded_filters = nullptr;
  /// Results larger than this and larger than their operands are not folded.
  uint64_t max_folded_bytes = 10u << 20;
  /// All runs must give the same bits.
  bool deterministic = false;
  PassOptions passes;
};

/// Prunes the graph to the ancestors of fetches and targets, cut at the feeds; infers shapes from the feeds' shapes;
/// folds constants; merges equal stateless nodes; drops stateless nodes with only control edges to users; simplifies
/// arithmetic.
/// Deterministic. Without an `evaluator` (null) only shape queries are folded. Errors: InvalidArgument for a needed
/// placeholder that is not fed, a cycle (naming its nodes), a shape error, and in deterministic mode for a random op
/// without a seed; NotFound for a needed node of an unknown op.
Result<graph::StepGraph> Optimize(const OptimizeOptions& options, const graph::Definition& graph,
                                  const graph::StepRequest& request, Evaluator* evaluator);

/// True for an Assign that may change the declared shape of a reference variable (validate_shape = false).
bool MayReshape(const graph::Node& node);

}  // namespace weir::optimize

#endif  // WEIR_CORE_OPTIMIZE_OPTIMIZE_H_
