// Memory layout: first the values that share a block, then the offset of each block.
#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "core/base/errors.h"
#include "core/plan/lifetimes_internal.h"
#include "core/plan/memory_internal.h"
#include "core/tensor/buffer.h"

namespace weir::plan {
namespace {

constexpr uint64_t kAlignment = kBufferAlignment;
/// All blocks of a plan together: offsets and sums stay far from overflowing.
constexpr uint64_t kMostPlanned = uint64_t{1} << 60;

/// In memory that only a device reaches, its tensors keep the alignment that it declares.
uint64_t RoundUp(const ExecutionPlan& plan, SpaceId space, uint64_t bytes) {
  const device::Device* const device = space == kHostSpace ? nullptr : plan.devices[OwnerOf(space)];
  const uint64_t unit = std::max(kAlignment, device == nullptr ? kAlignment : device->info().alignment);
  return (bytes + unit - 1) / unit * unit;
}

/// A range of an arena that a chain of values uses, each in place of the one before.
struct Block {
  uint64_t bytes = 0;
  Lifetime life;      // from the first value's begin to the last one's end
  StorageId storage;  // of the first value
};

/// Free ranges of an unbounded address space, each with the tasks that may still use it. `end` is the high-water mark.
class FreeRanges {
 public:
  explicit FreeRanges(const TaskOrder& order) : order_(order) {}

  uint64_t Take(uint64_t bytes, const Lifetime& life) {
    int tries = 0;
    auto fit = by_size_.lower_bound({bytes, 0});
    while (fit != by_size_.end() && tries < kMostTries && !FreeFor(life, fit->second)) {
      ++fit;
      ++tries;
    }
    if (fit == by_size_.end() || tries == kMostTries) return TakeAtTheEnd(bytes, life);
    const auto [size, offset] = *fit;
    Range rest = std::move(by_offset_.at(offset));
    Remove(by_offset_.find(offset));
    if (size > bytes) Insert(offset + bytes, {size - bytes, std::move(rest.users)});
    return offset;
  }

  void Give(uint64_t offset, uint64_t bytes, std::vector<TaskId> users) {
    const auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && offset + bytes == next->first && Join(next->second.users, &users)) {
      bytes += next->second.bytes;
      Remove(next);
    }
    const auto after = by_offset_.lower_bound(offset);
    if (after != by_offset_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second.bytes == offset && Join(before->second.users, &users)) {
        offset = before->first;
        bytes += before->second.bytes;
        Remove(before);
      }
    }
    Insert(offset, {bytes, std::move(users)});
  }

  uint64_t end() const { return end_; }

 private:
  static constexpr int kMostTries = 32;
  static constexpr size_t kMostUsers = 16;
  struct Range {
    uint64_t bytes = 0;
    std::vector<TaskId> users;
  };
  using Ranges = std::map<uint64_t, Range>;

  bool FreeFor(const Lifetime& life, uint64_t offset) const {
    return life.ordered && !life.apart && order_.AllBefore(by_offset_.at(offset).users, life.begin);
  }

  uint64_t TakeAtTheEnd(uint64_t bytes, const Lifetime& life) {
    uint64_t offset = end_;
    if (!by_offset_.empty()) {  // a free range at the very end grows
      const auto last = std::prev(by_offset_.end());
      const bool at_the_end = last->first + last->second.bytes == end_ && last->second.bytes < bytes;
      if (at_the_end && FreeFor(life, last->first)) {
        offset = last->first;
        Remove(last);
      }
    }
    end_ = offset + bytes;
    return offset;
  }

  /// Merges the users of two neighbouring ranges, unless they are too many.
  bool Join(const std::vector<TaskId>& more, std::vector<TaskId>* users) const {
    if (more == *users) return true;
    std::vector<TaskId> both;
    std::set_union(users->begin(), users->end(), more.begin(), more.end(), std::back_inserter(both));
    both = order_.Latest(both);
    if (both.size() > kMostUsers) return false;
    *users = std::move(both);
    return true;
  }

  void Insert(uint64_t offset, Range range) {
    by_size_.emplace(range.bytes, offset);
    by_offset_.emplace(offset, std::move(range));
  }
  void Remove(Ranges::iterator range) {
    by_size_.erase({range->second.bytes, range->first});
    by_offset_.erase(range);
  }

  const TaskOrder& order_;
  Ranges by_offset_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;
  uint64_t end_ = 0;
};

/// Assigns offsets to the blocks of one space, which are sorted by begin.
class Placer {
 public:
  Placer(const std::vector<Block>& blocks, std::vector<size_t> indices, const TaskOrder& order)
      : blocks_(blocks), indices_(std::move(indices)), order_(order) {}

