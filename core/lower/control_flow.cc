// Functional control flow in terms of Switch, Merge, Enter, Exit and NextIteration. Source: "Implementation of Control
// Flow in TensorFlow", 2017.
#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/lower/lowerer_internal.h"

namespace weir::lower {
namespace {

/// The argument that result `i` of a body forwards; -1 if there is none.
NodeId ArgumentBehind(const FunctionBody& body, size_t i) {
  Endpoint from = body.results[i];
  while (body.graph.node(from.node).op().traits.universal == op::Universal::kForward) {
    from = body.graph.node(from.node).inputs()[PositionOf(from.index)];
  }
  return PositionOf(from.node) < body.num_arguments() ? from.node : kNone;
}

}  // namespace

Result<Endpoint> Lowerer::ToBool(const Call& call, const std::string& name, Endpoint value) {
  if (TypeOf(value) == DType::kBool) return value;
  return Add(call, "ToBool", name, {value}, {{"T", TypeOf(value)}});
}

/// Splits off the branch that runs if `predicate` is true; `rest` becomes the branch for false.
Result<Lowerer::Branch> Lowerer::SplitOff(const Call& call, const std::string& name, Endpoint predicate, Branch& rest) {
  const auto split = [&](const std::string& of, Endpoint value) {
    return Add(call, "Switch", of, {value, predicate}, {{"T", TypeOf(value)}});
  };
  Branch taken;
  WEIR_ASSIGN(const Endpoint pivot, split(name + "/_switch", predicate));
  WEIR_ASSIGN(const Endpoint is_taken, AddIdentity(call, name + "/_taken", {pivot.node, 1}));
  WEIR_ASSIGN(const Endpoint is_not, AddIdentity(call, name + "/_not_taken", pivot));
  taken.pivot = is_taken.node;
  rest.pivot = is_not.node;
  for (size_t i = 0; i < rest.arguments.size(); ++i) {
    WEIR_ASSIGN(rest.arguments[i], split(fmt::format("{}/_switch_{}", name, i), rest.arguments[i]));
    taken.arguments.push_back({rest.arguments[i].node, 1});
  }
  return taken;
}

Result<Image> Lowerer::MergeBranches(const Call& call, const std::vector<op::FuncRef>& functions,
                                     const std::vector<std::string>& names, const std::vector<Branch>& branches) {
  const op::Signature& types = call.node.signature();
  const auto count = static_cast<int64_t>(functions.size());
  std::vector<std::vector<Endpoint>> results(types.outputs.size());
  std::vector<Endpoint> ends;
  bool has_effects = false;
  for (size_t b = 0; b < functions.size(); ++b) {
    WEIR_ASSIGN(const FunctionBody* const body,
                Body(call, functions[b], std::span(types.inputs).subspan(1), types.outputs));
    WEIR_ASSIGN(const Inlined inlined, Inline(call, *body, names[b], branches[b].arguments, branches[b].pivot));
    has_effects = has_effects || inlined.has_effects;
    for (size_t i = 0; i < results.size(); ++i) {
      WEIR_ASSIGN(results[i].emplace_back(),
                  AddIdentity(call, fmt::format("{}/_result_{}", names[b], i), inlined.results[i], {inlined.done}));
    }
    WEIR_ASSIGN(ends.emplace_back(), AddIdentity(call, names[b] + "/_end", {branches[b].pivot, 0}, {inlined.done}));
  }
  std::vector<Endpoint> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    WEIR_ASSIGN(outputs.emplace_back(), Add(call, "Merge", ResultName(call, i), std::move(results[i]),
                                            {{"T", types.outputs[i]}, {"N", count}}));
  }
  WEIR_ASSIGN(const Endpoint end,
              Add(call, "Merge", call.name + "/_end", std::move(ends), {{"T", DType::kBool}, {"N", count}}));
  return WithDone(call, std::move(outputs), {end.node}, has_effects);
}

Result<Image> Lowerer::LowerIf(const Call& call) {
  WEIR_ASSIGN(op::FuncRef then_branch, FunctionAttr(call.attrs(), "then_branch"));
  WEIR_ASSIGN(op::FuncRef else_branch, FunctionAttr(call.attrs(), "else_branch"));
  WEIR_ASSIGN(Endpoint predicate, ToBool(call, call.name + "/_condition", call.inputs[0]));
  if (!call.controls.empty()) {
    WEIR_ASSIGN(predicate, AddIdentity(call, call.name + "/_condition", predicate, call.controls));
  }
  Branch rest{.pivot = kNone, .arguments = {call.inputs.begin() + 1, call.inputs.end()}};
  WEIR_ASSIGN(Branch taken, SplitOff(call, call.name, predicate, rest));
  return MergeBranches(call, {std::move(else_branch), std::move(then_branch)},
                       {call.name + "/else", call.name + "/then"}, {std::move(rest), std::move(taken)});
}

