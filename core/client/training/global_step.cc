#include <string>

#include "core/base/errors.h"
#include "core/client/graph/scopes.h"
#include "core/client/training/optimizer.h"
#include "core/client/variables/variable_scope.h"

namespace weir {

namespace {

Variable FindGlobalStep(Graph& graph) {
  const std::vector<Variable> steps = VariablesIn(keys::kGlobalStep, {}, graph);
  if (steps.size() == 1) return steps[0];
  if (!steps.empty()) return Variable();
  const std::string name = std::string(keys::kGlobalStep) + ":0";
  for (const Variable& v : GlobalVariables(graph)) {
    if (v.name() == name) return v;
  }
  return Variable();
}

}  // namespace

Variable GetGlobalStep(Graph& graph, std::source_location where) {
  const Variable step = FindGlobalStep(graph);
  if (!step.exists()) return step;
  const DType dtype = step.is_resource() ? step.dtype() : step.handle().dtype();
  if (!IsInteger(step.dtype())) {
    (void)graph.Fail(InvalidArgument("Existing \"global_step\" does not have integer type: <dtype: '{}'> ({})",
                                     NumpyName(dtype), Format(where)));
  } else if (step.shape().has_rank() && step.shape().rank() != 0) {
    (void)graph.Fail(InvalidArgument("Existing \"global_step\" is not scalar: {} ({})", step.shape().ToTupleString(),
                                     Format(where)));
  } else {
    return step;
  }
  return Variable();
}

Variable CreateGlobalStep(Graph& graph, std::source_location where) {
  if (FindGlobalStep(graph).exists()) {
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
  return FindGlobalStep(graph).exists() ? GetGlobalStep(graph, where) : CreateGlobalStep(graph, where);
}

}  // namespace weir
