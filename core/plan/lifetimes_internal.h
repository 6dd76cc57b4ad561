// When memory is in use: along the tape, and among tasks that run beside each other.
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
/// The storage of an operand; -1 for none.
int StorageOf(const ExecutionPlan& plan, uint32_t slot);

/// Which of a plan's tasks have ended when another one begins. Tasks lie on chains along their edges, and each knows
/// how much of every chain comes before it: exact while tasks x chains stay below kEntries; beyond that only the
/// longest chains are known, and a task on no chain comes before nothing. A plan without tasks is one task, number 0;
/// a loop that is cut counts as one task, whatever is in it.
class TaskOrder {
 public:
  static constexpr size_t kEntries = size_t{8} << 20;

  explicit TaskOrder(const ExecutionPlan& plan, size_t entries = kEntries);

  /// `a` has ended when `b` begins, or they are one. May be false where nothing is known, never wrongly true.
  bool Before(uint32_t a, uint32_t b) const {
    if (a == b) return true;
    return a < b && chain_[a] != kNoChain && known_[b * chains_ + chain_[a]] > position_[a];
  }
  bool AllBefore(const std::vector<uint32_t>& tasks, uint32_t task) const;
  /// Those of `tasks`, which are sorted, that come before no other of them.
  std::vector<uint32_t> Latest(const std::vector<uint32_t>& tasks) const;
  uint32_t TaskOf(size_t instruction) const { return task_of_.empty() ? 0 : task_of_[instruction]; }

 private:
  static constexpr uint32_t kNoChain = UINT32_MAX;
  void FindChains(const ExecutionPlan& plan, size_t most);

  std::vector<uint32_t> task_of_;   // by instruction; empty without tasks
  std::vector<uint32_t> chain_;     // by task
  std::vector<uint32_t> position_;  // by task: on its chain
  size_t chains_ = 0;
  std::vector<uint32_t> known_;  // by task and chain: so many of the chain come before it
};

/// The use of a storage.
struct Lifetime {
  /// First and last instruction during which it is in use; -1 for none.
  int64_t first = -1;
  int64_t last = -1;
  /// For a plan with tasks and memory that the plan places or lets go of: the first one that touches it, whether that
  /// comes before all others which do, and the last ones, after which nobody does. Too many of those to keep: it is in
  /// use until the run ends.
  uint32_t begin = 0;
  bool ordered = true;
  bool endless = false;
  std::vector<uint32_t> ends;

  bool operator==(const Lifetime&) const = default;
};

/// By storage. What a Merge may have chosen is in use for as long as the choice; what a loop finds when it begins is in
/// use until it ends; storages that kSwap exchanges are in use together; what a loop that is cut touches is in use as
/// long as the loop. O(n log n), but for the tasks' edges.
std::vector<Lifetime> FindLifetimes(const std::vector<Loop>& loops, const ExecutionPlan& plan, const TaskOrder& order);

/// Nobody uses `a` any more when `b` begins.
bool Ended(const Lifetime& a, const Lifetime& b, const TaskOrder& order);

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_LIFETIMES_INTERNAL_H_
