#include "core/client/training/optimizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/errors.h"
#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/array_ops.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"
#include "core/client/variables/state_ops.h"
#include "core/client/variables/variable.h"
#include "core/client/variables/variable_scope.h"

namespace weir {
namespace {

/// Slots and update scopes are named after the variable's op.
std::string OpName(const Variable& variable) { return variable.op().name(); }

/// `["<tf.Variable 'w:0' shape=() dtype=float32_ref>"]`.
std::string VariablesOf(const std::vector<GradientAndVariable>& pairs) {
  std::vector<std::string> texts;
  for (const auto& [gradient, variable] : pairs) texts.push_back("\"" + variable.ToString() + "\"");
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

Operation RunAll(const std::vector<Operation>& operations, std::string_view name, const std::source_location& where) {
  return Group(std::vector<Groupable>(operations.begin(), operations.end()), name, where);
}

}  // namespace

Result<std::vector<GradientAndVariable>> Optimizer::ComputeGradients(const Output& loss,
                                                                     const std::vector<Variable>& variables,
                                                                     std::source_location where) {
  Graph& graph = loss.graph() != nullptr ? *loss.graph() : Graph::Default();
  WEIR_TRY(Internals(graph).ErrorOf(loss.endpoint().node));
  if (!loss.exists()) {
    return Internals(graph).Tell(InvalidArgument("None values not supported. ({})", Format(where)));
  }
  const ErrorsSince errors(graph);
  if (!IsFloating(BaseType(loss.dtype()))) {
    return Internals(graph).Tell(
        InvalidArgument("Invalid type {} for {}, expected: [float32, float64, float16, bfloat16]. ({})",
                        NumpyName(loss.dtype()), loss.name(), Format(where)));
  }
  const std::vector<Variable> targets = variables.empty() ? TrainableVariables(graph) : Flattened(variables);
  if (targets.empty()) return Internals(graph).Tell(InvalidArgument("No variables to optimize. ({})", Format(where)));
  std::vector<Output> xs;
  for (const Variable& v : targets) xs.push_back(v.handle());  // which all reads come from
  WEIR_ASSIGN(const std::vector<Gradient> gradients, Gradients({loss}, xs, {.gate = true}, where));
  std::vector<GradientAndVariable> pairs;
  for (size_t i = 0; i < targets.size(); ++i) pairs.emplace_back(gradients[i], targets[i]);
  return pairs;
}

Result<std::vector<Operation>> Optimizer::AddUpdates(const std::vector<GradientAndVariable>& pairs, Graph& graph) {
  std::vector<Operation> updates;
  for (const auto& [gradient, variable] : pairs) {
    if (!gradient.exists()) continue;
    const NameScope scope("update_" + OpName(variable), graph);
    const ColocateWith beside(variable.op(), OuterColocation::kKeep, graph);
    if (!gradient.sparse()) {
      updates.push_back(ApplyDense(variable, gradient.values));
      continue;
    }
    WEIR_ASSIGN(const Operation update, ApplySparse(variable, gradient));
    updates.push_back(update);
  }
  return updates;
}

Result<Operation> Optimizer::ApplyGradients(const std::vector<GradientAndVariable>& pairs,
                                            const MinimizeOptions& options, std::source_location where) {
  std::vector<Variable> updated;
  for (const auto& [gradient, variable] : pairs) {
    if (gradient.exists()) updated.push_back(variable);
  }
  if (pairs.empty()) return InvalidArgument("No variables provided. ({})", Format(where));
  if (updated.empty()) {
    return Internals(pairs[0].second.Home())
        .Tell(InvalidArgument("No gradients provided for any variable: {}. ({})", VariablesOf(pairs), Format(where)));
  }
  for (const Variable& variable : updated) {
    if (variable.handle().exists()) continue;
    return Internals(variable.Home())
        .Tell(InvalidArgument("Trying to optimize unsupported type {}. ({})", variable.ToString(), Format(where)));
  }
  Graph& graph = *updated[0].graph();
  const ErrorsSince errors(graph);
  const AsDefault in(graph);
  const Origin origin(where, graph);
  {
    const ControlDependencies none(std::nullopt, graph);
    CreateSlots(updated);
  }
  const NameScope scope(options.name.empty() ? name_ : options.name, graph);
  Prepare(graph, updated[0].dtype());
  Result<std::vector<Operation>> updates = AddUpdates(pairs, graph);
  if (!updates.ok()) return Internals(graph).Tell(updates.status());
  std::vector<Operation> all = Finish(*updates);
  WEIR_TRY(graph.status());
  if (iterations_.exists()) {
    const ControlDependencies after(all, graph);
    all.push_back(Count(iterations_, "AssignAdd", where));
  }
  Operation train;
  const std::string path = scope.path();
  if (options.global_step.exists()) {
    const Operation update = RunAll(all, "update", where);
    const ControlDependencies after({update}, graph);
    train = Count(options.global_step, path, where);
  } else {
    train = RunAll(all, path, where);
  }
  WEIR_TRY(graph.status());
  CollectionEntry entry;
  entry.operation = train;
  graph.AddToCollection(keys::kTrainOp, entry);
  return train;
}

Operation Optimizer::Count(const Variable& step, std::string_view name, const std::source_location& where) {
  Graph& graph = step.Home();
  const ColocateWith beside(step.op(), OuterColocation::kKeep, graph);
  const Operand one(1, where);
  if (!step.is_resource()) return BuildOp("AssignAdd", {step.handle(), one}, {}, name, where);
  return BuildOp("AssignAddVariableOp", {step.handle(), one.In(graph, step.dtype())}, {{"dtype", step.dtype()}}, name,
                 where);
}

Variable Optimizer::Iterations(std::source_location where) {
  if (iterations_.exists()) return iterations_;
  const ControlDependencies none(std::nullopt);
  iterations_ = Variable(Tensor::Scalar<int64_t>(0), {.name = name_ + "/iter", .trainable = false}, where);
  Keep(iterations_);
  return iterations_;
}

Operation Optimizer::Minimize(const Output& loss, const MinimizeOptions& options, std::source_location where) {
  const Result<std::vector<GradientAndVariable>> pairs = ComputeGradients(loss, options.variables, where);
  if (!pairs.ok()) return Operation();
  if (std::ranges::none_of(*pairs, [](const auto& pair) { return pair.first.exists(); })) {
    (void)loss.graph()->Fail(InvalidArgument(
        "No gradients provided for any variable, check your graph for ops that do not support gradients, between "
        "variables {} and loss {}. The path breaks: {}. ({})",
        VariablesOf(*pairs), loss.ToString(), pairs->front().first.why_none, Format(where)));
    return Operation();
  }
  const Result<Operation> train = ApplyGradients(*pairs, options, where);
  return train.ok() ? *train : Operation();
}

Variable Optimizer::GetSlot(const Variable& variable, std::string_view slot) const {
  const auto found = slots_.find({OpName(variable), std::string(slot)});
  return found == slots_.end() ? Variable() : found->second;
}

Result<Operation> Optimizer::ApplySparse(const Variable& variable, const Gradient&) {
  return Unimplemented("optimiser {} has no update by rows yet, and the gradient of variable '{}' is IndexedSlices",
                       name_, OpName(variable))
      .WithNode(OpName(variable), variable.op().node().origin());
}

Gradient Optimizer::WithoutRepeats(const Gradient& gradient) {
  const Operation unique = BuildOp("Unique", {gradient.indices});
  const Output shape = BuildOp("Shape", {unique.output(0)}).output(0);
  const Output count =
      BuildOp("StridedSlice", {shape, {0}, {1}, {1}}, {{"shrink_axis_mask", 1}}, "strided_slice").output(0);
  Gradient sums = gradient;
  sums.values = BuildOp("UnsortedSegmentSum", {gradient.values, unique.output(1), count}).output(0);
  sums.indices = unique.output(0);
  return sums;
}

Variable Optimizer::MakeSlot(const Variable& variable, std::string_view slot, std::string_view name,
                             const Initializer& initial) {
  const auto key = std::pair(OpName(variable), std::string(slot));
  if (const auto found = slots_.find(key); found != slots_.end()) return found->second;
  Graph& graph = variable.Home();
  const Result<Shape> shape = variable.shape().ToShape();
  if (!shape.ok()) {
    (void)graph.Fail(shape.status().Prepend("slot of variable '" + OpName(variable) + "': "));
    return Variable::FromValue(Output::Absent(graph));
  }
  const VariableScope scope(std::nullopt, OpName(variable) + "/" + std::string(name), {}, graph);
  VarScope(scope.scope()).state().partitioner = nullptr;
  VariableArgs args;
  if (!initial.value()) args.shape = *shape;
  args.dtype = variable.dtype();
  args.initializer = initial ? initial : ZerosInitializer();
  args.trainable = false;
  args.use_resource = variable.is_resource();
  args.slice = variable.slice();
  // Cut off as TensorFlow does it, also where an outer scope makes the rest another text than the slot's name.
  if (args.slice) args.slice->full_name += "/" + scope.name().substr(OpName(variable).size() + 1);
  const ColocateWith beside(variable.op(), OuterColocation::kKeep, graph);
  Variable made = GetVariable("", args);
  slots_.emplace(key, made);
  Keep(made);
  return made;
}

Variable Optimizer::ScalarVariable(std::string_view name, const Operand& initial, const Variable& beside) {
  const ColocateWith there(beside.op(), OuterColocation::kKeep, beside.Home());
  VariableOptions options;
  options.name = name;
  options.trainable = false;
  options.dtype = beside.dtype();
  options.use_resource = beside.is_resource();
  Variable made(initial, options);
  Keep(made);
  return made;
}

void Optimizer::Keep(const Variable& variable) {
  const auto after = std::ranges::upper_bound(variables_, variable.name(), {}, &Variable::name);
  variables_.insert(after, variable);
}

Operand Optimizer::Fitted(const Operand& scalar, const Variable& variable, std::string_view name) {
  if (!scalar.exists() || BaseType(scalar.dtype()) == variable.dtype()) return scalar;
  return Cast(scalar, variable.dtype(), name);
}

GradientDescentOptimizer::GradientDescentOptimizer(Operand learning_rate, std::string name)
    : Optimizer(std::move(name)), learning_rate_(std::move(learning_rate)) {}

void GradientDescentOptimizer::Prepare(Graph& graph, DType dtype) {
  rate_ = learning_rate_.In(graph, dtype, "learning_rate");
}

Operation GradientDescentOptimizer::ApplyDense(const Variable& variable, const Output& gradient) {
  return BuildOp(variable.is_resource() ? "ResourceApplyGradientDescent" : "ApplyGradientDescent",
                 {variable.handle(), Fitted(rate_, variable), gradient});
}

Result<Operation> GradientDescentOptimizer::ApplySparse(const Variable& variable, const Gradient& gradient) {
  const Output step = BuildOp("Mul", {gradient.values, Fitted(rate_, variable)}, {}, "mul").output(0);
  if (!variable.is_resource()) return BuildOp("ScatterSub", {variable.handle(), gradient.indices, step});
  const Output back = BuildOp("Neg", {step}).output(0);
  return BuildOp("ResourceScatterAdd", {variable.handle(), gradient.indices, back}, {{"dtype", variable.dtype()}});
}

MomentumOptimizer::MomentumOptimizer(Operand learning_rate, Operand momentum, bool use_nesterov, std::string name)
    : Optimizer(std::move(name)),
      learning_rate_(std::move(learning_rate)),
      momentum_(std::move(momentum)),
      use_nesterov_(use_nesterov) {}

void MomentumOptimizer::CreateSlots(const std::vector<Variable>& variables) {
  for (const Variable& v : variables) MakeSlot(v, "momentum", name(), {});
}

void MomentumOptimizer::Prepare(Graph& graph, DType dtype) {
  rate_ = learning_rate_.In(graph, dtype, "learning_rate");
  momentum_value_ = momentum_.In(graph, dtype, "momentum");
}

Operation MomentumOptimizer::ApplyDense(const Variable& variable, const Output& gradient) {
  return BuildOp(variable.is_resource() ? "ResourceApplyMomentum" : "ApplyMomentum",
                 {variable.handle(), GetSlot(variable, "momentum").handle(), Fitted(rate_, variable), gradient,
                  Fitted(momentum_value_, variable, "Cast_1")},
                 {{"use_nesterov", use_nesterov_}});
}

Result<Operation> MomentumOptimizer::ApplySparse(const Variable& variable, const Gradient& gradient) {
  const Gradient rows = WithoutRepeats(gradient);
  return BuildOp(variable.is_resource() ? "ResourceSparseApplyMomentum" : "SparseApplyMomentum",
                 {variable.handle(), GetSlot(variable, "momentum").handle(), Fitted(rate_, variable), rows.values,
                  rows.indices, Fitted(momentum_value_, variable, "Cast_1")},
                 {{"use_nesterov", use_nesterov_}});
}

AdamOptimizer::AdamOptimizer(Operand learning_rate, Operand beta1, Operand beta2, Operand epsilon, std::string name)
    : Optimizer(std::move(name)),
      learning_rate_(std::move(learning_rate)),
      beta1_(std::move(beta1)),
      beta2_(std::move(beta2)),
      epsilon_(std::move(epsilon)) {}

void AdamOptimizer::CreateSlots(const std::vector<Variable>& variables) {
  if (!beta1_power_.exists()) {
    const Variable& first = *std::ranges::min_element(variables, {}, &Variable::name);
    beta1_power_ = ScalarVariable("beta1_power", beta1_, first);
    beta2_power_ = ScalarVariable("beta2_power", beta2_, first);
  }
  for (const Variable& v : variables) {
    MakeSlot(v, "m", name(), {});
    MakeSlot(v, "v", name(), {});  // a second one of that name: w/Adam_1
  }
}

void AdamOptimizer::Prepare(Graph& graph, DType dtype) {
  rate_ = learning_rate_.In(graph, dtype, "learning_rate");
  beta1_value_ = beta1_.In(graph, dtype, "beta1");
  beta2_value_ = beta2_.In(graph, dtype, "beta2");
  epsilon_value_ = epsilon_.In(graph, dtype, "epsilon");
}

Operation AdamOptimizer::ApplyDense(const Variable& variable, const Output& gradient) {
  const bool resource = variable.is_resource();
  return BuildOp(resource ? "ResourceApplyAdam" : "ApplyAdam",
                 {variable.handle(), GetSlot(variable, "m").handle(), GetSlot(variable, "v").handle(),
                  Fitted(beta1_power_, variable, "Cast"), Fitted(beta2_power_, variable, "Cast_1"),
                  Fitted(rate_, variable, "Cast_2"), Fitted(beta1_value_, variable, "Cast_3"),
                  Fitted(beta2_value_, variable, "Cast_4"), Fitted(epsilon_value_, variable, "Cast_5"), gradient});
}

namespace {

/// `slot` decays as a whole; `change` is added to some of its rows after that. The slot's new value.
Output Decayed(const Variable& slot, const Operand& decay, const Output& rows, const Output& change) {
  const Output whole = slot.Assign(slot.value() * decay);
  const ControlDependencies after({whole.op()}, slot.Home());
  return ScatterAdd(slot, rows, change);
}

}  // namespace

/// As TensorFlow's: both moments decay everywhere, and every row moves by its own, not only those with a gradient.
Result<Operation> AdamOptimizer::ApplySparse(const Variable& variable, const Gradient& gradient) {
  const Gradient rows = WithoutRepeats(gradient);
  const Operand rate_now = Fitted(rate_, variable, "Cast_2");
  const Operand beta1 = Fitted(beta1_value_, variable, "Cast_3"), beta2 = Fitted(beta2_value_, variable, "Cast_4");
  const Output scaled = rate_now * Sqrt(1.0 - Fitted(beta2_power_.value(), variable, "Cast_1"));
  const Output rate = scaled / (1.0 - Fitted(beta1_power_.value(), variable));
  const Output change = rows.values * (1.0 - beta1);
  const Output m = Decayed(GetSlot(variable, "m"), beta1, rows.indices, change);
  const Output squares = rows.values * rows.values;
  const Output square_change = squares * (1.0 - beta2);
  const Output v = Decayed(GetSlot(variable, "v"), beta2, rows.indices, square_change);
  const Output root = Sqrt(v);
  const Output step = rate * m;
  const Output update = variable.AssignSub(step / (root + Fitted(epsilon_value_, variable, "Cast_5")));
  return Group({update, m, v});
}

std::vector<Operation> AdamOptimizer::Finish(const std::vector<Operation>& updates) {
  Graph& graph = beta1_power_.Home();
  const ControlDependencies after(updates, graph);
  const ColocateWith beside(beta1_power_, OuterColocation::kKeep, graph);
  const Output power1 = BuildOp("Mul", {beta1_power_.value(), Fitted(beta1_value_, beta1_power_)}, {}, "mul").output(0);
  const Operation assign1 = beta1_power_.Assign(power1).op();
  const Output power2 = BuildOp("Mul", {beta2_power_.value(), Fitted(beta2_value_, beta2_power_)}, {}, "mul").output(0);
  const Operation assign2 = beta2_power_.Assign(power2).op();
  std::vector<Operation> all = updates;
  all.push_back(assign1);
  all.push_back(assign2);
  return all;
}

}  // namespace weir