  /// Offsets by position in `indices`, and the bytes that they span. `floor` is a span that no layout goes below.
  std::vector<uint64_t> Run(uint64_t floor, uint64_t* span) {
    std::vector<uint64_t> best(indices_.size(), 0);
    std::vector<size_t> all(indices_.size());
    std::iota(all.begin(), all.end(), size_t{0});
    *span = AlongTape(all, 0, &best);
    if (*span <= floor) return best;
    std::vector<uint64_t> other(indices_.size(), 0);
    const uint64_t other_span = BySize(all, &other);
    if (other_span >= *span) return best;
    *span = other_span;
    return other;
  }

 private:
  /// Each of the largest blocks is compared with every other, which takes quadratic time.
  static constexpr size_t kMostCompared = 2048;

  const Block& At(size_t i) const { return blocks_[indices_[i]]; }

  /// Best fit, O(n log n). Returns the end.
  uint64_t AlongTape(const std::vector<size_t>& which, uint64_t base, std::vector<uint64_t>* offsets) const {
    FreeRanges ranges(order_);
    std::vector<std::pair<int64_t, size_t>> ends;
    for (const size_t i : which) ends.emplace_back(At(i).life.last, i);
    std::sort(ends.begin(), ends.end());
    size_t ended = 0;
    for (const size_t i : which) {
      for (; ended < ends.size() && ends[ended].first < At(i).life.first; ++ended) {
        const size_t gone = ends[ended].second;
        if (!At(gone).life.endless && !At(gone).life.apart)
          ranges.Give((*offsets)[gone] - base, At(gone).bytes, At(gone).life.ends);
      }
      (*offsets)[i] = base + ranges.Take(At(i).bytes, At(i).life);
    }
    return base + ranges.end();
  }

  /// Largest first, each into the smallest gap between blocks live at the same time. Blocks beyond kMostCompared are
  /// placed behind the others. Returns the end.
  uint64_t BySize(std::vector<size_t> which, std::vector<uint64_t>* offsets) const {
    std::stable_sort(which.begin(), which.end(), [&](size_t a, size_t b) { return At(a).bytes > At(b).bytes; });
    std::vector<size_t> placed;  // by offset
    uint64_t end = 0;
    for (const size_t i : std::vector<size_t>(
             which.begin(), which.begin() + static_cast<ptrdiff_t>(std::min(which.size(), kMostCompared)))) {
      uint64_t above = 0, best = UINT64_MAX, smallest = UINT64_MAX;
      for (const size_t other : placed) {
        if (Apart(At(i).life, At(other).life)) continue;
        const uint64_t begin = (*offsets)[other];
        if (begin > above && begin - above >= At(i).bytes && begin - above < smallest) {
          best = above;
          smallest = begin - above;
        }
        above = std::max(above, begin + At(other).bytes);
      }
      (*offsets)[i] = best == UINT64_MAX ? above : best;
      end = std::max(end, (*offsets)[i] + At(i).bytes);
      const auto behind = std::upper_bound(placed.begin(), placed.end(), i,
                                           [&](size_t a, size_t b) { return (*offsets)[a] < (*offsets)[b]; });
      placed.insert(behind, i);
    }
    if (which.size() <= kMostCompared) return end;
    which.erase(which.begin(), which.begin() + static_cast<ptrdiff_t>(kMostCompared));
    std::sort(which.begin(), which.end());
    return AlongTape(which, end, offsets);
  }

  bool Apart(const Lifetime& a, const Lifetime& b) const {
    return a.first < b.first ? Ended(a, b, order_) : Ended(b, a, order_);
  }

  const std::vector<Block>& blocks_;
  const std::vector<size_t> indices_;
  const TaskOrder& order_;
};

class Layout {
 public:
  Layout(const TapeShape& shape, ExecutionPlan& plan)
      : shares_(shape.shares),
        loops_(shape.loops),
        plan_(plan),
        order_(plan),
        lives_(FindLifetimes(shape.loops, plan, order_)),
        block_of_(plan.storages.size(), kNoBlock),
        next_(plan.storages.size()) {}

