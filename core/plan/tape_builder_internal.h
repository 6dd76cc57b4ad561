// Appends to the tape of a plan: instructions, values, storages and variables.
#ifndef WEIR_CORE_PLAN_TAPE_BUILDER_INTERNAL_H_
#define WEIR_CORE_PLAN_TAPE_BUILDER_INTERNAL_H_

#include <initializer_list>
#include <span>
#include <vector>

#include "core/plan/memory_internal.h"
#include "core/plan/plan.h"
#include "core/plan/tasks_internal.h"

namespace weir::plan {

/// An output of this type still stands for the variable behind the input, not for its value.
inline bool KeepsVariable(DType type) { return IsRef(type) || BaseType(type) == DType::kResource; }

/// kPlanned: in the arena when the shape is known. kAtRun: a tensor made while running.
enum class Placing : uint8_t { kPlanned, kAtRun };

/// Only appends: it knows neither the step nor its nodes. Instructions get the origin and the guard that are set when
/// they are emitted.
class TapeBuilder {
 public:
  explicit TapeBuilder(ExecutionPlan& plan) : plan_(plan) {}

  /// The node that the next instructions belong to.
  void SetOrigin(const graph::Node& node) { origin_ = &node; }
  /// The guard that the next instructions run under. Its byte must be set by then (GuardWriter).
  void SetGuard(GuardId guard) { guard_ = guard; }
  GuardId guard() const { return guard_; }
  /// Until CloseLoop, instructions under `guard` count as unguarded: a jump skips the loop as a whole.
  void OpenLoop(GuardId guard) { skipped_.push_back(guard); }
  void CloseLoop() { skipped_.pop_back(); }

  /// `note`: properties of the instruction besides those of its operands.
  Instruction& Emit(Opcode opcode, std::span<const ValueId> inputs, std::span<const ValueId> outputs,
                    const TapeNote& note = {});
  Instruction& Emit(Opcode opcode, std::initializer_list<ValueId> inputs, std::initializer_list<ValueId> outputs,
                    const TapeNote& note = {}) {
    return Emit(opcode, std::span(inputs.begin(), inputs.size()), std::span(outputs.begin(), outputs.size()), note);
  }
  void SetLocks(std::vector<Lock> locks, Instruction& instruction);
  /// Index of the next instruction.
  uint32_t position() const { return static_cast<uint32_t>(plan_.instructions.size()); }

  uint32_t AddJump(GuardId guard, uint32_t target = 0);
  void SetTarget(uint32_t jump, uint32_t target) { plan_.jumps[jump].target = target; }
  /// Records that [first, position] is a loop of `frame`, whose kRepeat comes next.
  void AddLoop(uint32_t first, FrameId frame) { shape_.loops.push_back({first, position(), frame}); }
  /// Permits an output of the last instruction to reuse the buffer of one of its inputs.
  void AllowSharing(uint32_t input, uint32_t output);

  StorageId AddStorage(Storage&& storage) { return plan_.storages.Add(std::move(storage)); }
  ValueId AddValue(Value value) { return plan_.values.Add(std::move(value)); }
  /// A value in a storage of its own.
  ValueId AddValue(Value value, Storage&& storage);
  ValueId AddConstant(const Tensor& tensor);
  ValueId NewValue(DType dtype, const PartialShape& shape, SpaceId space, Placing placing);
  /// The same value type and shape in another space.
  ValueId NewLike(ValueId value, SpaceId space);
  ValueId NewScalar(DType dtype, Placing placing) {
    return NewValue(dtype, PartialShape(Shape()), kHostSpace, placing);
  }
  ValueId NewScratch(uint64_t bytes, uint64_t alignment, SpaceId space);
  /// Another shape for the same memory.
  ValueId ViewOf(ValueId value, const PartialShape& shape);
  /// A value in the storage of one of `inputs`, whichever a kMerge chooses.
  ValueId AddChoice(std::span<const ValueId> inputs, SpaceId space);
  /// A value that stands for a new variable of the plan, or for a reference cell.
  ValueId AddVariable(VariableUse use, Value value, SpaceId space);
  /// A value that the caller keeps, if it would lie in the arena of the host: the arena's memory ends with the run.
  void MakeFresh(ValueId value);

  StorageId StorageOf(ValueId value) const { return plan_.values[value].storage; }
  Storage& StorageAt(ValueId value) { return plan_.storages[StorageOf(value)]; }
  const Storage& StorageAt(ValueId value) const { return plan_.storages[StorageOf(value)]; }
  const Value& ValueAt(ValueId value) const { return plan_.values[value]; }
  PartialShape ShapeOf(ValueId value) const {
    return ValueAt(value).shape_known ? PartialShape(ValueAt(value).shape) : PartialShape();
  }
  bool IsVariable(ValueId value) const { return StorageAt(value).home == Storage::Home::kVariable; }
  VariableId VariableOf(ValueId value) const { return StorageAt(value).variable; }
  const VariableUse& UseOf(ValueId value) const { return plan_.variables[VariableOf(value)]; }
  /// The value is a reference cell.
  bool IsPlace(ValueId value) const { return IsVariable(value) && UseOf(value).variable == nullptr; }

  ExecutionPlan& plan() { return plan_; }
  const ExecutionPlan& plan() const { return plan_; }
  /// What the tape is besides its instructions. Notes are by instruction.
  TapeShape& shape() { return shape_; }
  std::vector<TapeNote>& notes() { return notes_; }

 private:
  graph::NodeId OriginIndex();

  ExecutionPlan& plan_;
  TapeShape shape_;
  std::vector<TapeNote> notes_;
  const graph::Node* origin_ = nullptr;
  GuardId guard_ = kAlways;
  std::vector<GuardId> skipped_;  // of open loops, outermost first; kAlways where nothing skips the loop
};

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_TAPE_BUILDER_INTERNAL_H_
