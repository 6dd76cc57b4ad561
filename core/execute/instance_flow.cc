// Instructions that stand for Switch, Merge and the variables of loops.
#include <cstring>
#include <utility>

#include "core/base/errors.h"
#include "core/execute/instance_internal.h"

namespace weir::execute {

using plan::GuardStep;
using plan::Storage;
using plan::Value;

void PlanRunner::Instance::SetGuard(const Instruction& instruction) {
  const GuardStep& step = plan_.guard_steps[instruction.detail];
  IndexedVector<plan::GuardId, uint8_t>& guards = guards_;
  switch (step.kind) {
    case GuardStep::Kind::kPredicate: {
      const bool alive = guards[step.a] != 0;
      // The operand has a value only then.
      const bool taken = alive && *reinterpret_cast<const uint8_t*>(registers_[instruction.first_slot].data) != 0;
      guards[step.to] = taken;
      guards[step.otherwise] = alive && !taken;
      return;
    }
    case GuardStep::Kind::kAnd:
      guards[step.to] = guards[step.a] & guards[step.b];
      return;
    case GuardStep::Kind::kOr:
      guards[step.to] = guards[step.a] | guards[step.b];
      return;
    case GuardStep::Kind::kCopy:
      guards[step.to] = guards[step.a];
      return;
    case GuardStep::Kind::kClear:
      guards[step.to] = 0;
      return;
  }
}

bool PlanRunner::Instance::Skipped(const plan::Task& loop) const {
  if (loop.begin == loop.body) return false;
  const Instruction& first = plan_.instructions[loop.begin];
  return first.opcode == plan::Opcode::kSkip && guards_[plan_.jumps[first.detail].guard] == 0;
}

bool PlanRunner::Instance::Repeats(const plan::Task& loop) const {
  const plan::Jump& jump = plan_.jumps[plan_.instructions[loop.repeat].detail];
  return guards_[jump.guard] != 0;
}

void PlanRunner::Instance::Merge(const Instruction& instruction) {
  const std::vector<plan::GuardId>& guards = plan_.merges[instruction.detail];
  uint32_t chosen = 0;
  while (chosen + 1 < guards.size() && guards_[guards[chosen]] == 0) ++chosen;
  uint32_t output = instruction.inputs;
  if (instruction.inputs != 0) {
    const weir_reg from = registers_[instruction.first_slot + chosen];
    const plan::StorageId storage = ValueOf(instruction, output++).storage;
    const Storage& target = plan_.storages[storage];
    if (target.home == Storage::Home::kVariable) {
      Refer(target, StorageOf(ValueOf(instruction, chosen)));
    } else {
      chosen_[storage] = plan_.slots[instruction.first_slot + chosen].value;
      Point(storage, from);
    }
  }
  if (output == instruction.outputs + instruction.inputs) return;
  *reinterpret_cast<int32_t*>(registers_[instruction.first_slot + output].data) = static_cast<int32_t>(chosen);
}

void PlanRunner::Instance::MoveBytes(const Instruction& instruction) {
  void* const to = reinterpret_cast<void*>(registers_[instruction.first_slot + 1].data);
  const void* const from = reinterpret_cast<const void*>(registers_[instruction.first_slot].data);
  if (instruction.detail == sizeof(uint32_t)) {  // scalars, the usual loop variables, without a call
    std::memcpy(to, from, sizeof(uint32_t));
  } else if (instruction.detail == sizeof(uint64_t)) {
    std::memcpy(to, from, sizeof(uint64_t));
  } else if (instruction.detail != 0) {
    std::memmove(to, from, instruction.detail);
  }
}

Status PlanRunner::Instance::Push(const Instruction& instruction) {
  RunStack& stack = stacks_[instruction.detail];
  if (stack.full()) [[unlikely]] {
    const std::string& name = plan_.nodes[instruction.node]->name();
    WEIR_TRY(stack.Grow(AllocatorOf(plan::kHostSpace), name));
  }
  stack.Push(reinterpret_cast<const std::byte*>(registers_[instruction.first_slot].data));
  return Status();
}

Status PlanRunner::Instance::Pop(const Instruction& instruction) {
  RunStack& stack = stacks_[instruction.detail];
  if (stack.empty()) [[unlikely]] {
    return InvalidArgument("Stack[{}] is empty when calling Pop().", plan_.nodes[instruction.node]->name());
  }
  stack.Pop(reinterpret_cast<std::byte*>(registers_[instruction.first_slot].data));
  return Status();
}

void PlanRunner::Instance::Swap(const Instruction& instruction) {
  const plan::StorageId a = ValueOf(instruction, 0).storage, b = ValueOf(instruction, 1).storage;
  const weir_reg at_a = registers_[instruction.first_slot], at_b = registers_[instruction.first_slot + 1];
  std::swap(offsets_[a], offsets_[b]);
  std::swap(tensors_[a], tensors_[b]);
  Point(a, at_b);
  Point(b, at_a);
}

Status PlanRunner::Instance::Move(const Instruction& instruction) {
  const Value& from = ValueOf(instruction, 0);
  const Value& to = ValueOf(instruction, 1);
  const Storage& target = StorageOf(to);
  const bool planned = target.home == Storage::Home::kArena || target.home == Storage::Home::kFresh;
  if (target.home == Storage::Home::kVariable) {
    Refer(target, StorageOf(from));
    return Status();
  }
  WEIR_ASSIGN(Tensor tensor, TensorOf(from));
  if (to.shape_known && !(tensor.shape() == to.shape)) {
    return InvalidArgument("a loop variable of shape {} was given back with shape {}", to.shape.ToString(),
                           tensor.shape().ToString());
  }
  if (!planned) return HoldOutput(to, std::move(tensor));
  if (tensor.bytes() == 0) return Status();
  WEIR_ASSIGN(const Tensor destination, TensorOf(to));
  if (target.space != plan::kHostSpace) {
    return streams_.Copy(target.space, destination, target.space, tensor, false);
  }
  std::memmove(destination.buffer()->host() + destination.offset(), tensor.raw(), tensor.bytes());
  return Status();
}

}  // namespace weir::execute
