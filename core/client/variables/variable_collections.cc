// Variables of collections, their initializers, and a report of those without value.
#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"
#include "core/client/variables/variable.h"

namespace weir {
namespace {

/// A Const in the current name scope.
Output MakeConst(Graph& graph, const Literal& value, DType dtype, std::string_view name) {
  return Operand(value).In(graph, dtype, name);
}

}  // namespace

std::vector<Variable> Flattened(const std::vector<Variable>& variables) {
  std::vector<Variable> all;
  for (const Variable& v : variables) {
    if (v.is_partitioned()) {
      all.insert(all.end(), v.parts().begin(), v.parts().end());
    } else {
      all.push_back(v);
    }
  }
  return all;
}

Operation VariablesInitializer(const std::vector<Variable>& variables, std::string_view name,
                               std::source_location where) {
  const bool known = !variables.empty() && variables[0].graph() != nullptr;
  Graph& graph = known ? *variables[0].graph() : Graph::Default();
  const AsDefault in(graph);
  std::vector<Groupable> initializers;
  for (const Variable& v : Flattened(variables)) initializers.emplace_back(v.initializer());
  return Group(initializers, name, where);
}

Operation GlobalVariablesInitializer(Graph& graph, std::source_location where) {
  const AsDefault in(graph);
  return VariablesInitializer(GlobalVariables(graph), "init", where);
}

Operation LocalVariablesInitializer(Graph& graph, std::source_location where) {
  const AsDefault in(graph);
  return VariablesInitializer(LocalVariables(graph), "init", where);
}

std::vector<Variable> VariablesIn(const std::string& key, CollectionScope scope, Graph& graph) {
  std::vector<Variable> all;
  for (const CollectionEntry& entry : graph.GetCollection(key, scope)) {
    if (entry.variable) all.push_back(*entry.variable);
  }
  return all;
}

std::vector<Variable> GlobalVariables(Graph& graph) { return VariablesIn(keys::kGlobalVariables, {}, graph); }
std::vector<Variable> LocalVariables(Graph& graph) { return VariablesIn(keys::kLocalVariables, {}, graph); }
std::vector<Variable> TrainableVariables(Graph& graph) { return VariablesIn(keys::kTrainableVariables, {}, graph); }

std::string CollectionEntry::name() const {
  if (variable) return variable->name();
  if (output.exists()) return output.name();
  return operation.exists() ? operation.name() : "";
}

Output ReportUninitializedVariables(std::vector<Variable> variables, Graph& graph, std::source_location where) {
  if (variables.empty()) {
    variables = GlobalVariables(graph);
    for (const Variable& v : LocalVariables(graph)) variables.push_back(v);
  }
  const AsDefault in(graph);
  const Origin origin(where, graph);
  const NameScope scope("report_uninitialized_variables", graph);
  std::vector<std::string> names;
  std::vector<Operand> flags;
  for (const Variable& v : Flattened(variables)) {
    names.push_back(v.op().name());
    flags.emplace_back(v.IsInitialized());
  }
  const DeviceScope host("/cpu:0", graph);  // which has strings
  if (flags.empty()) return MakeConst(graph, Tensor::Vector<std::string>({}), DType::kString, "Const");
  const Output initialized = BuildOp("Pack", flags, {{"axis", 0}}, "stack").output(0);
  const Output missing = BuildOp("LogicalNot", {initialized}).output(0);
  const Output all = MakeConst(graph, Tensor::Vector<std::string>(names), DType::kString, "Const");
  const NameScope mask("boolean_mask", graph);
  const Output places = BuildOp("Where", {missing}).output(0);
  const Output rows = BuildOp("Squeeze", {places}, {{"squeeze_dims", std::vector<int64_t>{1}}}).output(0);
  return BuildOp("GatherV2", {all, rows, MakeConst(graph, Literal(0), DType::kInt32, "axis")}).output(0);
}

}  // namespace weir
