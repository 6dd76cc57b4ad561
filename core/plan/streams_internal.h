// Streams of a plan: which one each piece of work is enqueued on, and the events between them.
#ifndef WEIR_CORE_PLAN_STREAMS_INTERNAL_H_
#define WEIR_CORE_PLAN_STREAMS_INTERNAL_H_

#include <vector>

#include "core/plan/memory_internal.h"
#include "core/plan/plan.h"
#include "core/plan/tasks_internal.h"

namespace weir::plan {

/// True for the memory of a device with streams.
bool HasStreams(const ExecutionPlan& plan, SpaceId space);
/// True if the copy goes from a device with streams to one without: the calling thread waits in between.
bool IsStaged(const ExecutionPlan& plan, const Instruction& copy);

/// Sets the streams of the plan and of its instructions, and inserts kRecord and kWait. Copies between the host and a
/// device with copy engines have streams of their own if work of the device can run beside them. A user of a value
/// waits for users on other streams where one of the two writes: one record for each such user, one wait for each pair
/// that no earlier wait implies. The host waits for copies to it alone. Across the iterations of a loop the same holds.
/// Variables are ordered when the plan runs, with other steps that use them. Storages used on several streams are set
/// apart. Call before CutTasks, which runs work on streams in the order of the tape; positions in `shape` and
/// `instructions_of` follow the inserted instructions.
void PlanStreams(TapeShape& shape, std::vector<TapeNote>& notes, IndexedVector<graph::NodeId, Range>& instructions_of,
                 ExecutionPlan& plan);

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_STREAMS_INTERNAL_H_
