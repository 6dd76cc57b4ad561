// Splits a tape into tasks that may run concurrently.
#ifndef WEIR_CORE_PLAN_TASKS_INTERNAL_H_
#define WEIR_CORE_PLAN_TASKS_INTERNAL_H_

#include <cstdint>
#include <vector>

#include "core/graph/step_graph.h"
#include "core/plan/memory_internal.h"
#include "core/plan/plan.h"

namespace weir::plan {

/// Additional properties of an instruction, known while building.
struct TapeNote {
  double ns = 0;              // declared time
  bool blocks = false;        // may wait for something other than the CPU
  bool suspends = false;      // holds no thread while waiting
  bool uses_streams = false;  // enqueues work on the run's streams or waits for them
  bool waits = false;         // may wait for a stream, because it transfers to the host
};

/// Instructions [begin, end).
struct Range {
  uint32_t begin = 0;
  uint32_t end = 0;
};

/// Analysis of a loop.
struct LoopWork {
  bool heavy = false;        // an op in it waits, or an iteration is worth threads; nothing uses streams
  bool blocks = false;       // an op in it waits
  bool keeps_state = false;  // a kernel in it is stateful
};

/// The result of CutTasks.
struct TaskWork {
  std::vector<LoopWork> loops;  // as in TapeShape
  bool settled = true;          // the tier follows from declared times alone
};

/// Chooses the tier (see plan.h) and, unless that is certainly T0, sets the plan's tasks and their edges. Writes and
/// reads of a value, variable or guard keep their tape order, control edges hold, and a stateful node that is on the
/// tape several times keeps its order. `instructions_of` is by step node. Call before LayOutArena; the ends of tasks
/// are indices in the unfinished tape.
TaskWork CutTasks(const graph::StepGraph& step, const IndexedVector<graph::NodeId, Range>& instructions_of,
                  std::vector<TapeNote> notes, int parallelism, const TapeShape& shape, ExecutionPlan& plan);

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_TASKS_INTERNAL_H_
