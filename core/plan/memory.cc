#include "core/plan/memory_internal.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace weir::plan {
namespace {

constexpr uint64_t kAlignment = kBufferAlignment;

uint64_t RoundUp(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Free ranges of an unbounded address space; the high-water mark is the size of the arena.
class FreeRanges {
 public:
  uint64_t Take(uint64_t bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit == by_size_.end()) {
      uint64_t offset = end_;
      if (!by_offset_.empty()) {  // a free range at the very end grows
        const auto last = std::prev(by_offset_.end());
        if (last->first + last->second == end_) {
          offset = last->first;
          by_size_.erase({last->second, last->first});
          by_offset_.erase(last);
        }
      }
      end_ = offset + bytes;
      return offset;
    }
    const auto [size, offset] = *fit;
    by_size_.erase(fit);
    by_offset_.erase(offset);
    if (size > bytes) Insert(offset + bytes, size - bytes);
    return offset;
  }

  void Give(uint64_t offset, uint64_t bytes) {
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && offset + bytes == next->first) {
      bytes += next->second;
      by_size_.erase({next->second, next->first});
      next = by_offset_.erase(next);
    }
    if (next != by_offset_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
        by_size_.erase({before->second, before->first});
        by_offset_.erase(before);
      }
    }
    Insert(offset, bytes);
  }

  uint64_t end() const { return end_; }

 private:
  void Insert(uint64_t offset, uint64_t bytes) {
    by_offset_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  std::map<uint64_t, uint64_t> by_offset_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;
  uint64_t end_ = 0;
};

uint32_t SlotCount(const ExecutionPlan& plan, size_t i) {
  const Instruction& instruction = plan.instructions[i];
  const size_t end = i + 1 < plan.instructions.size() ? plan.instructions[i + 1].first_slot : plan.slots.size();
  return static_cast<uint32_t>(end) - instruction.first_slot;
}

int StorageOf(const ExecutionPlan& plan, uint32_t slot) {
  const int value = plan.slots[slot].value;
  return value < 0 ? -1 : plan.values[static_cast<size_t>(value)].storage;
}

/// First and last instruction that touch each storage; -1 for none.
struct Uses {
  std::vector<int64_t> first;
  std::vector<int64_t> last;
};

/// The memory of what a Merge may have chosen is in use for as long as the choice.
void ExtendSources(const ExecutionPlan& plan, Uses& uses) {
  for (size_t s = plan.storages.size(); s-- > 0;) {
    for (const int source : plan.storages[s].sources) {
      int64_t& last = uses.last[static_cast<size_t>(source)];
      last = std::max(last, uses.last[s]);
    }
  }
}

/// What was there when a loop began is used by its last iteration too.
void ExtendThroughLoops(const std::vector<Loop>& loops, Uses& uses) {
  for (const Loop& loop : loops) {
    for (size_t s = 0; s < uses.last.size(); ++s) {
      const bool before = uses.first[s] < static_cast<int64_t>(loop.first);
      const bool inside = uses.last[s] >= static_cast<int64_t>(loop.first);
      if (before && inside) uses.last[s] = std::max(uses.last[s], static_cast<int64_t>(loop.last));
    }
  }
}

Uses FindUses(const TapeShape& shape, const ExecutionPlan& plan) {
  Uses uses{std::vector<int64_t>(plan.storages.size(), -1), std::vector<int64_t>(plan.storages.size(), -1)};
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const uint32_t first = plan.instructions[i].first_slot;
    for (uint32_t s = first; s < first + SlotCount(plan, i); ++s) {
      const int storage = StorageOf(plan, s);
      if (storage < 0) continue;
      uses.last[static_cast<size_t>(storage)] = static_cast<int64_t>(i);
      if (uses.first[static_cast<size_t>(storage)] < 0)
        uses.first[static_cast<size_t>(storage)] = static_cast<int64_t>(i);
    }
  }
  for (int round = 0; round < 2; ++round) {  // an extended choice extends its sources, which may reach into loops again
    ExtendSources(plan, uses);
    ExtendThroughLoops(shape.loops, uses);
  }
  ExtendSources(plan, uses);
  return uses;
}