  void Run() {
    MakeBlocks();
    const size_t spaces = plan_.devices.size() + 1;
    plan_.arena_bytes.assign(spaces, 0);
    plan_.live_bytes.assign(spaces, 0);
    IndexedVector<SpaceId, std::vector<size_t>> of_space(spaces);
    for (size_t b = 0; b < blocks_.size(); ++b) of_space[At(blocks_[b].storage).space].push_back(b);
    for (const SpaceId s : of_space.indices()) {
      Placed placed = Place(of_space[s]);
      std::vector<size_t> taken, others;
      for (const size_t b : of_space[s]) (MayBeTaken(blocks_[b]) ? taken : others).push_back(b);
      if (!taken.empty()) {
        Placed apart = Place(others);
        if (apart.bytes + Place(taken).bytes <= placed.bytes) {
          for (const size_t b : taken) Make(blocks_[b]);
          placed = std::move(apart);
          of_space[s] = std::move(others);
        }
      }
      plan_.live_bytes[s] = placed.live_bytes;
      plan_.arena_bytes[s] = placed.bytes;
      for (size_t i = 0; i < placed.offsets.size(); ++i) {
        for (StorageId storage = blocks_[of_space[s][i]].storage; storage.valid(); storage = next_[storage]) {
          At(storage).offset = placed.offsets[i];
        }
      }
    }
  }

 private:
  /// Smaller values are copied faster than memory is allocated.
  static constexpr uint64_t kLeastTaken = uint64_t{64} << 10;

  struct Placed {
    uint64_t live_bytes = 0;
    uint64_t bytes = 0;
    std::vector<uint64_t> offsets;
  };
  Placed Place(const std::vector<size_t>& blocks) {
    Placed placed;
    placed.live_bytes = MostLive(blocks);
    placed.offsets = Placer(blocks_, blocks, order_).Run(placed.live_bytes, &placed.bytes);
    return placed;
  }

  StorageId LastOf(const Block& block) const {
    StorageId storage = block.storage;
    while (next_[storage].valid()) storage = next_[storage];
    return storage;
  }

  /// The block may be donated: its last use assigns its last value, which fills it, to a variable.
  bool MayBeTaken(const Block& block) {
    if (block.bytes < kLeastTaken || block.life.endless || !block.life.ordered) return false;
    const auto last = static_cast<size_t>(block.life.last);
    const Instruction& assign = plan_.instructions[last];
    const StorageId value = LastOf(block);
    if (assign.opcode != Opcode::kAssign || StorageOf(plan_, assign.first_slot + 1) != value) return false;
    if (At(StorageOf(plan_, assign.first_slot)).space != At(value).space) return false;
    if (RoundUp(plan_, At(value).space, At(value).bytes) != block.bytes) return false;
    if (!plan_.tasks.empty() && block.life.ends != std::vector<TaskId>{order_.TaskOf(last)}) return false;
    for (const Loop& loop : loops_) {
      const auto inside = [&](int64_t at) { return loop.first <= at && at <= loop.last; };
      if (inside(block.life.first) != inside(block.life.last)) return false;
    }
    if (elsewhere_.empty()) FindElsewhere();
    for (StorageId storage = block.storage; storage.valid(); storage = next_[storage]) {
      if (elsewhere_[storage]) return false;
    }
    return true;
  }

