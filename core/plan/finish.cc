// Completes the tape: allocations, releases, and jumps over dead instructions.
#include <algorithm>
#include <numeric>
#include <utility>

#include "core/plan/lifetimes_internal.h"
#include "core/plan/memory_internal.h"

namespace weir::plan {
namespace {

/// Writes the finished tape, and maps positions of the old one to it.
class Finisher {
 public:
  Finisher(const TapeShape& shape, ExecutionPlan& plan) : shape_(shape), plan_(plan) {
    FindReleases();
    std::sort(releases_.begin(), releases_.end());
    for (const Jump& jump : plan.jumps) labels_.push_back(jump.target);
    for (const Task& task : plan.tasks) labels_.push_back(task.begin);
    std::sort(labels_.begin(), labels_.end());
  }

  std::vector<uint32_t> Run() {
    const size_t count = plan_.instructions.size();
    moved_.resize(count + 1);
    std::iota(moved_.begin(), moved_.end(), 0u);
    if (releases_.empty() && plan_.jumps.empty() && plan_.made.empty() &&
        std::all_of(shape_.guards.begin(), shape_.guards.end(), [](GuardId guard) { return guard == kAlways; })) {
      return std::move(moved_);
    }
    tape_.reserve(count + releases_.size() + plan_.made.size());
    made_.resize(plan_.made.size(), false);
    const size_t jumps = plan_.jumps.size();
    GuardId guard = kAlways;
    for (size_t i = 0; i < count; ++i) {
      const bool label = std::binary_search(labels_.begin(), labels_.end(), static_cast<uint32_t>(i));
      const GuardId next = i < shape_.guards.size() ? shape_.guards[i] : kAlways;
      if (label || next != guard) EndStretch();
      guard = next;
      moved_[i] = static_cast<uint32_t>(tape_.size());
      if (guard != kAlways && open_ < 0) BeginStretch(guard, i);
      AddMakes(i);
      tape_.push_back(plan_.instructions[i]);
      AddReleases(i);
    }
    EndStretch();
    moved_[count] = static_cast<uint32_t>(tape_.size());
    for (size_t j = 0; j < jumps; ++j) plan_.jumps[j].target = moved_[plan_.jumps[j].target];
    plan_.instructions = std::move(tape_);
    return std::move(moved_);
  }

 private:
  void FindReleases() {
    const auto owned = [](const Storage& storage) { return storage.home == Storage::Home::kOwned; };
    if (std::none_of(plan_.storages.begin(), plan_.storages.end(), owned)) return;
    const IndexedVector<StorageId, Lifetime> lifetimes = FindLifetimes(shape_.loops, plan_, TaskOrder(plan_));
    for (const StorageId s : plan_.storages.indices()) {
      const int64_t last = owned(plan_.storages[s]) ? LastUse(lifetimes[s]) : -1;
      const bool at_the_end = last + 1 == static_cast<int64_t>(plan_.instructions.size());
      if (last >= 0 && !at_the_end) releases_.emplace_back(last, s);
    }
  }

  /// The last instruction that uses a storage; -1 if there is no single one: the last users are concurrent, or in a
  /// loop scheduled as tasks, after which no instruction can be inserted.
  int64_t LastUse(const Lifetime& life) const {
    if (plan_.tasks.empty()) return life.last;
    if (life.endless || life.ends.size() != 1) return -1;
    const Task& task = plan_.tasks[life.ends[0]];
    return task.inner > 0 ? -1 : static_cast<int64_t>(task.end) - 1;
  }

  Instruction Beside(size_t i, Opcode opcode, size_t detail) const {
    Instruction made;
    made.opcode = opcode;
    made.node = plan_.instructions[i].node;
    made.detail = static_cast<uint32_t>(detail);
    made.first_slot = plan_.instructions[i].first_slot;
    return made;
  }

  void BeginStretch(GuardId guard, size_t i) {
    open_ = static_cast<int64_t>(plan_.jumps.size());
    plan_.jumps.push_back({guard, 0});
    tape_.push_back(Beside(i, Opcode::kSkip, plan_.jumps.size() - 1));
  }

  void EndStretch() {
    if (open_ >= 0) plan_.jumps[static_cast<size_t>(open_)].target = static_cast<uint32_t>(tape_.size());
    open_ = -1;
  }

  /// Inserts kMake before the first use of donated memory, in the same task and under the same guard.
  void AddMakes(size_t i) {
    if (plan_.made.empty()) return;
    const uint32_t first = plan_.instructions[i].first_slot;
    for (uint32_t s = first; s < first + SlotCount(plan_, i); ++s) {
      const StorageId storage = StorageOf(plan_, s);
      const MadeId made = storage.valid() ? plan_.storages[storage].made : MadeId();
      if (!made.valid() || made_[made]) continue;
      made_[made] = true;
      tape_.push_back(Beside(i, Opcode::kMake, made.position()));
    }
  }

