#include "core/optimize/optimize.h"

#include <algorithm>
#include <iterator>

#include "core/optimize/passes_internal.h"

namespace weir::optimize {
namespace {

struct Pass {
  const char* name;
  Status (*run)(const PassContext&, graph::StepGraph&);
};

/// In order. Pruning comes first by construction: it makes the step that the passes work on.
constexpr Pass kPasses[] = {
    {"infer_and_fold", InferAndFold},
    {"forget_shapes", ForgetShapes},
    {"merge_equal_nodes", MergeEqualNodes},
    {"relax_controls", RelaxControls},
    {"drop_unused", DropUnused},
};

}  // namespace

Result<graph::StepGraph> Optimize(const OptimizeOptions& options, const graph::Graph& graph,
                                  const graph::StepRequest& request, Evaluator* evaluator) {
  WEIR_ASSIGN(graph::StepGraph step, Prune(graph, request));
  const PassContext context{options, request, evaluator};
  for (const Pass& pass : kPasses) {
    const auto& off = options.disabled_passes;
    if (std::find(off.begin(), off.end(), pass.name) == off.end()) WEIR_TRY(pass.run(context, step));
  }
  return step;
}

}  // namespace weir::optimize