Result<Image> Lowerer::LowerCase(const Call& call) {
  WEIR_ASSIGN(const std::vector<op::FuncRef> functions, FunctionsAttr(call.attrs(), "branches"));
  Endpoint index = call.inputs[0];
  if (!call.controls.empty()) {
    WEIR_ASSIGN(index, AddIdentity(call, call.name + "/_index", index, call.controls));
  }
  std::vector<Branch> branches;
  std::vector<std::string> names;
  Branch rest{.pivot = kNone, .arguments = {call.inputs.begin(), call.inputs.end()}};
  rest.arguments[0] = index;
  for (size_t b = 0; b < functions.size(); ++b) {
    const std::string& name = names.emplace_back(fmt::format("{}/branch_{}", call.name, b));
    if (b + 1 == functions.size()) break;
    WEIR_ASSIGN(const Endpoint number,
                AddConst(call, name + "/_number", Tensor::Scalar<int32_t>(static_cast<int32_t>(b))));
    WEIR_ASSIGN(const Endpoint is_it,
                Add(call, "Equal", name + "/_is_it", {rest.arguments[0], number}, {{"T", DType::kInt32}}));
    WEIR_ASSIGN(Branch taken, SplitOff(call, name, is_it, rest));
    branches.push_back(std::move(taken));
  }
  if (rest.pivot == kNone) {  // the only branch
    WEIR_ASSIGN(const Endpoint always, AddConst(call, call.name + "/_always", Tensor::Scalar<bool>(true)));
    WEIR_ASSIGN(const Endpoint pivot, AddIdentity(call, call.name + "/_taken", always, {index.node}));
    rest.pivot = pivot.node;
  }
  branches.push_back(std::move(rest));
  for (Branch& branch : branches) branch.arguments.erase(branch.arguments.begin());
  return MergeBranches(call, functions, names, branches);
}

Result<Image> Lowerer::MakeLoop(const Call& call, Loop loop) {
  const size_t first_state = static_cast<size_t>(std::ranges::find(loop.invariant, false) - loop.invariant.begin());
  if (first_state == loop.inputs.size()) {  // a loop needs at least one variable
    WEIR_ASSIGN(loop.inputs.emplace_back(), AddConst(call, call.name + "/_round", Tensor::Scalar<bool>(true)));
    loop.invariant.push_back(false);
  }
  WEIR_ASSIGN(const NodeId start, Join(call, call.name + "/_start", call.controls));
  std::vector<Endpoint> current;
  for (size_t i = 0; i < loop.inputs.size(); ++i) {
    const DType type = TypeOf(loop.inputs[i]);
    const bool invariant = loop.invariant[i];
    WEIR_ASSIGN(Endpoint enter, Add(call, "Enter", fmt::format("{}/_enter_{}", call.name, i), {loop.inputs[i]},
                                    {{"T", type},
                                     {"frame_name", call.name},
                                     {"is_constant", invariant},
                                     {"parallel_iterations", loop.parallel_iterations}},
                                    {start}));
    if (!invariant) {
      WEIR_ASSIGN(enter, Add(call, "Merge", fmt::format("{}/_merge_{}", call.name, i), {enter, Endpoint{}},
                             {{"T", type}, {"N", int64_t{2}}}));
    }
    current.push_back(enter);
  }
  WEIR_ASSIGN(const Endpoint condition, loop.condition(current, current[first_state].node));
  WEIR_ASSIGN(const Endpoint goes_on, Add(call, "LoopCond", call.name + "/_cond", {condition}, {}));
  WEIR_ASSIGN(const Endpoint pivot_switch,
              Add(call, "Switch", call.name + "/_switch", {goes_on, goes_on}, {{"T", DType::kBool}}));
  WEIR_ASSIGN(const Endpoint pivot, AddIdentity(call, call.name + "/_iterates", {pivot_switch.node, 1}));

  std::vector<Endpoint> inside = current;
  std::vector<Endpoint> exits(current.size());
  for (size_t i = 0; i < current.size(); ++i) {
    if (loop.invariant[i]) continue;
    const Attrs type = {{"T", TypeOf(current[i])}};
    WEIR_ASSIGN(const Endpoint split,
                Add(call, "Switch", fmt::format("{}/_switch_{}", call.name, i), {current[i], goes_on}, type));
    inside[i] = {split.node, 1};
    WEIR_ASSIGN(exits[i], Add(call, "Exit", fmt::format("{}/_exit_{}", call.name, i), {split}, type));
  }
  WEIR_ASSIGN(std::vector<Endpoint> next, loop.body(inside, pivot.node));
  if (next.size() < current.size()) {
    WEIR_ASSIGN(next.emplace_back(), AddIdentity(call, call.name + "/_again", inside.back(), {}));
  }
  for (size_t i = 0; i < current.size(); ++i) {
    if (loop.invariant[i]) continue;
    WEIR_ASSIGN(const Endpoint back, Add(call, "NextIteration", fmt::format("{}/_next_{}", call.name, i), {next[i]},
                                         {{"T", TypeOf(current[i])}}));
    WEIR_TRY(lowered_.SetInput(current[i].node, 1, back));
  }
  return Image{.node = exits[first_state].node, .outputs = std::move(exits)};
}

