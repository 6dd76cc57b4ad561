// From a graph and a request to the step graph that is worth running.
#ifndef WEIR_CORE_OPTIMIZE_OPTIMIZE_H_
#define WEIR_CORE_OPTIMIZE_OPTIMIZE_H_

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/step_graph.h"

namespace weir::optimize {

/// Computes one stateless node from host values; implemented by whoever owns kernels. An error means "leave it".
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual Result<std::vector<Tensor>> Evaluate(const graph::Node& node, const std::vector<Tensor>& inputs) = 0;
};

struct OptimizeOptions {
  bool constant_folding = true;
  bool common_subexpressions = true;
  /// Results larger than this and than their operands stay computed by the step.
  uint64_t max_folded_bytes = 10u << 20;
  /// Passes by name that are not to run.
  std::vector<std::string> disabled_passes;
};

/// Keeps what the fetches and targets need, cut at the feeds; infers shapes for the fed shapes; folds constants; merges
/// equal stateless nodes; drops stateless nodes that only control edges lead from. Deterministic. `evaluator` may be
/// null: nothing is folded then but shapes. Errors: InvalidArgument for a needed placeholder that is not fed, a cycle
/// (naming its nodes), a shape error.
Result<graph::StepGraph> Optimize(const OptimizeOptions& options, const graph::Graph& graph,
                                  const graph::StepRequest& request, Evaluator* evaluator);

/// The node is an Assign that may give a reference variable another shape than it was declared with
/// (validate_shape = false).
bool MayReshape(const graph::Node& node);

}  // namespace weir::optimize

#endif  // WEIR_CORE_OPTIMIZE_OPTIMIZE_H_
