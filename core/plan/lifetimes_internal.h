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
  bool Before(TaskId a, TaskId b) const {
    if (a == b) return true;
    return a < b && chain_[a].valid() && known_(b, chain_[a]) > position_[a];
  }
  bool AllBefore(const std::vector<TaskId>& tasks, TaskId task) const;
  /// The elements of `tasks` (sorted) that precede no other element.
  std::vector<TaskId> Latest(const std::vector<TaskId>& tasks) const;
  TaskId TaskOf(size_t instruction) const { return task_of_.empty() ? TaskId(0) : task_of_[instruction]; }

 private:
  using ChainId = Id<struct ChainTag>;
  /// The number of chains that are known, at most `most`.
  size_t FindChains(const ExecutionPlan& plan, size_t most);

  std::vector<TaskId> task_of_;                    // by instruction; empty without tasks
  IndexedVector<TaskId, ChainId> chain_;           // none: on no known one
  IndexedVector<TaskId, uint32_t> position_;       // on its chain
  IndexedTable<TaskId, ChainId, uint32_t> known_;  // how many tasks of the chain precede the task
};

/// The use of a storage.
struct Lifetime {
  /// First and last instruction during which it is in use; -1 for none.
  int64_t first = -1;
  int64_t last = -1;
  /// For a plan with tasks, and storages that it places or releases: the first task that uses the storage, whether that
  /// task precedes all other users, and the last users. Endless: these are too many to record, so the storage stays
  /// live until the run ends.
  TaskId begin{0};
  bool ordered = true;
  bool endless = false;
  bool apart = false;  // Storage::apart
  std::vector<TaskId> ends;

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