Result<Image> Lowerer::LowerWhile(const Call& call) {
  const std::vector<DType>& types = call.node.signature().inputs;
  WEIR_ASSIGN(const op::FuncRef condition_function, FunctionAttr(call.attrs(), "cond"));
  WEIR_ASSIGN(const op::FuncRef body_function, FunctionAttr(call.attrs(), "body"));
  WEIR_ASSIGN(const FunctionBody* const body, Body(call, body_function, types, types));
  WEIR_ASSIGN(const FunctionBody* condition, bodies_.Get(condition_function));
  if (condition->results.size() != 1) {
    return InvalidArgument("Function '{}' decides whether a loop goes on and must have one result, not {}",
                           condition_function.name, condition->results.size());
  }
  WEIR_ASSIGN(condition, Body(call, condition_function, types, condition->signature.outputs));
  Loop loop;
  loop.inputs = call.inputs;
  WEIR_ASSIGN(loop.parallel_iterations, call.attrs().Int("parallel_iterations"));
  for (size_t i = 0; i < types.size(); ++i) {
    loop.invariant.push_back(ArgumentBehind(*body, i) == static_cast<NodeId>(i));
  }
  bool has_effects = false;
  loop.condition = [&](const std::vector<Endpoint>& values, NodeId pivot) -> Result<Endpoint> {
    const std::vector<Endpoint> arguments(values.begin(), values.begin() + static_cast<ptrdiff_t>(types.size()));
    WEIR_ASSIGN(const Inlined inlined, Inline(call, *condition, call.name + "/cond", arguments, pivot));
    has_effects = has_effects || inlined.has_effects;
    WEIR_ASSIGN(const Endpoint answer, ToBool(call, call.name + "/_condition", inlined.results[0]));
    return AddIdentity(call, call.name + "/_condition", answer, {inlined.done});
  };
  loop.body = [&](const std::vector<Endpoint>& values, NodeId pivot) -> Result<std::vector<Endpoint>> {
    const std::vector<Endpoint> arguments(values.begin(), values.begin() + static_cast<ptrdiff_t>(types.size()));
    WEIR_ASSIGN(const Inlined inlined, Inline(call, *body, call.name + "/body", arguments, pivot));
    has_effects = has_effects || inlined.has_effects;
    std::vector<Endpoint> next;
    for (size_t i = 0; i < inlined.results.size(); ++i) {
      WEIR_ASSIGN(next.emplace_back(), AddIdentity(call, fmt::format("{}/body/_result_{}", call.name, i),
                                                   inlined.results[i], {inlined.done}));
    }
    return next;
  };
  WEIR_ASSIGN(const Image made, MakeLoop(call, loop));
  std::vector<Endpoint> outputs;
  for (size_t i = 0; i < types.size(); ++i) {
    // The value of an invariant is available before the loop, but its users must wait for effects.
    const bool invariant = loop.invariant[i];
    WEIR_ASSIGN(outputs.emplace_back(),
                AddIdentity(call, ResultName(call, i), invariant ? call.inputs[i] : made.outputs[i],
                            {invariant && has_effects ? made.node : kNone}));
  }
  return WithDone(call, std::move(outputs), {made.node}, has_effects);
}

