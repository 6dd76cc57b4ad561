#include "core/client/training/moving_averages.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/array_ops.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"
#include "core/client/training/metric_variable_internal.h"
#include "core/client/variables/initializers.h"
#include "core/client/variables/variable_scope.h"

namespace weir {

ExponentialMovingAverage::ExponentialMovingAverage(const Operand& decay, MovingAverageOptions options)
    : decay_(decay), options_(std::move(options)) {}

std::string ExponentialMovingAverage::AverageName(const Variable& variable) const {
  return variable.op().name() + "/" + options_.name;
}

Variable ExponentialMovingAverage::Average(const Variable& variable) const {
  const auto found = averages_.find(variable.op().name());
  return found == averages_.end() ? Variable() : found->second;
}

Operation ExponentialMovingAverage::Apply(const std::vector<Variable>& variables, Where where) {
  const std::vector<Variable> all = variables.empty() ? TrainableVariables() : Flattened(variables);
  Graph& graph = all.empty() ? Graph::Default() : all[0].Home();
  const auto fail = [&](const Status& why) {
    (void)graph.Fail(why.Append(" (" + Format(where) + ")"));
    return Operation::Absent(graph);
  };
  const AsDefault in(graph);
  for (const Variable& variable : all) {
    const DType type = variable.dtype();
    if (type != DType::kHalf && type != DType::kFloat && type != DType::kDouble && type != DType::kBfloat16) {
      return fail(InvalidArgument("The variables must be half, float, or double: {}", variable.name()));
    }
    if (averages_.contains(variable.op().name())) {
      return fail(InvalidArgument("Moving average already computed for: {}", variable.name()));
    }
    const ControlDependencies none(std::nullopt, graph);
    const ColocateWith beside(variable.op(), OuterColocation::kKeep, graph);
    const Output begin = variable.InitializedValue(where);
    averages_[variable.op().name()] = Variable(begin,
                                               {.name = AverageName(variable),
                                                .trainable = false,
                                                .collections = {keys::kGlobalVariables},
                                                .use_resource = variable.is_resource()},
                                               where);
    graph.AddToCollections({keys::kMovingAverageVariables}, CollectionEntry(variable), where);
  }
  const NameScope scope(options_.name, graph);
  const std::string path = scope.path();
  Output decay = decay_.In(graph, DType::kFloat, "decay");
  if (options_.num_updates) {
    const Output updates = Cast(*options_.num_updates, DType::kFloat, "num_updates", where);
    decay = Minimum(decay, (1.0 + updates) / (10.0 + updates));
  }
  std::vector<Groupable> updates;
  for (const Variable& variable : all) {
    const Variable average = averages_[variable.op().name()];
    const ColocateWith beside(average.op(), OuterColocation::kKeep, graph);
    const NameScope moving("AssignMovingAvg", graph);
    const std::string node = moving.path();
    const Output own = average.dtype() == DType::kFloat ? decay : Cast(decay, average.dtype());
    const Output rate = Subtract(1.0, own, "sub");
    const Output change = Multiply(Subtract(average, variable, "sub"), rate, "mul");
    updates.emplace_back(average.is_resource() ? BuildOp("AssignSubVariableOp", {average.handle(), change},
                                                         {{"dtype", average.dtype()}}, node, where)
                                               : BuildOp("AssignSub", {average.handle(), change}, {}, node, where));
  }
  return Group(updates, path, where);
}

std::map<std::string, Variable> ExponentialMovingAverage::VariablesToRestore(Graph& graph) const {
  std::map<std::string, Variable> saved;
  std::vector<Variable> shadows;
  for (const auto& [name, shadow] : averages_) shadows.push_back(shadow);
  for (const Variable& variable : GlobalVariables(graph)) {
    const std::string name = variable.op().name();
    const bool shadow = std::ranges::any_of(shadows, [&](const Variable& one) { return one.op() == variable.op(); });
    if (shadow) continue;
    saved.emplace(averages_.contains(name) ? AverageName(variable) : name, variable);
  }
  return saved;
}

namespace metrics {

Metric Mean(const Operand& values, const std::optional<Operand>& weights, std::string_view name, Where where) {
  Graph& graph = GraphOf(values);
  const AsDefault in(graph);
  const VariableScope variables(std::nullopt, name.empty() ? "mean" : name, {}, graph);
  const Output given = values.In(graph, DType::kInvalid, "values");
  Output present = given.dtype() == DType::kFloat ? given : Cast(given, DType::kFloat, "ToFloat", where);
  const Variable total = MetricVariable("total", where), count = MetricVariable("count", where);
  Output number;
  if (weights) {
    const Output each = Cast(*weights, DType::kFloat) * OnesLike(present);
    present = present * each;
    number = ReduceSum(each);
  } else {
    number = Cast(SizeOf(present), DType::kFloat);
  }
  const auto divided = [&](const Output& sum, const Output& by, std::string_view node) {
    return DivNoNan(sum, Maximum(by, 0.0), node);
  };
  const Output sum = total.AssignAdd(ReduceSum(present), where);
  Output counted;
  {
    const ControlDependencies after({present}, graph);
    counted = count.AssignAdd(number, where);
  }
  Metric metric;
  metric.value = divided(total, count, "value");
  metric.update_op = divided(sum, counted, "update_op");
  return metric;
}

}  // namespace metrics
}  // namespace weir
