// Chooses loops that run several iterations concurrently, and builds the plan again with these unrolled.
#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "core/plan/draft_internal.h"
#include "core/plan/plan.h"
#include "core/plan/unroll_internal.h"

namespace weir::plan {
namespace {

constexpr int64_t kMostCopies = 16;
constexpr size_t kMostNodes = 4096;   // limit on all copies of a loop together
constexpr double kWorthCopies = 0.8;  // the critical path's share of an iteration must fall below this fraction

/// Number of copies into which a loop could be unrolled.
int64_t CopiesOf(const PlanOptions& options, const graph::StepGraph& step, FrameId frame, const LoopWork& work) {
  if (!work.heavy || work.keeps_state) return 1;
  const int64_t useful = work.blocks ? kMostCopies : std::min<int64_t>(2 * options.parallelism, kMostCopies);
  const int64_t most = std::min(useful, MostIterations(step, frame));
  return std::min(most, static_cast<int64_t>(kMostNodes / std::max<size_t>(1, NodesInside(step, frame))));
}

/// The frames that contain none of the others.
std::set<FrameId> Innermost(const graph::StepGraph& step, const std::map<FrameId, int64_t>& copies) {
  std::set<FrameId> innermost;
  for (const auto& [frame, count] : copies) innermost.insert(frame);
  for (const auto& [frame, count] : copies) {
    for (FrameId around = step.ParentOf(frame); around > graph::kStepFrame;) {
      innermost.erase(around);
      around = step.ParentOf(around);
    }
  }
  return innermost;
}

/// By frame: the number of copies of the loops to unroll. Nested loops compete; the innermost are tried first, and a
/// loop without gain leaves its place to the one around it.
std::map<FrameId, int64_t> ChooseCopies(const PlanOptions& options, const graph::StepGraph& step, const Draft& draft) {
  std::map<FrameId, int64_t> copies;
  for (const auto& [frame, work] : draft.loops) {
    const int64_t most = CopiesOf(options, step, frame, work);
    if (most > 1) copies[frame] = most;
  }
  for (bool again = !copies.empty(); again;) {
    again = false;
    for (const FrameId frame : Innermost(step, copies)) {
      if (draft.loops.at(frame).blocks) continue;
      const double serial = CriticalShare(step, frame, 1, draft.node_ns);
      if (CriticalShare(step, frame, copies.at(frame), draft.node_ns) < kWorthCopies * serial) continue;
      copies.erase(frame);
      again = true;
    }
  }
  return copies;
}

Result<PlacedStep> UnrollAll(const graph::StepGraph& step, const graph::Placement& placement,
                             const Receivers& receivers, const std::map<FrameId, int64_t>& copies) {
  PlacedStep placed;
  const PlacedStep* last = nullptr;
  for (const FrameId frame : Innermost(step, copies)) {
    WEIR_ASSIGN(PlacedStep more, last == nullptr
                                     ? Unroll(step, placement, receivers, frame, copies.at(frame))
                                     : Unroll(last->step, last->placement, last->receivers, frame, copies.at(frame)));
    placed = std::move(more);
    last = &placed;
  }
  return placed;
}

/// True if something in the plan keeps state of what ran, or may.
bool KeepsState(const ExecutionPlan& plan) {
  return !plan.calls.empty() || !plan.stacks.empty() ||
         std::ranges::any_of(plan.instructions, [](const Instruction& instruction) { return instruction.serialized; });
}

Receivers FindReceivers(const graph::StepGraph& step, const graph::Placement& placement) {
  Receivers receivers;
  for (const graph::NodeId id : step.nodes.indices()) {
    const int device = placement.device_of[id];
    for (const graph::Endpoint& input : step.node(id).inputs) {
      if (placement.device_of[input.node] == device) continue;
      std::vector<int>& devices = receivers[input];
      const auto at = std::lower_bound(devices.begin(), devices.end(), device);
      if (at == devices.end() || *at != device) devices.insert(at, device);
    }
  }
  return receivers;
}

}  // namespace

Result<std::unique_ptr<ExecutionPlan>> Build(const PlanOptions& options, const graph::StepGraph& step,
                                             const graph::Placement& placement, size_t feeds) {
  const Receivers receivers = FindReceivers(step, placement);
  WEIR_ASSIGN(Draft draft, MakeDraft({options, step, placement, receivers, feeds}));
  std::unique_ptr<ExecutionPlan>& plan = draft.plan;
  const std::map<FrameId, int64_t> copies = ChooseCopies(options, step, draft);
  if (copies.empty()) return std::move(plan);
  WEIR_ASSIGN(const PlacedStep unrolled, UnrollAll(step, placement, receivers, copies));
  Result<Draft> wide = MakeDraft({options, unrolled.step, unrolled.placement, unrolled.receivers, feeds});
  if (!wide.ok() || wide->plan->tier != Tier::kT2) return std::move(plan);  // iterations must be serial, or better are
  ExecutionPlan& made = *wide->plan;
  made.placement = std::move(plan->placement);  // the placement lists each node only once
  made.placed_nodes = std::move(plan->placed_nodes);
  made.notes = std::move(plan->notes);
  // A single thread is faster without copies of loops, but then stateful kernels would have separate state.
  if (made.other && plan->other && !KeepsState(*plan)) made.other = plan->other;
  return std::move(wide->plan);
}

}  // namespace weir::plan
