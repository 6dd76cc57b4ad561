// Lifetimes of storages: along the tape, and among concurrent tasks.
#ifndef WEIR_CORE_PLAN_LIFETIMES_INTERNAL_H_
#define WEIR_CORE_PLAN_LIFETIMES_INTERNAL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/plan/memory_internal.h"
#include "core/plan/plan.h"

namespace weir::plan {

/// Operands of instruction i of an unfinished tape, scratch included.
uint32_t SlotCount(const ExecutionPlan& plan, size_t i);
/// The storage of an operand; none if it has no value.
StorageId StorageOf(const ExecutionPlan& plan, uint32_t slot);

/// The order of a plan's tasks. Tasks are covered by chains along their edges, and each task knows how much of every
/// chain precedes it. Exact while tasks x chains < kEntries; above that only the longest chains are known, and a task
/// on no chain precedes nothing. A plan without tasks is one task, number 0. A loop scheduled as tasks counts as one.
class TaskOrder {
 public:
  static constexpr size_t kEntries = size_t{8} << 20;

  explicit TaskOrder(const ExecutionPlan& plan, size_t entries = kEntries);

  /// True if `a` has always ended when `b` begins, or they are the same. Conservative: false if the order is unknown.
  bool Before(uint32_t a, uint32_t b) const {
    if (a == b) return true;
    return a < b && chain_[a] != kNoChain && known_[b * chains_ + chain_[a]] > position_[a];
  }
  bool AllBefore(const std::vector<uint32_t>& tasks, uint32_t task) const;
  /// The elements of `tasks` (sorted) that precede no other element.
  std::vector<uint32_t> Latest(const std::vector<uint32_t>& tasks) const;
  uint32_t TaskOf(size_t instruction) const { return task_of_.empty() ? 0 : task_of_[instruction]; }

 private:
  static constexpr uint32_t kNoChain = UINT32_MAX;
  void FindChains(const ExecutionPlan& plan, size_t most);

  std::vector<uint32_t> task_of_;   // by instruction; empty without tasks
  std::vector<uint32_t> chain_;     // by task
  std::vector<uint32_t> position_;  // by task, on its chain
  size_t chains_ = 0;
  std::vector<uint32_t> known_;  // by task and chain: how many tasks of the chain precede it
};

/// The use of a storage.
struct Lifetime {
  /// First and last instruction during which it is in use; -1 for none.
  int64_t first = -1;
  int64_t last = -1;
  /// For a plan with tasks, and storages that it places or releases: the first task that uses the storage, whether that
  /// task precedes all other users, and the last users. Endless: these are too many to record, so the storage stays
  /// live until the run ends.
  uint32_t begin = 0;
  bool ordered = true;
  bool endless = false;
  bool apart = false;  // Storage::apart
  std::vector<uint32_t> ends;

  bool operator==(const Lifetime&) const = default;
};

/// Inputs of a kMerge live as long as its output. Storages used in a loop and live before it live until it ends.
/// Storages that kSwap exchanges have one lifetime. Storages used in a loop scheduled as tasks live as long as the
/// loop. O(n log n), except for the tasks' edges.
IndexedVector<StorageId, Lifetime> FindLifetimes(const std::vector<Loop>& loops, const ExecutionPlan& plan,
                                                 const TaskOrder& order);

/// True if all uses of `a` have ended when `b` begins.
bool Ended(const Lifetime& a, const Lifetime& b, const TaskOrder& order);

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_LIFETIMES_INTERNAL_H_
