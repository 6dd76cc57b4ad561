#include "core/ops/functional_gradients.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/op/function_gradient.h"

namespace weir::ops {
namespace {

using op::AttrList;
using op::FuncRef;
using op::FunctionSpec;
using op::Grad;
using op::GradContext;
using op::Value;

Result<FuncRef> FunctionAttr(GradContext& g, std::string_view name) {
  const op::AttrValue* value = g.attrs().Find(name);
  const FuncRef* function = value == nullptr ? nullptr : value->get<FuncRef>();
  if (function == nullptr) return InvalidArgument("{} is missing attr: {}", g.attrs().def().name, name);
  return *function;
}

/// "a3" for argument 3.
std::string Argument(size_t i) { return fmt::format("a{}", i); }

FunctionSpec::Node ConstNode(std::string name, const Tensor& value) {
  return {std::move(name), "Const", {}, {{"dtype", value.dtype()}, {"value", value}}};
}

/// A function that computes the gradients of `branch` from its arguments and gradients of its results.
Result<FuncRef> BranchGradient(GradContext& g, const FuncRef& branch, const op::SymbolicGradient& gradient) {
  FunctionSpec function{
      .name = branch.name + "_grad", .arguments = gradient.input_types, .results = gradient.output_types};
  FunctionSpec::Node node{"gradient", "SymbolicGradient", {}, gradient.Attrs(branch)};
  for (size_t i = 0; i < gradient.input_types.size(); ++i) node.inputs.push_back(Argument(i));
  function.nodes = {std::move(node)};
  for (size_t i = 0; i < gradient.output_types.size(); ++i) {
    function.returns.push_back(fmt::format("gradient:output:{}", i));
  }
  WEIR_ASSIGN(std::string name, g.Define(function));
  return FuncRef{std::move(name), nullptr};
}

/// Gradients of a node whose first input selects a branch.
std::vector<Grad> OfBranches(GradContext& g, const op::SymbolicGradient& gradient, AttrList branches) {
  std::vector<Value> inputs = {g.X(0)};
  inputs.insert(inputs.end(), gradient.inputs.begin(), gradient.inputs.end());
  branches.emplace_back("Tin", gradient.input_types);
  branches.emplace_back("Tout", gradient.output_types);
  const std::vector<Value> dx = g.ApplyAll(g.attrs().def().name, inputs, std::move(branches));
  std::vector<Grad> grads(static_cast<size_t>(g.num_inputs()));
  for (size_t i = 0; i < dx.size() && i + 1 < grads.size(); ++i) {
    if (TakesGradient(g, g.X(static_cast<int>(i) + 1))) grads[i + 1] = dx[i];
  }
  return grads;
}

/// The parts of the gradient of a loop. Variables that are handles are loop invariants.
struct LoopParts {
  op::SymbolicGradient gradient;
  FuncRef condition, body;
  std::vector<size_t> kept;     // positions of variables whose values are saved, one list each
  std::vector<size_t> handles;  // positions of the other variables

