// The passes that build a plan.
#include <utility>

#include "core/base/passes.h"
#include "core/plan/draft_internal.h"
#include "core/plan/emitters_internal.h"
#include "core/plan/streams_internal.h"

namespace weir::plan {
namespace {

Status SetGuards(const DraftInput& input, Draft& draft) {
  draft.guards = FindGuards(input.step);
  return Status();
}

Status OrderNodes(const DraftInput& input, Draft& draft) {
  graph::OrderOptions wishes;
  wishes.as_in_graph = IsPart(input.step);
  wishes.late = input.options.late;
  if (draft.guards.any && !wishes.as_in_graph && !wishes.late) {
    for (const GuardId guard : draft.guards.node) wishes.group_of_node.push_back(guard.number());
    for (const GuardId guard : draft.guards.base) wishes.group_of_frame.push_back(guard.number());
  }
  WEIR_ASSIGN(draft.order, graph::Order(input.step, wishes));
  return Status();
}

Status SetStreams(const DraftInput&, Draft& draft) {
  PlanStreams(draft.shape, draft.notes, draft.instructions_of, *draft.plan);
  return Status();
}

Status SetTasks(const DraftInput& input, Draft& draft) {
  if (!draft.shape.loops.empty()) {
    for (const Range& range : draft.instructions_of) {
      double ns = 0;
      for (uint32_t i = range.begin; i < range.end; ++i) ns += draft.notes[i].ns;
      draft.node_ns.push_back(ns);
    }
  }
  const TaskWork work = CutTasks(input.step, draft.instructions_of, std::move(draft.notes), input.options.parallelism,
                                 draft.shape, *draft.plan);
  for (size_t l = 0; l < work.loops.size(); ++l) draft.loops[draft.shape.loops[l].frame] = work.loops[l];
  draft.settled = work.settled;
  return Status();
}

template <class Run>
Status ForEachTier(Draft& draft, const Run& run) {
  if (draft.other != nullptr) WEIR_TRY(run(*draft.other));
  return run(*draft.plan);
}

/// A plan whose tier is open has a copy for the other tier.
Status ChooseTiers(const DraftInput& input, Draft& draft) {
  if (!draft.settled && !input.options.deterministic) {
    draft.other = std::make_shared<ExecutionPlan>(*draft.plan);
    draft.other->tier = draft.plan->tier == Tier::kT0 ? Tier::kT2 : Tier::kT0;
  }
  return ForEachTier(draft, [](ExecutionPlan& plan) {
    if (plan.tier != Tier::kT0) return Status();
    plan.tasks.clear();
    plan.successors.clear();
    return Status();
  });
}

Status SetOffsets(const DraftInput&, Draft& draft) {
  return ForEachTier(draft, [&](ExecutionPlan& plan) { return LayOutArena(draft.shape, plan); });
}

Status CompleteTapes(const DraftInput&, Draft& draft) {
  return ForEachTier(draft, [&](ExecutionPlan& plan) {
    const std::vector<uint32_t> moved = FinishTape(draft.shape, plan);
    for (Task& task : plan.tasks) {
      for (uint32_t* at : {&task.begin, &task.end, &task.body, &task.repeat}) *at = moved[*at];
    }
    return Status();
  });
}

Status BindSlots(const DraftInput&, Draft& draft) {
  return ForEachTier(draft, [](ExecutionPlan& plan) {
    FindMoves(plan);
    FindAssigned(plan);
    ListSlots(plan);
    return Status();
  });
}

/// In execution order.
constexpr Pass<DraftInput, Draft> kPasses[] = {
    {"find_guards", SetGuards},      // when each node runs
    {"order_nodes", OrderNodes},     // the order on the tape
    {"emit_tape", EmitTape},         // instructions
    {"plan_streams", SetStreams},    // where work on devices waits for other work
    {"cut_tasks", SetTasks},         // what may run in parallel
    {"choose_tiers", ChooseTiers},   // T0, T2 or both
    {"lay_out_memory", SetOffsets},  // the place of each value
    {"finish_tape", CompleteTapes},  // makes, releases and skips
    {"bind_slots", BindSlots},       // tables that a run looks up
};

Status VerifyDraft(const Draft& draft) {
  if (draft.plan == nullptr) return Status();
  if (draft.other != nullptr) WEIR_TRY(Verify(*draft.other));
  return Verify(*draft.plan);
}

}  // namespace

Result<Draft> MakeDraft(const DraftInput& input) {
  Draft draft;
  const auto print = [&](const Draft& of) { return ToString(input, of); };
  WEIR_TRY(RunPasses(input.options.passes, "plan", kPasses, input, draft, VerifyDraft, print));
  draft.plan->other = draft.other;
  return draft;
}

}  // namespace weir::plan