Result<Image> Lowerer::LowerFor(const Call& call) {
  const std::vector<DType>& types = call.node.signature().inputs;
  WEIR_ASSIGN(const op::FuncRef function, FunctionAttr(call.attrs(), "body"));
  std::vector<DType> arguments = {DType::kInt32};
  arguments.insert(arguments.end(), types.begin() + 3, types.end());
  WEIR_ASSIGN(const FunctionBody* const body, Body(call, function, arguments, call.node.signature().outputs));

  const Attrs int_type = {{"T", DType::kInt32}};
  const auto compute = [&](std::string_view op, const std::string& name, Endpoint a, Endpoint b, const Attrs& attrs) {
    return Add(call, op, call.name + "/" + name, {a, b}, attrs);
  };
  const Endpoint start = call.inputs[0], limit = call.inputs[1], delta = call.inputs[2];
  WEIR_ASSIGN(const Endpoint zero, AddConst(call, call.name + "/_zero", Tensor::Scalar<int32_t>(0)));
  WEIR_ASSIGN(const Endpoint up, compute("Greater", "_up", delta, zero, int_type));
  WEIR_ASSIGN(const Endpoint down, compute("Less", "_down", delta, zero, int_type));

  // As in TensorFlow, the loop must move towards its limit, unless start equals limit.
  WEIR_ASSIGN(const Endpoint at_end, compute("Equal", "_at_end", start, limit, int_type));
  WEIR_ASSIGN(const Endpoint below, compute("Less", "_below", start, limit, int_type));
  WEIR_ASSIGN(const Endpoint above, compute("Greater", "_above", start, limit, int_type));
  WEIR_ASSIGN(const Endpoint leads_up, compute("LogicalAnd", "_leads_up", up, below, {}));
  WEIR_ASSIGN(const Endpoint leads_down, compute("LogicalAnd", "_leads_down", down, above, {}));
  WEIR_ASSIGN(const Endpoint leads, compute("LogicalOr", "_leads", leads_up, leads_down, {}));
  WEIR_ASSIGN(const Endpoint valid, compute("LogicalOr", "_valid", leads, at_end, {}));
  WEIR_ASSIGN(const Endpoint text,
              AddConst(call, call.name + "/_text", Tensor::Scalar<std::string>("Invalid start/limit/delta:")));
  WEIR_ASSIGN(
      const Endpoint check,
      Add(call, "Assert", call.name + "/_check", {valid, text, start, limit, delta},
          {{"T", std::vector<DType>{DType::kString, DType::kInt32, DType::kInt32, DType::kInt32}}}, call.controls));
  WEIR_ASSIGN(const Endpoint first, AddIdentity(call, call.name + "/_first", start, {check.node}));

  constexpr size_t kOwn = 5;  // variables before those of the call: counter, limit, delta, up, down
  Loop loop;
  loop.inputs = {first, limit, delta, up, down};
  loop.inputs.insert(loop.inputs.end(), call.inputs.begin() + 3, call.inputs.end());
  loop.invariant = {false, true, true, true, true};
  loop.invariant.resize(loop.inputs.size(), false);
  bool has_effects = false;
  loop.condition = [&](const std::vector<Endpoint>& values, NodeId) -> Result<Endpoint> {
    WEIR_ASSIGN(const Endpoint less, compute("Less", "_is_less", values[0], values[1], int_type));
    WEIR_ASSIGN(const Endpoint greater, compute("Greater", "_is_greater", values[0], values[1], int_type));
    WEIR_ASSIGN(const Endpoint rises, compute("LogicalAnd", "_rises", less, values[3], {}));
    WEIR_ASSIGN(const Endpoint falls, compute("LogicalAnd", "_falls", greater, values[4], {}));
    return compute("LogicalOr", "_goes_on", rises, falls, {});
  };
  loop.body = [&](const std::vector<Endpoint>& values, NodeId pivot) -> Result<std::vector<Endpoint>> {
    std::vector<Endpoint> given = {values[0]};
    given.insert(given.end(), values.begin() + kOwn, values.end());
    WEIR_ASSIGN(const Inlined inlined, Inline(call, *body, call.name + "/body", given, pivot));
    has_effects = inlined.has_effects;
    std::vector<Endpoint> next = values;
    WEIR_ASSIGN(next[0], compute("AddV2", "_count", values[0], values[2], int_type));
    WEIR_ASSIGN(next[0], AddIdentity(call, call.name + "/_counted", next[0], {inlined.done}));
    for (size_t i = 0; i < inlined.results.size(); ++i) {
      WEIR_ASSIGN(next[kOwn + i], AddIdentity(call, fmt::format("{}/body/_result_{}", call.name, i), inlined.results[i],
                                              {inlined.done}));
    }
    return next;
  };
  WEIR_ASSIGN(const Image made, MakeLoop(call, loop));
  std::vector<Endpoint> outputs;
  for (size_t i = 0; i < body->results.size(); ++i) {
    WEIR_ASSIGN(outputs.emplace_back(), AddIdentity(call, ResultName(call, i), made.outputs[kOwn + i]));
  }
  return WithDone(call, std::move(outputs), {made.node}, has_effects);
}

}  // namespace weir::lower
