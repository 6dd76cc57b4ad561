#include <algorithm>

#include "core/base/errors.h"
#include "core/plan/emit_context_internal.h"

namespace weir::plan {

using graph::Endpoint;
using graph::NodeId;
using graph::StepNode;

void GuardWriter::Under(GuardId guard) {
  Ensure(guard);
  tape_.SetGuard(guard);
}

void GuardWriter::Ensure(GuardId guard) {
  if (guard == kAlways || IsSet(guard)) return;
  const auto [a, b] = guards_.set.Parts(guard);
  if (!a.valid()) return;  // the Switch that makes it comes first on the tape
  Ensure(a);
  Ensure(b);
  Emit({GuardStep::Kind::kAnd, guard, kAlways, a, b});
}

void GuardWriter::Emit(const GuardStep& step, std::span<const ValueId> inputs, std::span<const ValueId> outputs) {
  const GuardId before = tape_.guard();
  tape_.SetGuard(kAlways);
  tape_.Emit(Opcode::kGuard, inputs, outputs).detail = static_cast<uint32_t>(tape_.plan().guard_steps.size());
  tape_.SetGuard(before);
  tape_.plan().guard_steps.push_back(step);
  MarkSet(step.to);
  MarkSet(step.otherwise);
}

void GuardWriter::MarkSet(GuardId guard) {
  if (!ready_.Has(guard)) ready_.resize(guards_.set.size(), false);
  ready_[guard] = true;
}

void GuardWriter::Restore(const IndexedVector<GuardId, bool>& sets) {
  for (const GuardId guard : ready_.indices()) ready_[guard] = sets.Has(guard) && sets[guard];
}

StepValues::StepValues(const graph::StepGraph& step) {
  first_.reserve(step.nodes.size());
  size_t outputs = 0;
  for (const StepNode& node : step.nodes) {
    first_.push_back(static_cast<uint32_t>(outputs));
    outputs += node.types.size();
  }
  values_.resize(outputs);
}

EmitContext::EmitContext(const PlanOptions& given_options, const graph::StepGraph& given_step,
                         graph::Placement& given_placement, StepGuards& given_guards, TapeBuilder& given_tape)
    : options(given_options),
      step(given_step),
      placement(given_placement),
      guards(given_guards),
      tape(given_tape),
      conditions(given_guards, given_tape),
      values(given_step),
      reads_index_(given_step.nodes.size(), false) {
  const auto note = [this](const Endpoint& read) {
    if (read.index == 1) reads_index_[read.node] = true;
  };
  for (const Endpoint& fetch : step.fetches) note(fetch);
  for (const StepNode& of : step.nodes) std::ranges::for_each(of.inputs, note);
}

device::Device* EmitContext::DeviceOf(NodeId id) const {
  const DeviceId device = PlacedOn(id);
  return device.valid() ? tape.plan().devices[device] : tape.plan().host_device;
}

std::string_view EmitContext::DeviceName(NodeId id) const {
  const DeviceId device = PlacedOn(id);
  return device.valid() ? std::string_view(placement.devices[device.position()]) : std::string_view();
}

Result<ValueId> EmitContext::Input(NodeId id, size_t input) {
  const ValueId value = values[node(id).inputs[input]];
  if (!value.valid()) return Fail(id, Internal("input {} has no value", input));
  return value;
}

Result<ValueId> EmitContext::Located(ValueId value, SpaceId space) {
  const Value& from = tape.ValueAt(value);
  const Storage& storage = tape.StorageAt(value);
  if (storage.space == space || !HasFixedSize(from.dtype)) return value;
  const auto found = copies_.find({value, space});
  if (found != copies_.end() && guards.set.Implies(tape.guard(), found->second.guard)) return found->second.value;
  ValueId copy;
  if (storage.home == Storage::Home::kConstant && storage.space == kHostSpace) {
    Storage moved;
    moved.home = Storage::Home::kConstant;
    moved.space = space;
    WEIR_ASSIGN(moved.constant, tape.plan().devices[OwnerOf(space)]->FromHost(storage.constant));
    copy = tape.AddValue(Value(from), std::move(moved));
  } else {
    copy = tape.NewLike(value, space);
    std::vector<Lock> locks;
    if (tape.IsVariable(value)) locks.push_back({tape.VariableOf(value), false});
    Instruction& instruction = tape.Emit(Opcode::kCopy, {value}, {copy});
    instruction.memory = space;
    tape.SetLocks(std::move(locks), instruction);
  }
  // A variable may change between two reads, so its copies are not shared.
  if (!tape.IsVariable(value)) copies_[{value, space}] = {copy, tape.guard()};
  return copy;
}

}  // namespace weir::plan
