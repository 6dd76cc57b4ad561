// A plan that is being built, and the passes that build it.
#ifndef WEIR_CORE_PLAN_DRAFT_INTERNAL_H_
#define WEIR_CORE_PLAN_DRAFT_INTERNAL_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/order.h"
#include "core/plan/guards_internal.h"
#include "core/plan/memory_internal.h"
#include "core/plan/plan.h"
#include "core/plan/tasks_internal.h"
#include "core/plan/unroll_internal.h"

namespace weir::plan {

/// Inputs of the passes. Borrowed.
struct DraftInput {
  const PlanOptions& options;
  const graph::StepGraph& step;
  const graph::Placement& placement;
  const Receivers& receivers;
  size_t feeds = 0;
};

/// Each member is set by the pass that its comment names; later passes change `plan` further.
struct Draft {
  StepGuards guards;                                    // find_guards
  std::vector<graph::OrderItem> order;                  // order_nodes
  std::unique_ptr<ExecutionPlan> plan;                  // emit_tape
  TapeShape shape;                                      // emit_tape
  std::vector<TapeNote> notes;                          // emit_tape, by instruction
  IndexedVector<graph::NodeId, Range> instructions_of;  // emit_tape, by step node
  IndexedVector<graph::NodeId, double> node_ns;         // cut_tasks, if the step has loops: declared time
  std::map<FrameId, LoopWork> loops;                    // cut_tasks, by frame
  bool settled = true;                                  // cut_tasks: declared times determine the tier
  std::shared_ptr<ExecutionPlan> other;                 // choose_tiers: the plan of the other tier, or null
};

/// Runs the passes in order.
Result<Draft> MakeDraft(const DraftInput& input);

/// The plan of each tier; before emit_tape, the guard of each node.
std::string ToString(const DraftInput& input, const Draft& draft);

/// Emits the nodes in the draft's order.
Status EmitTape(const DraftInput& input, Draft& draft);

/// Internal, naming the place, if an invariant of ExecutionPlan is violated: operands, storages, variables, guards,
/// jumps and tasks refer to entries of their tables, and tasks of one body follow each other.
Status Verify(const ExecutionPlan& plan);

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_DRAFT_INTERNAL_H_
