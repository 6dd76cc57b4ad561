#include "core/optimize/optimize.h"

#include "core/optimize/passes_internal.h"

namespace weir::optimize {
namespace {

/// In execution order.
constexpr Pass<PassContext, graph::StepGraph> kPasses[] = {
    {"prune", Prune},
    {"read_late", ReadLate},
    {"infer_and_fold", InferAndFold},
    {"forget_shapes", ForgetShapes},
    {"order_operands", OrderOperands},
    {"merge_equal_nodes", MergeEqualNodes},
    {"relax_controls", RelaxControls},
    {"drop_unused", DropUnused},
    {"simplify", Simplify},
    {"fold_into_filters", FoldIntoFilters},
    {"drop_replaced", DropUnused},
    {"check_seeds", CheckSeeds},
};

}  // namespace

Result<graph::StepGraph> Optimize(const OptimizeOptions& options, const graph::Definition& graph,
                                  const graph::StepRequest& request, Evaluator* evaluator) {
  const PassContext context{options, graph, request, evaluator};
  graph::StepGraph step;
  const auto print = [](const graph::StepGraph& of) { return graph::ToString(of); };
  WEIR_TRY(RunPasses(options.passes, "optimize", kPasses, context, step, graph::Verify, print));
  return step;
}

}  // namespace weir::optimize
