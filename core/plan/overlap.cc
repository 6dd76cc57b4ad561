// Which loops run several iterations at once: their plan is built again with these unrolled, and kept where that pays.
#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "core/plan/builder_internal.h"
#include "core/plan/plan.h"
#include "core/plan/unroll_internal.h"

namespace weir::plan {
namespace {

constexpr int64_t kMostCopies = 16;
constexpr size_t kMostNodes = 4096;   // of all copies of a loop together
constexpr double kWorthCopies = 0.8;  // an iteration's share of its longest chain must fall below this part of it
constexpr int kMostAttempts = 4;      // a loop that gains nothing is left out and the plan built once more

using Loops = std::map<int, LoopWork>;

/// Copies that a loop could be unrolled into.
int64_t CopiesOf(const PlanOptions& options, const graph::StepGraph& step, int frame, const LoopWork& work) {
  if (!work.heavy || work.keeps_state) return 1;
  const int64_t useful = work.blocks ? kMostCopies : std::min<int64_t>(2 * options.parallelism, kMostCopies);
  const int64_t most = std::min(useful, MostIterations(step, frame));
  return std::min(most, static_cast<int64_t>(kMostNodes / std::max<size_t>(1, NodesInside(step, frame))));
}

/// Those of the frames that have none of the others inside.
std::set<int> Innermost(const graph::StepGraph& step, const std::map<int, int64_t>& copies) {
  std::set<int> innermost;
  for (const auto& [frame, count] : copies) innermost.insert(frame);
  for (const auto& [frame, count] : copies) {
    for (int around = step.frames[static_cast<size_t>(frame)].parent; around > 0;) {
      innermost.erase(around);
      around = step.frames[static_cast<size_t>(around)].parent;
    }
  }
  return innermost;
}

Result<PlacedStep> UnrollAll(const graph::StepGraph& step, const graph::Placement& placement,
                             const Receivers& receivers, const std::map<int, int64_t>& copies) {
  PlacedStep placed;
  const PlacedStep* last = nullptr;
  for (const int frame : Innermost(step, copies)) {
    WEIR_ASSIGN(PlacedStep more, last == nullptr
                                     ? Unroll(step, placement, receivers, frame, copies.at(frame))
                                     : Unroll(last->step, last->placement, last->receivers, frame, copies.at(frame)));
    placed = std::move(more);
    last = &placed;
  }
  return placed;
}

}  // namespace

Result<std::unique_ptr<ExecutionPlan>> Build(const PlanOptions& options, const graph::StepGraph& step,
                                             const graph::Placement& placement,
                                             const std::vector<graph::Subgraph>& subgraphs, size_t feeds) {
  Receivers receivers;
  for (const graph::Subgraph& subgraph : subgraphs) {
    for (const graph::Recv& recv : subgraph.recvs) receivers[recv.source].push_back(subgraph.device);
  }
  Builder builder(options, step, placement, receivers, feeds);
  WEIR_ASSIGN(std::unique_ptr<ExecutionPlan> plan, builder.Run());
  std::map<int, int64_t> copies;  // by frame
  for (const auto& [frame, work] : builder.loops()) {
    const int64_t most = CopiesOf(options, step, frame, work);
    if (most > 1) copies[frame] = most;
  }
  for (int attempt = 0; attempt < kMostAttempts && !copies.empty(); ++attempt) {
    WEIR_ASSIGN(const PlacedStep unrolled, UnrollAll(step, placement, receivers, copies));
    Builder again(options, unrolled.step, unrolled.placement, unrolled.receivers, feeds);
    Result<std::unique_ptr<ExecutionPlan>> wide = again.Run();
    if (!wide.ok()) return plan;  // a loop of a kind that runs only one iteration after the other
    size_t in_vain = 0;
    for (const int frame : Innermost(step, copies)) {
      const LoopWork &before = builder.loops().at(frame), &after = again.loops().at(frame);
      if (after.blocks || after.chain < kWorthCopies * before.chain) continue;
      copies.erase(frame);
      ++in_vain;
    }
    if (in_vain > 0) continue;
    if ((*wide)->tier != Tier::kT2) return plan;
    (*wide)->placement = std::move(plan->placement);  // what is told of the step is told once for each node
    (*wide)->placed_nodes = std::move(plan->placed_nodes);
    return wide;
  }
  return plan;
}

}  // namespace weir::plan
