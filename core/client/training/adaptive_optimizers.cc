#include "core/client/training/adaptive_optimizers.h"

#include "core/base/errors.h"
#include "core/client/graph/attribute_scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"

namespace weir {
namespace {

Status CheckPositive(double value) {
  if (value > 0) return Status();
  return InvalidArgument("initial_accumulator_value must be positive: {}", value);
}

Status CheckFtrl(const FtrlOptions& options) {
  const std::pair<const char*, double> not_negative[] = {
      {"initial_accumulator_value", options.initial_accumulator_value},
      {"l1_regularization_strength", options.l1_regularization_strength},
      {"l2_regularization_strength", options.l2_regularization_strength},
      {"l2_shrinkage_regularization_strength", options.l2_shrinkage_regularization_strength}};
  if (!(options.learning_rate_power <= 0)) {
    return InvalidArgument("learning_rate_power {:f} needs to be negative or zero", options.learning_rate_power);
  }
  for (const auto& [name, value] : not_negative) {
    if (!(value >= 0)) return InvalidArgument("{} {:f} needs to be positive or zero", name, value);
  }
  return Status();
}

/// ones * value, as TensorFlow initialises the accumulator of Ftrl.
Initializer OnesTimes(double value) {
  return Initializer([value](Graph& graph, DType dtype, const Shape& shape) -> Output {
    return OnesInitializer()(graph, dtype, shape) * value;
  });
}

UpdateRule::Slot FilledSlot(std::string name, double value) {
  UpdateRule::Slot slot;
  slot.name = std::move(name);
  slot.filled = value;
  return slot;
}

UpdateRule::Slot SlotOf(std::string name, Initializer initial = {}, std::string variable = {}) {
  UpdateRule::Slot slot;
  slot.name = std::move(name);
  slot.initial = std::move(initial);
  slot.variable = std::move(variable);
  return slot;
}

UpdateRule AdagradRule(const Operand& learning_rate, double initial_value) {
  UpdateRule rule;
  rule.op = "Adagrad";
  rule.slots.push_back(SlotOf("accumulator", ConstantInitializer(initial_value)));
  rule.scalars.push_back({"learning_rate", learning_rate});
  rule.valid = CheckPositive(initial_value);
  return rule;
}

UpdateRule AdadeltaRule(const Operand& learning_rate, const Operand& rho, const Operand& epsilon) {
  UpdateRule rule;
  rule.op = "Adadelta";
  rule.slots = {SlotOf("accum"), SlotOf("accum_update")};
  rule.scalars = {{"lr", learning_rate}, {"rho", rho}, {"epsilon", epsilon}};
  return rule;
}

/// Its scalars depend on each other: FtrlOptimizer makes them.
UpdateRule FtrlRule(const FtrlOptions& options) {
  UpdateRule rule;
  rule.op = options.l2_shrinkage_regularization_strength > 0 ? "FtrlV2" : "Ftrl";
  rule.slots = {SlotOf("accum", OnesTimes(options.initial_accumulator_value), options.accum_name),
                SlotOf("linear", {}, options.linear_name)};
  rule.gradient_first = true;
  rule.valid = CheckFtrl(options);
  return rule;
}

UpdateRule ProximalRule(std::string op, const Operand& learning_rate, const Operand& l1, const Operand& l2) {
  UpdateRule rule;
  rule.op = std::move(op);
  rule.scalars = {
      {"learning_rate", learning_rate}, {"l1_regularization_strength", l1}, {"l2_regularization_strength", l2}};
  return rule;
}

UpdateRule ProximalAdagradRule(const Operand& learning_rate, double initial_value, const Operand& l1,
                               const Operand& l2) {
  UpdateRule rule = ProximalRule("ProximalAdagrad", learning_rate, l1, l2);
  rule.slots.push_back(FilledSlot("accumulator", initial_value));
  rule.valid = CheckPositive(initial_value);
  return rule;
}

UpdateRule DualAveragingRule(const Operand& learning_rate, const AdagradDAOptions& options) {
  const double initial_value = options.initial_gradient_squared_accumulator_value;
  UpdateRule rule;
  rule.op = "AdagradDA";
  rule.slots = {FilledSlot("gradient_accumulator", 0), FilledSlot("gradient_squared_accumulator", initial_value)};
  rule.scalars.push_back({"learning_rate", learning_rate});
  rule.gradient_first = true;
  rule.valid = CheckPositive(initial_value);
  return rule;
}

UpdateRule RmsRule(const Operand& learning_rate, const RMSPropOptions& options) {
  UpdateRule rule;
  rule.op = options.centered ? "CenteredRMSProp" : "RMSProp";
  rule.slots = {SlotOf("rms", OnesInitializer())};
  if (options.centered) {
    rule.slots.push_back(SlotOf("mg"));
    rule.order = {1, 0, 2};
  }
  rule.slots.push_back(SlotOf("momentum"));
  rule.scalars = {{"learning_rate", learning_rate},
                  {"decay", options.decay},
                  {"momentum", options.momentum},
                  {"epsilon", options.epsilon}};
  return rule;
}

}  // namespace

std::vector<std::string> RuleOptimizer::SlotNames() const {
  std::vector<std::string> names;
  for (const UpdateRule::Slot& slot : rule_.slots) names.push_back(slot.name);
  return names;
}

void RuleOptimizer::CreateSlots(const std::vector<Variable>& variables) {
  for (const Variable& variable : variables) {
    for (const UpdateRule::Slot& slot : rule_.slots) {
      const std::string& own = slot.variable.empty() ? name() : slot.variable;
      const Result<Shape> shape = variable.shape().ToShape();
      if (!slot.filled || !shape.ok() || GetSlot(variable, slot.name).exists()) {
        MakeSlot(variable, slot.name, own, slot.initial);
        continue;
      }
      const ColocateWith beside(variable.op(), OuterColocation::kKeep, variable.Home());
      MakeSlot(variable, slot.name, own, Constant(*slot.filled, *shape, variable.dtype()));
    }
  }
}

std::vector<Output> RuleOptimizer::MakeScalars(Graph& graph, DType dtype) {
  std::vector<Output> values;
  for (const auto& [name, value] : rule_.scalars) values.push_back(value.In(graph, dtype, name));
  return values;
}

void RuleOptimizer::Prepare(Graph& graph, DType dtype) {
  if (!rule_.valid.ok()) (void)graph.Fail(rule_.valid);
  scalars_ = MakeScalars(graph, dtype);
}

std::vector<Operand> RuleOptimizer::LastInputs(const Variable&) const { return {}; }

Operation RuleOptimizer::Apply(std::string_view prefix, const Variable& variable,
                               const std::vector<Operand>& gradient) const {
  std::vector<Operand> inputs = {variable.handle()};
  for (size_t i = 0; i < rule_.slots.size(); ++i) {
    const UpdateRule::Slot& slot = rule_.slots[rule_.order.empty() ? i : rule_.order[i]];
    inputs.emplace_back(GetSlot(variable, slot.name).handle());
  }
  if (rule_.gradient_first) inputs.insert(inputs.end(), gradient.begin(), gradient.end());
  for (const Output& scalar : scalars_) inputs.push_back(Fitted(scalar, variable));
  if (!rule_.gradient_first) inputs.insert(inputs.end(), gradient.begin(), gradient.end());
  for (Operand& last : LastInputs(variable)) inputs.push_back(std::move(last));
  const std::string op = std::string(variable.is_resource() ? "Resource" : "") + std::string(prefix) + rule_.op;
  return BuildOp(op, inputs);
}

Operation RuleOptimizer::ApplyDense(const Variable& variable, const Output& gradient) {
  return Apply("Apply", variable, {gradient});
}

Result<Operation> RuleOptimizer::ApplySparse(const Variable& variable, const Gradient& gradient) {
  const Gradient rows = WithoutRepeats(gradient);
  return Apply("SparseApply", variable, {rows.values, rows.indices});
}

AdagradOptimizer::AdagradOptimizer(const Operand& learning_rate, double initial_accumulator_value, std::string name)
    : RuleOptimizer(std::move(name), AdagradRule(learning_rate, initial_accumulator_value)) {}

RMSPropOptimizer::RMSPropOptimizer(const Operand& learning_rate, const RMSPropOptions& options)
    : RuleOptimizer(options.name, RmsRule(learning_rate, options)) {}

AdadeltaOptimizer::AdadeltaOptimizer(const Operand& learning_rate, const Operand& rho, const Operand& epsilon,
                                     std::string name)
    : RuleOptimizer(std::move(name), AdadeltaRule(learning_rate, rho, epsilon)) {}

FtrlOptimizer::FtrlOptimizer(const Operand& learning_rate, const FtrlOptions& options)
    : RuleOptimizer(options.name, FtrlRule(options)), learning_rate_(learning_rate), options_(options) {}

/// With beta, l2 grows by beta / (2 * learning_rate).
std::vector<Output> FtrlOptimizer::MakeScalars(Graph& graph, DType dtype) {
  const auto scalar = [&](double value, std::string_view name) { return Operand(value).In(graph, dtype, name); };
  const Output rate = learning_rate_.In(graph, dtype, "learning_rate");
  const Output l1 = scalar(options_.l1_regularization_strength, "l1_regularization_strength");
  const Output twice = 2.0 * Maximum(learning_rate_, 1e-36);
  const Output l2 = options_.l2_regularization_strength + options_.beta / twice;
  scalar(options_.beta, "beta");
  const Output shrinkage =
      scalar(options_.l2_shrinkage_regularization_strength, "l2_shrinkage_regularization_strength");
  const Output power = scalar(options_.learning_rate_power, "learning_rate_power");
  if (options_.l2_shrinkage_regularization_strength > 0) return {rate, l1, l2, shrinkage, power};
  return {rate, l1, l2, power};
}

ProximalGradientDescentOptimizer::ProximalGradientDescentOptimizer(const Operand& learning_rate,
                                                                   const Operand& l1_regularization_strength,
                                                                   const Operand& l2_regularization_strength,
                                                                   std::string name)
    : RuleOptimizer(std::move(name), ProximalRule("ProximalGradientDescent", learning_rate, l1_regularization_strength,
                                                  l2_regularization_strength)) {}

ProximalAdagradOptimizer::ProximalAdagradOptimizer(const Operand& learning_rate, double initial_accumulator_value,
                                                   const Operand& l1_regularization_strength,
                                                   const Operand& l2_regularization_strength, std::string name)
    : RuleOptimizer(std::move(name), ProximalAdagradRule(learning_rate, initial_accumulator_value,
                                                         l1_regularization_strength, l2_regularization_strength)) {}

AdagradDAOptimizer::AdagradDAOptimizer(const Operand& learning_rate, const Variable& global_step,
                                       const AdagradDAOptions& options)
    : RuleOptimizer(options.name, DualAveragingRule(learning_rate, options)),
      global_step_(global_step),
      options_(options) {}

std::vector<Output> AdagradDAOptimizer::MakeScalars(Graph& graph, DType dtype) {
  std::vector<Output> scalars = RuleOptimizer::MakeScalars(graph, dtype);
  const ColocateWith beside(scalars[0], OuterColocation::kKeep, graph);
  const Output step = Identity(global_step_);
  next_step_ = step + 1;
  return scalars;
}

std::vector<Operand> AdagradDAOptimizer::LastInputs(const Variable& variable) const {
  Graph& graph = variable.Home();
  const Output step = Identity(next_step_);
  const auto strength = [&](double value) {
    const NameScope scope("Cast", graph);
    return Operand(value).In(graph, variable.dtype(), "x");
  };
  const Output l1 = strength(options_.l1_regularization_strength), l2 = strength(options_.l2_regularization_strength);
  return {l1, l2, Cast(step, DType::kInt64)};
}

}  // namespace weir