/// Walks the tape once, taking and giving ranges.
class Layout {
 public:
  Layout(const TapeShape& shape, ExecutionPlan& plan)
      : shares_(shape.shares),
        tasks_(shape.tasks),
        plan_(plan),
        last_(FindUses(shape, plan).last),
        held_(plan.storages.size(), 0),
        moved_(plan.storages.size(), false),
        space_count_(plan.devices.size() + 1) {
    ranges_.resize(space_count_);
  }

  void Run() {
    // Uses that end at an instruction which does not touch the storage: behind a choice or a loop.
    std::vector<std::pair<int64_t, int>> ends;
    for (size_t s = 0; s < plan_.storages.size(); ++s) {
      if (InArena(static_cast<int>(s)) && last_[s] >= 0) ends.emplace_back(last_[s], static_cast<int>(s));
    }
    std::sort(ends.begin(), ends.end());
    size_t share = 0, end_at = 0;
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      while (share < shares_.size() && shares_[share].instruction == i) TryShare(shares_[share++]);
      const uint32_t first = plan_.instructions[i].first_slot;
      const uint32_t end = first + SlotCount(plan_, i);
      for (uint32_t s = first; s < end; ++s) Hold(StorageOf(plan_, s));
      const bool reuse = tasks_.empty();
      for (; reuse && end_at < ends.size() && ends[end_at].first == static_cast<int64_t>(i); ++end_at)
        Drop(ends[end_at].second);
    }
    plan_.arena_bytes.assign(space_count_, 0);
    for (size_t s = 0; s < space_count_; ++s) plan_.arena_bytes[s] = ranges_[s].end();
  }

 private:
  Storage& At(int storage) { return plan_.storages[static_cast<size_t>(storage)]; }
  bool InArena(int storage) {
    return storage >= 0 && At(storage).home == Storage::Home::kArena && At(storage).bytes > 0;
  }
  FreeRanges& RangesOf(int storage) { return ranges_[static_cast<size_t>(At(storage).space + 1)]; }

  /// The output takes the input's range when this is the input's last use and no other operand looks at it differently.
  void TryShare(const MayShare& share) {
    const int from = StorageOf(plan_, share.input_slot);
    const int to = StorageOf(plan_, share.output_slot);
    if (!InArena(from) || !InArena(to) || from == to || held_[static_cast<size_t>(to)] != 0) return;
    if (last_[static_cast<size_t>(from)] != share.instruction || held_[static_cast<size_t>(from)] < At(to).bytes)
      return;
    if (At(from).space != At(to).space) return;
    const Instruction& instruction = plan_.instructions[share.instruction];
    for (uint32_t s = instruction.first_slot; s < instruction.first_slot + instruction.inputs; ++s) {
      if (StorageOf(plan_, s) == from && plan_.slots[s].value != plan_.slots[share.input_slot].value) return;
    }
    At(to).offset = At(from).offset;
    std::swap(held_[static_cast<size_t>(to)], held_[static_cast<size_t>(from)]);
    moved_[static_cast<size_t>(from)] = true;
  }

  void Hold(int storage) {
    if (!InArena(storage) || held_[static_cast<size_t>(storage)] != 0) return;
    if (moved_[static_cast<size_t>(storage)]) return;
    const uint64_t bytes = RoundUp(At(storage).bytes);
    At(storage).offset = RangesOf(storage).Take(bytes);
    held_[static_cast<size_t>(storage)] = bytes;
  }

  void Drop(int storage) {
    uint64_t& bytes = held_[static_cast<size_t>(storage)];
    if (bytes != 0) RangesOf(storage).Give(At(storage).offset, bytes);
    bytes = 0;
  }

  const std::vector<MayShare>& shares_;
  const std::vector<uint32_t>& tasks_;
  ExecutionPlan& plan_;
  std::vector<int64_t> last_;
  std::vector<uint64_t> held_;  // bytes of the range that a storage holds now; 0 = none
  std::vector<bool> moved_;     // the range went to an output
  size_t space_count_;
  std::vector<FreeRanges> ranges_;
};

}  // namespace

