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

/// Gives every kArena storage an offset such that two overlap only when their lifetimes do not, or a kernel allowed it;
/// sets arena_bytes. Best fit over free ranges along the tape, O(n log n). `shares` is sorted by instruction.
void LayOutArena(const std::vector<MayShare>& shares, ExecutionPlan& plan);

/// Puts a kRelease behind the last use of every owned storage. Call after LayOutArena.
void InsertReleases(ExecutionPlan& plan);

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_MEMORY_INTERNAL_H_
