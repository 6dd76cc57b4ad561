// Conds of v1 control flow: a Switch sets guards and copies nothing, a Merge points at the live input.
#include <algorithm>
#include <utility>

#include "core/graph/frames.h"
#include "core/plan/emitters_internal.h"

namespace weir::plan {

using graph::NodeId;
using graph::StepNode;

Result<ValueId> CondEmitter::Predicate(NodeId id) {
  WEIR_ASSIGN(const ValueId given, variables_.HostInput(id, 1));
  const Value& value = tape_.ValueAt(given);
  if (value.shape_known && value.shape.rank() == 0) return given;
  const ValueId scalar = tape_.NewScalar(DType::kBool, Placing::kAtRun);
  tape_.Emit(Opcode::kCopy, {given}, {scalar});  // which refuses any other shape
  return scalar;
}

Status CondEmitter::EmitSwitch(NodeId id) {
  WEIR_ASSIGN(const ValueId value, variables_.Forwarded(id));
  c_.values[{id, 0}] = c_.values[{id, 1}] = value;
  WEIR_ASSIGN(const ValueId predicate, Predicate(id));
  const graph::Endpoint decides = PredicateOf(c_.step, c_.node(id));
  const GuardId under = tape_.guard();
  const GuardId yes = c_.guards.set.With(under, decides, true), no = c_.guards.set.With(under, decides, false);
  if (c_.conditions.IsSet(yes) && c_.conditions.IsSet(no)) return Status();
  const std::vector<ValueId> inputs = {predicate};
  c_.conditions.Emit({GuardStep::Kind::kPredicate, yes, no, under}, inputs);
  return Status();
}

void CondEmitter::SetGuardOf(NodeId id, std::span<const GuardId> inputs) {
  const GuardId own = c_.guards.node[id];
  for (const GuardId guard : inputs) c_.conditions.Ensure(guard);
  const auto implies = [&](GuardId guard) { return c_.guards.set.Implies(guard, own); };
  if (std::ranges::none_of(inputs, implies)) {  // a RunCondition
    c_.conditions.Clear(own);
    for (const GuardId guard : inputs) c_.conditions.Or(own, guard);
  }
  c_.conditions.Under(own);
}

Status CondEmitter::EmitMerge(NodeId id) {
  const StepNode& node = c_.node(id);
  std::vector<ValueId> inputs;
  std::vector<GuardId> guards;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    WEIR_ASSIGN(inputs.emplace_back(), c_.Input(id, i));
    guards.push_back(c_.guards.Of(c_.step, node.inputs[i]));
    if (!tape_.IsVariable(inputs.back()) || KeepsVariable(node.types[0])) continue;
    c_.conditions.Under(guards.back());
    inputs.back() = variables_.Snapshot(inputs.back(), node.shapes[0]);
  }
  if (node.types[0] == DType::kResource) variables_.UnifyHandles(guards, &inputs);
  const bool same = std::ranges::all_of(inputs, [&](ValueId value) { return value == inputs[0]; });
  const bool refers = std::ranges::any_of(inputs, [&](ValueId value) { return tape_.IsVariable(value); });
  const SpaceId space = same ? kHostSpace : c_.SpaceOf(id);
  for (size_t i = 0; i < inputs.size() && !same && !refers; ++i) {
    c_.conditions.Under(guards[i]);
    WEIR_ASSIGN(inputs[i], c_.Located(inputs[i], space));
  }
  SetGuardOf(id, guards);
  std::vector<ValueId> outputs;
  ValueId& out = c_.values[{id, 0}];
  if (same) {
    out = inputs[0];
    inputs.clear();
  } else if (refers) {
    WEIR_ASSIGN(out, variables_.CellFor(id, std::span<const ValueId>(inputs)));
    outputs.push_back(out);
  } else {
    out = tape_.AddChoice(inputs, space);
    outputs.push_back(out);
  }
  if (c_.ReadsIndex(id)) {
    outputs.push_back(tape_.NewScalar(DType::kInt32, Placing::kPlanned));
    c_.values[{id, 1}] = outputs.back();
  }
  if (outputs.empty()) return Status();
  tape_.Emit(Opcode::kMerge, inputs, outputs).detail = static_cast<uint32_t>(tape_.plan().merges.size());
  tape_.plan().merges.push_back(std::move(guards));
  return Status();
}

}  // namespace weir::plan
