#include "core/plan/memory_internal.h"

#include <algorithm>
#include <map>
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

/// Last instruction that touches each storage; -1 for none.
std::vector<int64_t> LastUses(const ExecutionPlan& plan) {
  std::vector<int64_t> last(plan.storages.size(), -1);
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const uint32_t first = plan.instructions[i].first_slot;
    for (uint32_t s = first; s < first + SlotCount(plan, i); ++s) {
      if (const int storage = StorageOf(plan, s); storage >= 0)
        last[static_cast<size_t>(storage)] = static_cast<int64_t>(i);
    }
  }
  return last;
}

/// Walks the tape once, taking and giving ranges.
class Layout {
 public:
  Layout(const std::vector<MayShare>& shares, ExecutionPlan& plan)
      : shares_(shares),
        plan_(plan),
        last_(LastUses(plan)),
        held_(plan.storages.size(), 0),
        moved_(plan.storages.size(), false),
        space_count_(plan.devices.size() + 1) {
    ranges_.resize(space_count_);
  }

  void Run() {
    size_t share = 0;
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      while (share < shares_.size() && shares_[share].instruction == i) TryShare(shares_[share++]);
      const uint32_t first = plan_.instructions[i].first_slot;
      const uint32_t end = first + SlotCount(plan_, i);
      for (uint32_t s = first; s < end; ++s) Hold(StorageOf(plan_, s));
      for (uint32_t s = first; s < end; ++s) DropAfter(StorageOf(plan_, s), static_cast<int64_t>(i));
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

  void DropAfter(int storage, int64_t instruction) {
    if (!InArena(storage) || last_[static_cast<size_t>(storage)] != instruction) return;
    uint64_t& bytes = held_[static_cast<size_t>(storage)];
    if (bytes != 0) RangesOf(storage).Give(At(storage).offset, bytes);
    bytes = 0;
  }

  const std::vector<MayShare>& shares_;
  ExecutionPlan& plan_;
  std::vector<int64_t> last_;
  std::vector<uint64_t> held_;  // bytes of the range that a storage holds now; 0 = none
  std::vector<bool> moved_;     // the range went to an output
  size_t space_count_;
  std::vector<FreeRanges> ranges_;
};

}  // namespace

void LayOutArena(const std::vector<MayShare>& shares, ExecutionPlan& plan) { Layout(shares, plan).Run(); }

void InsertReleases(ExecutionPlan& plan) {
  const std::vector<int64_t> last = LastUses(plan);
  std::vector<std::pair<int64_t, int>> releases;  // after instruction, storage
  for (size_t s = 0; s < plan.storages.size(); ++s) {
    const bool last_of_all = last[s] + 1 == static_cast<int64_t>(plan.instructions.size());
    if (plan.storages[s].home == Storage::Home::kOwned && last[s] >= 0 && !last_of_all) {
      releases.emplace_back(last[s], static_cast<int>(s));
    }
  }
  if (releases.empty()) return;
  std::sort(releases.begin(), releases.end());
  std::vector<Instruction> tape;
  tape.reserve(plan.instructions.size() + releases.size());
  size_t next = 0;
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    tape.push_back(plan.instructions[i]);
    for (; next < releases.size() && releases[next].first == static_cast<int64_t>(i); ++next) {
      Instruction release;
      release.opcode = Opcode::kRelease;
      release.node = plan.instructions[i].node;
      release.detail = static_cast<uint32_t>(releases[next].second);
      release.first_slot = plan.instructions[i].first_slot + SlotCount(plan, i);
      tape.push_back(release);
    }
  }
  plan.instructions = std::move(tape);
}

}  // namespace weir::plan
