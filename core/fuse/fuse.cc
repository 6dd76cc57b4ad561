#include "core/fuse/fuse.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/fuse/compiled_internal.h"
#include "core/fuse/expression_internal.h"
#include "core/fuse/lift_internal.h"
#include "core/fuse/loops_internal.h"
#include "core/fuse/match_internal.h"
#include "core/fuse/regions_internal.h"
#include "core/graph/rewriter.h"

namespace weir::fuse {
namespace {

using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

struct PlacedStep {
  StepGraph& step;
  graph::Placement& placement;
};

/// One row per fused op of the catalogue.
std::vector<Pattern> PatternsOf(const op::OpRegistry& ops) {
  std::vector<Pattern> patterns;
  for (const op::OpDef* fused : ops.Fusions()) {
    patterns.push_back({ops.Find(fused->fusion.consumer), fused->fusion.input, fused->fusion.producer, fused});
  }
  return patterns;
}

const Pattern* PatternOf(const std::vector<Pattern>& patterns, const StepNode& node) {
  if (node.kind != StepNode::Kind::kOp) return nullptr;
  const auto found = std::ranges::find(patterns, &node.source->op(), &Pattern::root);
  return found == patterns.end() ? nullptr : &*found;
}

/// The root becomes the fused node; the operand and the nodes between are erased.
Status Replace(const Match& match, StepGraph& step, graph::Rewriter& rewriter) {
  std::vector<NodeId> erased = match.between;
  erased.push_back(match.operand);
  std::reverse(erased.begin(), erased.end());  // execution order
  std::vector<graph::Endpoint> inputs = match.Inputs(step);
  WEIR_TRY(rewriter.StandFor(match.root, erased, *match.pattern->result, match.Attrs(step)));
  step.nodes[match.root].inputs = std::move(inputs);
  for (const NodeId id : erased) rewriter.Erase(id);
  return Status();
}

/// Ends a pass: devices follow their nodes.
void Finish(graph::Rewriter& rewriter, PlacedStep& placed) {
  FollowMoves(rewriter.Finish(), placed.step, placed.placement);
}

/// The driver: fuses every match whose conditions all hold.
Status FuseMatches(const FuseOptions& options, PlacedStep& placed) {
  StepGraph& step = placed.step;
  const std::vector<Pattern> patterns = PatternsOf(step.graph->ops());
  const auto is_root = [&](const StepNode& node) { return PatternOf(patterns, node) != nullptr; };
  if (std::ranges::none_of(step.nodes, is_root)) return Status();
  const IndexedVector<NodeId, int> users = graph::CountUsers(step);
  const Scene scene{options, step, placed.placement, users};
  graph::Rewriter rewriter(step);
  for (NodeId id = 0; id < static_cast<NodeId>(step.nodes.size()); ++id) {
    const Pattern* const pattern = PatternOf(patterns, step.node(id));
    if (pattern == nullptr) continue;
    const Match match = MatchAt(scene, *pattern, id);
    const auto holds = [&](const Condition& condition) { return condition.holds(scene, match); };
    if (std::ranges::all_of(Conditions(), holds)) WEIR_TRY(Replace(match, step, rewriter));
  }
  Finish(rewriter, placed);
  return Status();
}

/// The root becomes the fused node; the inner nodes are erased.
Status ReplaceExpression(const Found& found, StepGraph& step, graph::Rewriter& rewriter) {
  WEIR_TRY(rewriter.StandFor(found.root, found.inner, *found.result, found.attrs));
  step.nodes[found.root].inputs = found.inputs;
  for (const NodeId id : found.inner) rewriter.Erase(id);
  return Status();
}

/// `all`: roots in descending order.
Status ReplaceAll(const std::vector<Found>& all, PlacedStep& placed) {
  if (all.empty()) return Status();
  graph::Rewriter rewriter(placed.step);
  for (auto found = all.rbegin(); found != all.rend(); ++found) {
    WEIR_TRY(ReplaceExpression(*found, placed.step, rewriter));
  }
  Finish(rewriter, placed);
  return Status();
}

/// Replaces the expressions of fused ops. Roots are searched from the last node on, so that the longest expression of
/// several that share nodes is found first.
Status FuseExpressions(const FuseOptions& options, PlacedStep& placed) {
  StepGraph& step = placed.step;
  WEIR_ASSIGN(const Expressions expressions, Expressions::Of(step));
  const IndexedVector<NodeId, int> users = graph::CountUsers(step);
  const Scene scene{options, step, placed.placement, users};
  IndexedVector<NodeId, char> taken(step.nodes.size(), 0);
  std::vector<Found> all;
  for (auto id = static_cast<NodeId>(step.nodes.size()) - 1; id >= 0; --id) {
    std::optional<Found> found = expressions.At(scene, id, taken);
    if (!found) continue;
    taken[id] = 1;
    for (const NodeId inner : found->inner) taken[inner] = 1;
    all.push_back(std::move(*found));
  }
  return ReplaceAll(all, placed);
}

/// Replaces loops and regions that a compiler takes.
Status CompileRegions(const FuseOptions& options, PlacedStep& placed) {
  const op::OpDef* const result = placed.step.graph->ops().RegionOp();
  const compile::Compilers* const compilers = options.compile.compilers;
  if (result == nullptr || !options.regions || compilers == nullptr || compilers->empty()) return Status();
  WEIR_TRY(ReplaceLoops(options, *result, placed.step, placed.placement));
  graph::Rewriter rewriter(placed.step);
  const IndexedVector<NodeId, int> users = graph::CountUsers(placed.step);
  WEIR_TRY(ReplaceCompiled({options, placed.step, placed.placement, users}, *result, placed.step, rewriter));
  Finish(rewriter, placed);
  return Status();
}

/// Replaces elementwise ops that pass values to each other by regions.
Status FuseRegions(const FuseOptions& options, PlacedStep& placed) {
  const op::OpDef* const result = placed.step.graph->ops().RegionOp();
  if (result == nullptr || !options.regions) return Status();
  const IndexedVector<NodeId, int> users = graph::CountUsers(placed.step);
  return ReplaceAll(FindRegions({options, placed.step, placed.placement, users}, *result), placed);
}

Status LiftParts(const FuseOptions& options, PlacedStep& placed) {
  return LiftFromLoops(options, placed.step, placed.placement);
}

constexpr Pass<FuseOptions, PlacedStep> kPasses[] = {{"fuse_matches", FuseMatches},
                                                     {"lift_from_loops", LiftParts},
                                                     {"fuse_expressions", FuseExpressions},
                                                     {"compile_regions", CompileRegions},
                                                     {"fuse_regions", FuseRegions}};

}  // namespace

Status Fuse(const FuseOptions& options, StepGraph& step, graph::Placement& placement) {
  PlacedStep placed{step, placement};
  const auto verify = [](const PlacedStep& of) { return graph::Verify(of.step); };
  const auto print = [](const PlacedStep& of) { return graph::ToString(of.step, &of.placement); };
  return RunPasses(options.passes, "fuse", kPasses, options, placed, verify, print);
}

}  // namespace weir::fuse