  void AddReleases(size_t i) {
    for (; next_ < releases_.size() && releases_[next_].first == static_cast<int64_t>(i); ++next_) {
      tape_.push_back(Beside(i, Opcode::kRelease, releases_[next_].second.position()));
      tape_.back().first_slot += SlotCount(plan_, i);
    }
  }

  const TapeShape& shape_;
  ExecutionPlan& plan_;
  std::vector<std::pair<int64_t, StorageId>> releases_;  // after instruction, storage
  std::vector<uint32_t> labels_;                         // targets of jumps and begins of tasks
  std::vector<Instruction> tape_;
  std::vector<uint32_t> moved_;       // old index -> new one
  IndexedVector<MadeId, bool> made_;  // it has its kMake
  size_t next_ = 0;
  int64_t open_ = -1;  // the jump over the current stretch
};

}  // namespace

void FindMoves(ExecutionPlan& plan) {
  for (Instruction& move : plan.instructions) {
    if (move.opcode != Opcode::kMove) continue;
    const Value& from = plan.values[plan.slots[move.first_slot].value];
    const Value& to = plan.values[plan.slots[move.first_slot + 1].value];
    const Storage& source = plan.storages[from.storage];
    const Storage& target = plan.storages[to.storage];
    const bool planned = target.home == Storage::Home::kArena || target.home == Storage::Home::kFresh;
    const bool pointed = source.home != Storage::Home::kVariable && from.shape_known && from.shape == to.shape;
    if (!planned || !pointed || target.space != kHostSpace || target.bytes > UINT32_MAX) continue;
    move.opcode = Opcode::kMoveBytes;
    move.detail = static_cast<uint32_t>(target.bytes);
  }
}

void FindAssigned(ExecutionPlan& plan) {
  const auto by_host = [&](const Instruction& instruction) {
    return instruction.opcode == Opcode::kCall && plan.calls[instruction.detail].builtin != nullptr;
  };
  bool any = false;
  for (const Instruction& call : plan.instructions) {
    if (!by_host(call)) continue;
    for (uint32_t s = call.first_slot + call.inputs; s < call.first_slot + call.inputs + call.outputs; ++s) {
      Storage& storage = plan.storages[StorageOf(plan, s)];
      storage.only_assigned =
          storage.home == Storage::Home::kOwned && storage.space == kHostSpace && !storage.variable.valid();
      any = any || storage.only_assigned;
    }
  }
  for (size_t i = 0; any && i < plan.instructions.size(); ++i) {
    const Instruction& user = plan.instructions[i];
    const uint32_t first = user.first_slot, outputs = first + user.inputs;
    const bool to_host_variable =
        user.opcode == Opcode::kAssign && plan.storages[StorageOf(plan, first)].space == kHostSpace;
    for (uint32_t s = first; s < first + SlotCount(plan, i); ++s) {
      const StorageId used = StorageOf(plan, s);
      const bool allowed = s >= outputs ? by_host(user) : to_host_variable && s == first + 1;
      if (used.valid() && !allowed) plan.storages[used].only_assigned = false;
    }
  }
}

void ListSlots(ExecutionPlan& plan) {
  plan.slot_shapes.reserve(plan.slots.size());
  for (const Slot& slot : plan.slots) {
    const Value& value = plan.values[slot.value];
    const auto rank = value.shape_known ? static_cast<uint32_t>(value.shape.rank()) : WEIR_UNKNOWN_RANK;
    plan.slot_shapes.push_back({rank, 0, value.shape.dims().data()});
  }
  const auto storage_of = [&](const Slot& slot) { return plan.values[slot.value].storage; };
  StorageSlots& of = plan.storage_slots;
  of.begins.assign(plan.storages.size() + 1, 0);
  for (const Slot& slot : plan.slots) ++of.begins[storage_of(slot)];
  uint32_t end = 0;
  for (uint32_t& begin : of.begins) begin = end += begin;  // where the slots of the storage end, so far
  of.slots.resize(plan.slots.size());
  for (size_t s = plan.slots.size(); s-- > 0;) {
    of.slots[--of.begins[storage_of(plan.slots[s])]] = static_cast<uint32_t>(s);
  }
  for (const StorageId id : plan.storages.indices()) {
    if (plan.storages[id].home == Storage::Home::kFresh) plan.fresh_storages.push_back(id);
  }
}

std::vector<uint32_t> FinishTape(const TapeShape& shape, ExecutionPlan& plan) { return Finisher(shape, plan).Run(); }

}  // namespace weir::plan
