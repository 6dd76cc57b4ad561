#include "core/plan/lifetimes_internal.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace weir::plan {

uint32_t SlotCount(const ExecutionPlan& plan, size_t i) {
  const Instruction& instruction = plan.instructions[i];
  const size_t end = i + 1 < plan.instructions.size() ? plan.instructions[i + 1].first_slot : plan.slots.size();
  return static_cast<uint32_t>(end) - instruction.first_slot;
}

StorageId StorageOf(const ExecutionPlan& plan, uint32_t slot) {
  const ValueId value = plan.slots[slot].value;
  return value.valid() ? plan.values[value].storage : StorageId();
}

TaskOrder::TaskOrder(const ExecutionPlan& plan, size_t entries) {
  if (plan.tasks.empty()) return;
  task_of_.resize(plan.instructions.size());
  for (const TaskId t : plan.tasks.indices()) {
    const Task& task = plan.tasks[t];
    if (!task.loop.valid()) std::fill(task_of_.begin() + task.begin, task_of_.begin() + task.end, t);
  }
  const size_t chains = FindChains(plan, std::max<size_t>(1, entries / plan.tasks.size()));
  known_.assign(plan.tasks.size(), chains);
  for (const TaskId t : plan.tasks.indices()) {  // edges lead along the tape
    const Task& task = plan.tasks[t];
    if (task.loop.valid()) continue;
    const std::span<const uint32_t> mine = known_.Row(t);
    for (uint32_t s = task.first_successor; s < task.first_successor + task.successor_count; ++s) {
      const TaskId successor = plan.successors[s];
      const std::span<uint32_t> next = known_.Row(successor);
      for (size_t c = 0; c < chains; ++c) next[c] = std::max(next[c], mine[c]);
      if (!chain_[t].valid()) continue;
      uint32_t& before = known_(successor, chain_[t]);
      before = std::max(before, position_[t] + 1);
    }
  }
}

size_t TaskOrder::FindChains(const ExecutionPlan& plan, size_t most) {
  chain_.resize(plan.tasks.size());
  position_.resize(plan.tasks.size());
  IndexedVector<ChainId, uint32_t> lengths;
  for (const TaskId t : plan.tasks.indices()) {
    if (plan.tasks[t].loop.valid()) continue;
    if (!chain_[t].valid()) chain_[t] = lengths.Add(1);
    const Task& task = plan.tasks[t];
    for (uint32_t s = task.first_successor; s < task.first_successor + task.successor_count; ++s) {
      const TaskId next = plan.successors[s];
      if (chain_[next].valid()) continue;
      chain_[next] = chain_[t];
      position_[next] = lengths[chain_[t]]++;
      break;
    }
  }
  if (lengths.size() <= most) return lengths.size();
  std::vector<ChainId> longest;
  for (const ChainId chain : lengths.indices()) longest.push_back(chain);
  std::ranges::stable_sort(longest, [&](ChainId a, ChainId b) { return lengths[a] > lengths[b]; });
  IndexedVector<ChainId, ChainId> number(lengths.size());
  for (size_t c = 0; c < most; ++c) number[longest[c]] = ChainId(c);
  for (ChainId& chain : chain_) {
    if (chain.valid()) chain = number[chain];
  }
  return most;
}

bool TaskOrder::AllBefore(const std::vector<TaskId>& tasks, TaskId task) const {
  return std::all_of(tasks.begin(), tasks.end(), [&](TaskId other) { return Before(other, task); });
}

std::vector<TaskId> TaskOrder::Latest(const std::vector<TaskId>& tasks) const {
  std::vector<TaskId> latest;
  for (size_t t = tasks.size(); t-- > 0;) {
    const bool last = std::none_of(latest.begin(), latest.end(), [&](TaskId l) { return Before(tasks[t], l); });
    if (last) latest.push_back(tasks[t]);
  }
  std::reverse(latest.begin(), latest.end());
  return latest;
}

namespace {

constexpr size_t kMostEnds = 64;

/// The end of uses inside loops.
class LoopEnds {
 public:
  explicit LoopEnds(const std::vector<Loop>& loops) : loops_(loops), around_(loops.size()) {
    const auto outside_in = [](const Loop& a, const Loop& b) {
      return std::pair(a.first, b.last) < std::pair(b.first, a.last);
    };
    std::sort(loops_.begin(), loops_.end(), outside_in);
    for (LoopPlace l(1); l.number() < std::ssize(loops_); ++l) around_[l] = Containing(Before(l), At(l).first);
  }

  /// The last instruction of the outermost loop around `last` that begins after `first`; without one, `last`.
  int64_t After(int64_t first, int64_t last) const {
    const auto beyond = std::upper_bound(loops_.begin(), loops_.end(), last,
                                         [](int64_t at, const Loop& loop) { return at < loop.first; });
    LoopPlace loop = Containing(Before(LoopPlace(beyond - loops_.begin())), last);
    for (; loop.valid() && At(loop).first > first; loop = around_[loop]) last = At(loop).last;
    return last;
  }

 private:
  using LoopPlace = Id<struct LoopPlaceTag>;  // into loops_
  const Loop& At(LoopPlace loop) const { return loops_[loop.position()]; }
  static LoopPlace Before(LoopPlace loop) { return LoopPlace(loop.number() - 1); }
  LoopPlace Containing(LoopPlace loop, int64_t position) const {
    while (loop.valid() && At(loop).last < position) loop = around_[loop];
    return loop;
  }

