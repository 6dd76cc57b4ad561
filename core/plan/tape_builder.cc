#include "core/plan/tape_builder_internal.h"
#include "core/tensor/buffer.h"

#include <algorithm>
#include <utility>

namespace weir::plan {

void SortLocks(const IndexedVector<VariableId, VariableUse>& variables, std::vector<Lock>& locks) {
  const auto address = [&](const Lock& lock) { return variables[lock.variable].variable.get(); };
  std::sort(locks.begin(), locks.end(), [&](const Lock& a, const Lock& b) {
    return std::pair(address(a), !a.exclusive) < std::pair(address(b), !b.exclusive);
  });
  const auto again = [&](const Lock& a, const Lock& b) { return address(a) != nullptr && address(a) == address(b); };
  locks.erase(std::unique(locks.begin(), locks.end(), again), locks.end());
}

graph::NodeId TapeBuilder::OriginIndex() {
  if (plan_.nodes.empty() || plan_.nodes.back() != origin_) plan_.nodes.push_back(origin_);
  return plan_.nodes.end_index() - 1;
}

Instruction& TapeBuilder::Emit(Opcode opcode, std::span<const ValueId> inputs, std::span<const ValueId> outputs,
                               const TapeNote& note) {
  Instruction instruction;
  instruction.opcode = opcode;
  instruction.node = OriginIndex();
  instruction.first_slot = static_cast<uint32_t>(plan_.slots.size());
  instruction.inputs = static_cast<uint32_t>(inputs.size());
  instruction.outputs = static_cast<uint16_t>(outputs.size());
  for (const ValueId value : inputs) plan_.slots.push_back({value});
  for (const ValueId value : outputs) plan_.slots.push_back({value});
  plan_.instructions.push_back(instruction);
  const bool skipped = !skipped_.empty() && skipped_.back() == guard_;
  shape_.guards.push_back(skipped ? kAlways : guard_);
  notes_.push_back(note);
  return plan_.instructions.back();
}

void TapeBuilder::SetLocks(std::vector<Lock> locks, Instruction& instruction) {
  if (locks.empty()) return;
  SortLocks(plan_.variables, locks);
  instruction.locks = plan_.lock_lists.Add(std::move(locks));
}

uint32_t TapeBuilder::AddJump(GuardId guard, uint32_t target) {
  plan_.jumps.push_back({guard, target});
  return static_cast<uint32_t>(plan_.jumps.size()) - 1;
}

void TapeBuilder::AllowSharing(uint32_t input, uint32_t output) {
  const Instruction& last = plan_.instructions.back();
  shape_.shares.push_back({position() - 1, last.first_slot + input, last.first_slot + last.inputs + output});
}

ValueId TapeBuilder::AddValue(Value value, Storage&& storage) {
  value.storage = AddStorage(std::move(storage));
  return AddValue(std::move(value));
}

ValueId TapeBuilder::AddConstant(const Tensor& tensor) {
  Storage storage;
  storage.home = Storage::Home::kConstant;
  storage.constant = tensor;
  Value value;
  value.dtype = tensor.dtype();
  value.shape_known = true;
  value.shape = tensor.shape();
  return AddValue(std::move(value), std::move(storage));
}

ValueId TapeBuilder::NewValue(DType dtype, const PartialShape& shape, SpaceId space, Placing placing) {
  const StorageId storage_id = plan_.storages.end_index();
  const ValueId value_id = plan_.values.end_index();
  plan_.storages.resize(plan_.storages.size() + 1);  // in place: most values of large graphs are made here
  plan_.values.resize(plan_.values.size() + 1);
  Storage& storage = plan_.storages.back();
  Value& value = plan_.values.back();
  value.storage = storage_id;
  value.dtype = BaseType(dtype);
  if (Result<Shape> known = shape.ToShape(); known.ok()) {
    value.shape_known = true;
    value.shape = std::move(*known);
  }
  const bool plain = HasFixedSize(value.dtype);  // strings are no bytes to lay out
  // A value that no memory holds is made while running: the step fails there, and only if it gets there.
  const Result<uint64_t> bytes = PayloadBytes(value.dtype, value.shape);
  const bool planned = placing == Placing::kPlanned && value.shape_known && plain && bytes.ok();
  storage.space = space;
  storage.home = planned ? Storage::Home::kArena : Storage::Home::kOwned;
  storage.bytes = bytes.ok() ? *bytes : 0;
  return value_id;
}

ValueId TapeBuilder::NewLike(ValueId value, SpaceId space) {
  const DType dtype = ValueAt(value).dtype;
  return NewValue(dtype, ShapeOf(value), space, Placing::kPlanned);
}

ValueId TapeBuilder::NewScratch(uint64_t bytes, uint64_t alignment, SpaceId space) {
  Storage storage;
  storage.space = space;
  storage.bytes = bytes;
  storage.alignment = alignment;
  Value value;
  value.dtype = DType::kUint8;
  value.shape_known = value.scratch = true;
  value.shape = Shape::Of({static_cast<int64_t>(bytes)});
  return AddValue(std::move(value), std::move(storage));
}

ValueId TapeBuilder::ViewOf(ValueId value, const PartialShape& shape) {
  Value view = plan_.values[value];
  if (Result<Shape> known = shape.ToShape(); known.ok()) {
    view.shape_known = true;
    view.shape = std::move(*known);
  }
  return AddValue(std::move(view));
}

ValueId TapeBuilder::AddChoice(std::span<const ValueId> inputs, SpaceId space) {
  Value chosen = ValueAt(inputs[0]);
  Storage storage;
  storage.home = Storage::Home::kBound;
  storage.space = space;
  for (const ValueId input : inputs) {
    const Value& value = ValueAt(input);
    chosen.shape_known = chosen.shape_known && value.shape_known && value.shape == chosen.shape;
    storage.sources.push_back(value.storage);
  }
  return AddValue(std::move(chosen), std::move(storage));
}

ValueId TapeBuilder::AddVariable(VariableUse use, Value value, SpaceId space) {
  Storage storage;
  storage.home = Storage::Home::kVariable;
  storage.space = space;
  storage.variable = plan_.variables.end_index();
  plan_.variables.push_back(std::move(use));
  return AddValue(std::move(value), std::move(storage));
}

void TapeBuilder::MakeFresh(ValueId value) {
  Storage& storage = StorageAt(value);
  if (storage.home != Storage::Home::kArena || storage.space != kHostSpace || storage.bytes == 0) return;
  storage.home = Storage::Home::kFresh;
  storage.dtype = ValueAt(value).dtype;
  storage.shape = ValueAt(value).shape;
}

}  // namespace weir::plan