  /// Marks storages used by instructions that may retain a reference to the buffer; these cannot be donated.
  void FindElsewhere() {
    elsewhere_.assign(plan_.storages.size(), false);
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      const Instruction& instruction = plan_.instructions[i];
      const bool plain = instruction.fn != nullptr || instruction.opcode == Opcode::kCopy ||
                         instruction.opcode == Opcode::kAssign || instruction.opcode == Opcode::kFetch;
      if (plain) continue;
      for (uint32_t s = instruction.first_slot; s < instruction.first_slot + SlotCount(plan_, i); ++s) {
        if (const StorageId storage = StorageOf(plan_, s); storage.valid()) elsewhere_[storage] = true;
      }
    }
  }

  void Make(const Block& block) {
    plan_.instructions[static_cast<size_t>(block.life.last)].takes = true;
    MadeMemory made{At(block.storage).space, At(LastOf(block)).bytes, {}};
    for (StorageId storage = block.storage; storage.valid(); storage = next_[storage]) {
      At(storage).home = Storage::Home::kMade;
      At(storage).made = plan_.made.end_index();
      made.bytes = std::max(made.bytes, At(storage).bytes);
      made.storages.push_back(storage);
    }
    plan_.made.push_back(std::move(made));
  }

  Storage& At(StorageId storage) { return plan_.storages[storage]; }
  const Lifetime& LifeOf(StorageId storage) const { return lives_[storage]; }
  bool InArena(StorageId storage) {
    return storage.valid() && At(storage).home == Storage::Home::kArena && At(storage).bytes > 0;
  }

  /// Creates the blocks, sorted by begin.
  void MakeBlocks() {
    std::vector<StorageId> begins;
    for (const StorageId storage : plan_.storages.indices()) {
      if (InArena(storage) && lives_[storage].last >= 0) begins.push_back(storage);
    }
    std::stable_sort(begins.begin(), begins.end(),
                     [&](StorageId a, StorageId b) { return LifeOf(a).first < LifeOf(b).first; });
    const auto before = [](const MayShare& share, int64_t first) { return share.instruction < first; };
    for (const StorageId storage : begins) {
      const int64_t first = LifeOf(storage).first;
      auto share = std::lower_bound(shares_.begin(), shares_.end(), first, before);
      while (share != shares_.end() && share->instruction == first && !TryShare(*share, storage)) ++share;
      size_t& block = block_of_[storage];
      if (block != kNoBlock) continue;
      block = blocks_.size();
      blocks_.push_back({RoundUp(plan_, At(storage).space, At(storage).bytes), LifeOf(storage), storage});
    }
  }

  /// The output takes the input's buffer if this is the input's last use in any order of the tasks, and no other
  /// operand is a different view of the buffer.
  bool TryShare(const MayShare& share, StorageId to) {
    const StorageId from = StorageOf(plan_, share.input_slot);
    if (StorageOf(plan_, share.output_slot) != to || from == to || !InArena(from)) return false;
    if (next_[from].valid() || block_of_[from] == kNoBlock || At(to).apart) return false;
    if (At(from).apart && !(At(from).handed_over && OutsideLoops(LifeOf(from)))) return false;
    Block& block = blocks_[block_of_[from]];
    const Lifetime& life = LifeOf(from);
    if (life.last != share.instruction || life.endless || block.bytes < At(to).bytes) return false;
    if (At(from).space != At(to).space || !order_.AllBefore(life.ends, LifeOf(to).begin)) return false;
    const Instruction& instruction = plan_.instructions[share.instruction];
    for (uint32_t s = instruction.first_slot; s < instruction.first_slot + instruction.inputs; ++s) {
      if (StorageOf(plan_, s) == from && plan_.slots[s].value != plan_.slots[share.input_slot].value) return false;
    }
    next_[from] = to;
    block_of_[to] = block_of_[from];
    block.life.last = LifeOf(to).last;
    block.life.ends = LifeOf(to).ends;
    block.life.endless = LifeOf(to).endless;
    block.life.ordered = block.life.ordered && LifeOf(to).ordered;
    return true;
  }

  bool OutsideLoops(const Lifetime& life) const {
    return std::ranges::none_of(loops_,
                                [&](const Loop& loop) { return loop.first <= life.last && life.first <= loop.last; });
  }

  /// Peak of the bytes live along the tape.
  uint64_t MostLive(const std::vector<size_t>& blocks) {
    std::vector<int64_t> change(plan_.instructions.size() + 1, 0);
    for (const size_t b : blocks) {
      for (StorageId storage = blocks_[b].storage; storage.valid(); storage = next_[storage]) {
        const StorageId next = next_[storage];
        const int64_t end = next.valid() ? LifeOf(next).first : LifeOf(storage).last + 1;
        const auto bytes = static_cast<int64_t>(RoundUp(plan_, At(storage).space, At(storage).bytes));
        change[static_cast<size_t>(LifeOf(storage).first)] += bytes;
        change[static_cast<size_t>(end)] -= bytes;
      }
    }
    int64_t live = 0, most = 0;
    for (const int64_t step : change) most = std::max(most, live += step);
    return static_cast<uint64_t>(most);
  }

  const std::vector<MayShare>& shares_;
  const std::vector<Loop>& loops_;
  ExecutionPlan& plan_;
  const TaskOrder order_;
  const IndexedVector<StorageId, Lifetime> lives_;
  static constexpr size_t kNoBlock = SIZE_MAX;
  IndexedVector<StorageId, size_t> block_of_;
  IndexedVector<StorageId, StorageId> next_;  // the storage that takes over its buffer after its last use
  std::vector<Block> blocks_;
  IndexedVector<StorageId, bool> elsewhere_;
};

}  // namespace

Status LayOutArena(const TapeShape& shape, ExecutionPlan& plan) {
  uint64_t all = 0;
  for (const Storage& storage : plan.storages) {
    if (storage.home == Storage::Home::kArena && (all += storage.bytes) > kMostPlanned) {
      return ResourceExhausted("the values of the step take more than {} bytes together", kMostPlanned);
    }
  }
  Layout(shape, plan).Run();
  return {};
}

}  // namespace weir::plan
