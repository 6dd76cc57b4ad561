// Cutting a tape into tasks that may run beside each other.
#ifndef WEIR_CORE_PLAN_TASKS_INTERNAL_H_
#define WEIR_CORE_PLAN_TASKS_INTERNAL_H_

#include <cstdint>
#include <vector>

#include "core/graph/step_graph.h"
#include "core/plan/memory_internal.h"
#include "core/plan/plan.h"

namespace weir::plan {

/// What building knows of an instruction besides itself.
struct TapeNote {
  double ns = 0;  // declared time
  bool blocks = false;
  bool uses_streams = false;  // puts work onto the run's streams or waits for them
  bool waits = false;         // for a stream, as it has something for the host, or may have
};

/// Instructions [begin, end).
struct Range {
  uint32_t begin = 0;
  uint32_t end = 0;
};

/// What cutting found out about a loop.
struct LoopWork {
  bool heavy = false;        // something in it waits, or an iteration is worth threads; nothing uses streams
  bool blocks = false;       // something in it waits
  bool keeps_state = false;  // a kernel in it changes what is its own
  double chain = 1;          // of an iteration's declared time, what the longest chain of ops takes; of heavy loops
};

/// Decides the tier (plan.h says how) and, for T2, sets the plan's tasks with their order: what
/// writes a value, a variable or a guard comes before what reads it and the other way round as on the tape, and control
/// edges hold; so does the tape's order for a stateful node that stands on it more than once. `instructions_of` is by
/// step node. Call before LayOutArena; the tasks' ends are indices of the unfinished tape. The answer is by loop of
/// `shape`.
std::vector<LoopWork> CutTasks(const graph::StepGraph& step, const std::vector<Range>& instructions_of,
                               std::vector<TapeNote> notes, int parallelism, const TapeShape& shape,
                               ExecutionPlan& plan);

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_TASKS_INTERNAL_H_
