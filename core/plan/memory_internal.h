// Memory layout of a plan.
#ifndef WEIR_CORE_PLAN_MEMORY_INTERNAL_H_
#define WEIR_CORE_PLAN_MEMORY_INTERNAL_H_

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"

namespace weir::plan {

/// Permission by a kernel for an output slot to reuse the buffer of an input slot.
struct MayShare {
  uint32_t instruction = 0;
  uint32_t input_slot = 0;
  uint32_t output_slot = 0;
};

/// A loop on the tape: the instructions from `first` to `last` are repeated.
struct Loop {
  uint32_t first = 0;
  uint32_t last = 0;
  FrameId frame;
};

/// Properties of the tape that memory layout and order depend on, besides the instructions.
struct TapeShape {
  std::vector<GuardId> guards;   // by instruction; instructions beyond its end always run
  std::vector<Loop> loops;       // inner loops before outer ones
  std::vector<MayShare> shares;  // sorted by instruction
};

/// Gives every kArena storage an offset such that two overlap only if their lifetimes do not or a kernel allows it;
/// sets arena_bytes and live_bytes. In a plan with tasks, lifetimes are ordered by the edges between tasks, not by the
/// tape. Uses the smaller of two layouts, best fit in tape order and largest first, in O(n log n) except for the edges.
/// Storages that variables may take over become kMade instead if that needs no more memory. ResourceExhausted if the
/// total size overflows.
Status LayOutArena(const TapeShape& shape, ExecutionPlan& plan);

/// Inserts a kMake before the first use of each kMade storage, a kRelease after the last use of every owned storage,
/// and a kSkip before every run of instructions under one guard, and updates the targets of jumps. In a plan with
/// tasks, tensors whose last uses are concurrent or in a loop scheduled as tasks live until the run ends. Call after
/// LayOutArena. Returns the new position of each instruction; the last entry is the end of the tape.
std::vector<uint32_t> FinishTape(const TapeShape& shape, ExecutionPlan& plan);

/// Turns moves of host memory with known size and place into kMoveBytes.
void FindMoves(ExecutionPlan& plan);

/// Sets Storage::only_assigned.
void FindAssigned(ExecutionPlan& plan);

/// Sets the tables by which runs bind storages: slot_shapes, storage_slots and fresh_storages.
void ListSlots(ExecutionPlan& plan);

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_MEMORY_INTERNAL_H_