  std::vector<Loop> loops_;                     // by first, outer ones before those inside
  IndexedVector<LoopPlace, LoopPlace> around_;  // the enclosing loop
};

class Finder {
 public:
  Finder(const std::vector<Loop>& loops, const ExecutionPlan& plan, const TaskOrder& order)
      : loop_ends_(loops), plan_(plan), order_(order), found_(plan.storages.size()) {
    for (const Task& task : plan.tasks) {
      if (!task.loop.valid() && task.inner > 0) cut_.push_back({task.begin, task.end - 1});
    }
  }

  IndexedVector<StorageId, Lifetime> Run() {
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      const uint32_t first = plan_.instructions[i].first_slot;
      for (uint32_t s = first; s < first + SlotCount(plan_, i); ++s) {
        if (StorageOf(plan_, s).valid()) Touch(StorageOf(plan_, s), i);
      }
      if (plan_.instructions[i].opcode == Opcode::kSwap) swaps_.push_back(first);
    }
    for (Lifetime& life : found_) Keep(life, life.ends);
    for (const StorageId s : found_.indices()) found_[s].apart = plan_.storages[s].apart;
    do {
      changed_ = false;
      for (size_t s = plan_.storages.size(); s-- > 0;) {
        const StorageId bound(s);
        for (const StorageId source : plan_.storages[bound].sources) Join(found_[source], found_[bound], false);
      }
      for (const uint32_t slot : swaps_) {
        Lifetime& one = found_[StorageOf(plan_, slot)];
        Lifetime& other = found_[StorageOf(plan_, slot + 1)];
        Join(one, other, true);
        Join(other, one, true);
      }
      for (Lifetime& life : found_) {
        const int64_t last = life.last < 0 ? -1 : loop_ends_.After(life.first, life.last);
        changed_ = changed_ || last != life.last;
        life.last = last;
      }
    } while (changed_);
    return std::move(found_);
  }

 private:
  /// The least range in which operands of instruction i are live: i itself, or the outermost cut loop around it, whose
  /// ops run in parallel.
  Loop Around(size_t i) const {
    const auto after =
        std::upper_bound(cut_.begin(), cut_.end(), i, [](size_t at, const Loop& loop) { return at < loop.first; });
    if (after != cut_.begin() && i <= std::prev(after)->last) return *std::prev(after);
    const auto at = static_cast<uint32_t>(i);
    return {at, at};
  }

  void Touch(StorageId storage, size_t i) {
    Lifetime& life = found_[storage];
    const TaskId task = order_.TaskOf(i);
    const Loop around = Around(i);
    life.last = around.last;
    if (life.first < 0) {
      life.first = around.first;
      life.begin = task;
    }
    const Storage::Home home = plan_.storages[storage].home;
    const bool planned =
        home == Storage::Home::kArena || home == Storage::Home::kBound || home == Storage::Home::kOwned;
    if (plan_.tasks.empty() || !planned || (!life.ends.empty() && life.ends.back() == task)) return;
    life.ordered = life.ordered && order_.Before(life.begin, task);
    life.ends.push_back(task);
  }

  void Keep(Lifetime& life, const std::vector<TaskId>& ends) {
    life.ends = ends.size() > 16 * kMostEnds ? std::vector<TaskId>() : order_.Latest(ends);
    life.endless = life.endless || (life.ends.empty() && !ends.empty()) || life.ends.size() > kMostEnds;
    if (life.endless) life.ends.clear();
  }

  /// Extends `life` to the end of `user`; with `both`, also to its begin.
  void Join(Lifetime& life, const Lifetime& user, bool both) {
    if (user.last < 0) return;
    const Lifetime before = life;
    life.last = std::max(life.last, user.last);
    const bool sooner = both && user.first < life.first;
    const TaskId earlier = sooner ? user.begin : life.begin;
    const TaskId later = sooner ? life.begin : user.begin;
    if (both) life.first = std::min(life.first, user.first);
    life.begin = earlier;
    life.ordered = life.ordered && user.ordered && order_.Before(earlier, later);
    life.endless = life.endless || user.endless;
    std::vector<TaskId> ends;
    std::set_union(life.ends.begin(), life.ends.end(), user.ends.begin(), user.ends.end(), std::back_inserter(ends));
    Keep(life, ends);
    changed_ = changed_ || before != life;
  }

  const LoopEnds loop_ends_;
  const ExecutionPlan& plan_;
  const TaskOrder& order_;
  IndexedVector<StorageId, Lifetime> found_;
  std::vector<Loop> cut_;        // outermost loops scheduled as tasks
  std::vector<uint32_t> swaps_;  // first slots of kSwap
  bool changed_ = false;
};

}  // namespace

IndexedVector<StorageId, Lifetime> FindLifetimes(const std::vector<Loop>& loops, const ExecutionPlan& plan,
                                                 const TaskOrder& order) {
  return Finder(loops, plan, order).Run();
}

bool Ended(const Lifetime& a, const Lifetime& b, const TaskOrder& order) {
  return a.last < b.first && !a.endless && !a.apart && !b.apart && b.ordered && order.AllBefore(a.ends, b.begin);
}

}  // namespace weir::plan