  size_t variables() const { return gradient.output_types.size(); }
  DType type(size_t i) const { return gradient.input_types[i]; }
};

/// The op that calls a function within a loop of this op.
std::string_view CallIn(const GradContext& g) {
  return g.attrs().def().stateful ? "StatefulPartitionedCall" : "PartitionedCall";
}

std::vector<DType> VariableTypes(const LoopParts& loop) {
  return {loop.gradient.input_types.begin(),
          loop.gradient.input_types.begin() + static_cast<ptrdiff_t>(loop.variables())};
}

/// A call of a function of the loop with all its variables, which are arguments 0, 1, … of the enclosing function.
FunctionSpec::Node CallNode(const GradContext& g, const LoopParts& loop, const std::string& name,
                            const FuncRef& function, std::vector<DType> results) {
  FunctionSpec::Node call{name,
                          std::string(CallIn(g)),
                          {},
                          {{"Tin", VariableTypes(loop)},
                           {"Tout", std::move(results)},
                           {"f", function},
                           {std::string(op::kValuesOnly), true}}};
  for (size_t i = 0; i < loop.variables(); ++i) call.inputs.push_back(Argument(i));
  return call;
}

/// Argument types of the forward loop that saves its variables: the variables, the number of iterations, the lists.
std::vector<DType> KeepingTypes(const LoopParts& loop) {
  std::vector<DType> types = VariableTypes(loop);
  types.push_back(DType::kInt32);
  types.resize(types.size() + loop.kept.size(), DType::kVariant);
  return types;
}

Result<FuncRef> KeepingCondition(GradContext& g, const LoopParts& loop) {
  FunctionSpec function{
      .name = loop.condition.name + "_keeping", .arguments = KeepingTypes(loop), .results = {DType::kBool}};
  function.nodes = {CallNode(g, loop, "call", loop.condition, {DType::kBool})};
  function.returns = {"call:output:0"};
  WEIR_ASSIGN(std::string name, g.Define(function));
  return FuncRef{std::move(name), nullptr};
}

Result<FuncRef> KeepingBody(GradContext& g, const LoopParts& loop) {
  const std::vector<DType> types = KeepingTypes(loop);
  FunctionSpec function{.name = loop.body.name + "_keeping", .arguments = types, .results = types};
  function.nodes = {CallNode(g, loop, "call", loop.body, VariableTypes(loop)),
                    ConstNode("one", Tensor::Scalar<int32_t>(1)),
                    {"more", "AddV2", {Argument(loop.variables()), "one:output:0"}, {{"T", DType::kInt32}}}};
  for (size_t i = 0; i < loop.variables(); ++i) {
    const bool handle = loop.type(i) == DType::kResource;
    function.returns.push_back(handle ? Argument(i) : fmt::format("call:output:{}", i));
  }
  function.returns.emplace_back("more:z:0");
  for (size_t k = 0; k < loop.kept.size(); ++k) {
    const size_t i = loop.kept[k];
    function.nodes.push_back({fmt::format("keep{}", k),
                              "TensorListPushBack",
                              {Argument(loop.variables() + 1 + k), Argument(i)},
                              {{"element_dtype", loop.type(i)}}});
    function.returns.push_back(fmt::format("keep{}:output_handle:0", k));
  }
  WEIR_ASSIGN(std::string name, g.Define(function));
  return FuncRef{std::move(name), nullptr};
}

/// Argument types of the backward loop: remaining iterations, gradients of the variables, lists, handles.
std::vector<DType> BackTypes(const LoopParts& loop) {
  std::vector<DType> types = {DType::kInt32};
  types.insert(types.end(), loop.gradient.output_types.begin(), loop.gradient.output_types.end());
  types.resize(types.size() + loop.kept.size(), DType::kVariant);
  types.resize(types.size() + loop.handles.size(), DType::kResource);
  return types;
}

Result<FuncRef> BackCondition(GradContext& g, const LoopParts& loop) {
  FunctionSpec function{.name = loop.condition.name + "_back", .arguments = BackTypes(loop), .results = {DType::kBool}};
  function.nodes = {ConstNode("zero", Tensor::Scalar<int32_t>(0)),
                    {"left", "Greater", {"a0", "zero:output:0"}, {{"T", DType::kInt32}}}};
  function.returns = {"left:z:0"};
  WEIR_ASSIGN(std::string name, g.Define(function));
  return FuncRef{std::move(name), nullptr};
}

Result<FuncRef> BackBody(GradContext& g, const LoopParts& loop) {
  const std::vector<DType> types = BackTypes(loop);
  const size_t n = loop.variables(), lists = 1 + n, handles = lists + loop.kept.size();
  FunctionSpec function{.name = loop.body.name + "_back", .arguments = types, .results = types};
  function.nodes = {ConstNode("one", Tensor::Scalar<int32_t>(1)),
                    {"less", "Sub", {"a0", "one:output:0"}, {{"T", DType::kInt32}}},
                    ConstNode("any_shape", Tensor::Scalar<int32_t>(-1))};
  FunctionSpec::Node gradient{"gradient", "SymbolicGradient", std::vector<std::string>(n),
                              loop.gradient.Attrs(loop.body)};
  std::vector<std::string> shorter;
  for (size_t k = 0; k < loop.kept.size(); ++k) {
    const size_t i = loop.kept[k];
    function.nodes.push_back({fmt::format("take{}", k),
                              "TensorListPopBack",
                              {Argument(lists + k), "any_shape:output:0"},
                              {{"element_dtype", loop.type(i)}}});
    gradient.inputs[i] = fmt::format("take{}:tensor:0", k);
    shorter.push_back(fmt::format("take{}:output_handle:0", k));
  }
  for (size_t h = 0; h < loop.handles.size(); ++h) gradient.inputs[loop.handles[h]] = Argument(handles + h);
  for (size_t i = 0; i < n; ++i) gradient.inputs.push_back(Argument(1 + i));
  function.nodes.push_back(std::move(gradient));
  function.returns = {"less:z:0"};
  for (size_t i = 0; i < n; ++i) function.returns.push_back(fmt::format("gradient:output:{}", i));
  function.returns.insert(function.returns.end(), shorter.begin(), shorter.end());
  for (size_t h = 0; h < loop.handles.size(); ++h) function.returns.push_back(Argument(handles + h));
  WEIR_ASSIGN(std::string name, g.Define(function));
  return FuncRef{std::move(name), nullptr};
}

/// Zeros like the variable behind handle `i`, for a result without a gradient.
Value ZerosBehind(GradContext& g, int i) {
  const DType type = g.GradTypeOf(g.X(i));
  if (type == DType::kInvalid) return g.Const(Tensor::Scalar<float>(0));
  return g.Apply("ZerosLike", {g.Apply("ReadVariableOp", {g.X(i)}, {{"dtype", BaseType(type)}})});
}

}  // namespace

Result<std::vector<Grad>> CallGradient(GradContext& g) {
  WEIR_ASSIGN(FuncRef function, FunctionAttr(g, "f"));
  return GradientOfCall(g, std::move(function));
}

Result<std::vector<Grad>> IfGradient(GradContext& g) {
  const op::SymbolicGradient gradient = SymbolicGradientOf(g, 1);
  AttrList branches;
  for (const std::string_view name : {"then_branch", "else_branch"}) {
    WEIR_ASSIGN(const FuncRef branch, FunctionAttr(g, name));
    WEIR_ASSIGN(FuncRef back, BranchGradient(g, branch, gradient));
    branches.emplace_back(std::string(name), std::move(back));
  }
  return OfBranches(g, gradient, std::move(branches));
}

Result<std::vector<Grad>> CaseGradient(GradContext& g) {
  const op::SymbolicGradient gradient = SymbolicGradientOf(g, 1);
  const op::AttrValue* value = g.attrs().Find("branches");
  const auto* branches = value == nullptr ? nullptr : value->get<std::vector<FuncRef>>();
  if (branches == nullptr) return InvalidArgument("{} is missing attr: branches", g.attrs().def().name);
  std::vector<FuncRef> back;
  for (const FuncRef& branch : *branches) {
    WEIR_ASSIGN(back.emplace_back(), BranchGradient(g, branch, gradient));
  }
  return OfBranches(g, gradient, {{"branches", std::move(back)}});
}

Result<std::vector<Grad>> WhileGradient(GradContext& g) {
  LoopParts loop{.gradient = SymbolicGradientOf(g, 0)};
  WEIR_ASSIGN(loop.condition, FunctionAttr(g, "cond"));
  WEIR_ASSIGN(loop.body, FunctionAttr(g, "body"));
  WEIR_ASSIGN(const int64_t parallel, g.attrs().Int("parallel_iterations"));
  const size_t n = loop.variables();
  for (size_t i = 0; i < n; ++i) {
    const bool handle = loop.type(i) == DType::kResource;
    (handle ? loop.handles : loop.kept).push_back(i);
    // For a handle that it forwards, the body's gradient is the gradient of the variable behind it.
    if (!handle || g.HasDy(static_cast<int>(i))) continue;
    loop.gradient.inputs[n + i] = ZerosBehind(g, static_cast<int>(i));
    loop.gradient.input_types[n + i] = loop.gradient.output_types[i];
  }
  const auto make_loop = [&](const std::vector<Value>& inputs, FuncRef condition, FuncRef body) {
    return g.ApplyAll(g.attrs().def().name, inputs,
                      {{"cond", std::move(condition)}, {"body", std::move(body)}, {"parallel_iterations", parallel}});
  };

  WEIR_ASSIGN(FuncRef condition, KeepingCondition(g, loop));
  WEIR_ASSIGN(FuncRef body, KeepingBody(g, loop));
  std::vector<Value> inputs(loop.gradient.inputs.begin(), loop.gradient.inputs.begin() + static_cast<ptrdiff_t>(n));
  inputs.push_back(g.ConstInt(0));
  const Value any = g.ConstInt(-1);
  for (const size_t i : loop.kept) {
    inputs.push_back(g.Apply("EmptyTensorList", {any, any}, {{"element_dtype", loop.type(i)}}));
  }
  const std::vector<Value> kept = make_loop(inputs, std::move(condition), std::move(body));
  std::vector<Grad> grads(n);
  if (kept.size() != inputs.size()) return grads;  // the context holds the error

  WEIR_ASSIGN(condition, BackCondition(g, loop));
  WEIR_ASSIGN(body, BackBody(g, loop));
  std::vector<Value> back = {kept[n]};
  back.insert(back.end(), loop.gradient.inputs.begin() + static_cast<ptrdiff_t>(n), loop.gradient.inputs.end());
  back.insert(back.end(), kept.begin() + static_cast<ptrdiff_t>(n) + 1, kept.end());
  for (const size_t i : loop.handles) back.push_back(loop.gradient.inputs[i]);
  const std::vector<Value> dx = make_loop(back, std::move(condition), std::move(body));
  for (size_t i = 0; i < n && 1 + i < dx.size(); ++i) {
    if (TakesGradient(g, g.X(static_cast<int>(i)))) grads[i] = dx[1 + i];
  }
  return grads;
}

}  // namespace weir::ops
