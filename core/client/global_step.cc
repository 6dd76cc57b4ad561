#include "core/client/global_step.h"

#include <string>

#include "core/client/variable_scope.h"

namespace weir {

Variable GetGlobalStep(Graph& graph) {
  const std::vector<Variable> steps = VariablesIn(keys::kGlobalStep, {}, graph);
  if (steps.size() == 1) return steps[0];
  if (!steps.empty()) return Variable();
  const std::string name = std::string(keys::kGlobalStep) + ":0";
  for (const Variable& v : GlobalVariables(graph)) {
    if (v.name() == name) return v;
  }
  return Variable();
}

Variable CreateGlobalStep(Graph& graph, std::source_location where) {
  if (GetGlobalStep(graph).exists()) {
    (void)graph.Fail(AlreadyExists("\"global_step\" already exists. ({})", Format(where)));
    return Variable();
  }
  const AsDefault in(graph);
  VariableArgs args;
  args.shape = Shape();
  args.dtype = DType::kInt64;
  args.initializer = ZerosInitializer();
  args.trainable = false;
  args.collections = {keys::kGlobalVariables, keys::kGlobalStep};
  return GetVariable(keys::kGlobalStep, args, where);
}

Variable GetOrCreateGlobalStep(Graph& graph, std::source_location where) {
  Variable step = GetGlobalStep(graph);
  if (!step.exists()) return CreateGlobalStep(graph, where);
  if (!IsInteger(step.dtype())) {
    (void)graph.Fail(InvalidArgument("Existing \"global_step\" does not have integer type: {} ({})",
                                     NumpyName(step.dtype()), Format(where)));
  } else if (step.shape().has_rank() && step.shape().rank() != 0) {
    (void)graph.Fail(InvalidArgument("Existing \"global_step\" is not scalar: {} ({})", step.shape().ToTupleString(),
                                     Format(where)));
  } else {
    return step;
  }
  return Variable();
}

}  // namespace weir