void LayOutArena(const TapeShape& shape, ExecutionPlan& plan) { Layout(shape, plan).Run(); }

namespace {

/// The finished tape grows behind the old one, which says where everything went.
class Finisher {
 public:
  Finisher(const TapeShape& shape, ExecutionPlan& plan) : shape_(shape), plan_(plan) {
    const Uses uses = FindUses(shape, plan);
    for (size_t s = 0; s < plan.storages.size(); ++s) {
      const bool at_the_end = uses.last[s] + 1 == static_cast<int64_t>(plan.instructions.size());
      const bool owned = plan.storages[s].home == Storage::Home::kOwned && shape.tasks.empty();
      if (owned && uses.last[s] >= 0 && !at_the_end) {
        releases_.emplace_back(uses.last[s], static_cast<int>(s));
      }
    }
    std::sort(releases_.begin(), releases_.end());
    for (const Jump& jump : plan.jumps) labels_.push_back(jump.target);
    labels_.insert(labels_.end(), shape.tasks.begin(), shape.tasks.end());
    std::sort(labels_.begin(), labels_.end());
  }

  std::vector<uint32_t> Run() {
    const size_t count = plan_.instructions.size();
    moved_.resize(count + 1);
    std::iota(moved_.begin(), moved_.end(), 0u);
    if (releases_.empty() && plan_.jumps.empty() &&
        std::all_of(shape_.guards.begin(), shape_.guards.end(), [](int guard) { return guard == 0; })) {
      return std::move(moved_);
    }
    tape_.reserve(count + releases_.size());
    const size_t jumps = plan_.jumps.size();
    int guard = 0;
    for (size_t i = 0; i < count; ++i) {
      const bool label = std::binary_search(labels_.begin(), labels_.end(), static_cast<uint32_t>(i));
      const int next = i < shape_.guards.size() ? shape_.guards[i] : 0;
      if (label || next != guard) EndStretch();
      guard = next;
      moved_[i] = static_cast<uint32_t>(tape_.size());
      if (guard != 0 && open_ < 0) BeginStretch(guard, i);
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
  Instruction Beside(size_t i, Opcode opcode, size_t detail) const {
    Instruction made;
    made.opcode = opcode;
    made.node = plan_.instructions[i].node;
    made.detail = static_cast<uint32_t>(detail);
    made.first_slot = plan_.instructions[i].first_slot;
    return made;
  }

  void BeginStretch(int guard, size_t i) {
    open_ = static_cast<int64_t>(plan_.jumps.size());
    plan_.jumps.push_back({guard, 0});
    tape_.push_back(Beside(i, Opcode::kSkip, plan_.jumps.size() - 1));
  }

  void EndStretch() {
    if (open_ >= 0) plan_.jumps[static_cast<size_t>(open_)].target = static_cast<uint32_t>(tape_.size());
    open_ = -1;
  }

  void AddReleases(size_t i) {
    for (; next_ < releases_.size() && releases_[next_].first == static_cast<int64_t>(i); ++next_) {
      tape_.push_back(Beside(i, Opcode::kRelease, static_cast<size_t>(releases_[next_].second)));
      tape_.back().first_slot += SlotCount(plan_, i);
    }
  }

  const TapeShape& shape_;
  ExecutionPlan& plan_;
  std::vector<std::pair<int64_t, int>> releases_;  // after instruction, storage
  std::vector<uint32_t> labels_;                   // instructions that jumps lead to
  std::vector<Instruction> tape_;
  std::vector<uint32_t> moved_;  // old index -> new one
  size_t next_ = 0;
  int64_t open_ = -1;  // the jump over the current stretch
};

}  // namespace

std::vector<uint32_t> FinishTape(const TapeShape& shape, ExecutionPlan& plan) { return Finisher(shape, plan).Run(); }

}  // namespace weir::plan
