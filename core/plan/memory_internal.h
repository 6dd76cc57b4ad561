// Memory layout of a plan.
#ifndef WEIR_CORE_PLAN_MEMORY_INTERNAL_H_
#define WEIR_CORE_PLAN_MEMORY_INTERNAL_H_

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"

namespace weir::plan {

/// A kernel's word that output slot may take the buffer of input slot.
struct MayShare {
  uint32_t instruction = 0;
  uint32_t input_slot = 0;
  uint32_t output_slot = 0;
};

/// A loop on the tape: the instructions from `first` to `last` run again and again.
struct Loop {
  uint32_t first = 0;
  uint32_t last = 0;
  int frame = 0;  // of the step
};

/// What memory and order on the tape depend on besides the instructions.
struct TapeShape {
  std::vector<int> guards;       // by instruction; those beyond its end are always run
  std::vector<Loop> loops;       // inner ones before those around them
  std::vector<MayShare> shares;  // sorted by instruction
};

/// Gives every kArena storage an offset such that two overlap only when their lifetimes do not, or a kernel allowed it;
/// sets arena_bytes and live_bytes. Where the plan has tasks, one lifetime ends before another when the tasks' edges
/// say so, whatever the order on the tape. The smaller of two layouts, best fit along the tape and the largest first,
/// in O(n log n) but for the edges. What variables may take over is kMade instead, where that needs no more memory.
/// ResourceExhausted when the storages together are beyond what can be counted.
Status LayOutArena(const TapeShape& shape, ExecutionPlan& plan);

/// Puts a kMake before the first use of what is made, a kRelease behind the last use of every owned storage and a kSkip
/// before every stretch of instructions under one guard, and sets the jumps' targets to where their instructions come
/// to lie. Where the plan has tasks, tensors whose last uses are beside each other, or in a loop that is cut, live
/// until the run ends. Call after LayOutArena. Returns where each instruction went; the last entry is the end of the
/// tape.
std::vector<uint32_t> FinishTape(const TapeShape& shape, ExecutionPlan& plan);

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_MEMORY_INTERNAL_H_
