#include "core/fuse/fuse.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/fuse/match_internal.h"
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

/// The root becomes the fused node; the operand and the nodes between are erased, in execution order.
Status Replace(const Match& match, StepGraph& step, graph::Rewriter& rewriter) {
  StepNode& root = step.nodes[static_cast<size_t>(match.root)];
  std::vector<NodeId> erased = match.between;
  erased.push_back(match.operand);
  std::reverse(erased.begin(), erased.end());
  graph::MadeNode made;
  WEIR_ASSIGN(made.node, graph::Node::InPlaceOf(*root.source, *match.pattern->result, match.Attrs(step)));
  root.inputs = match.Inputs(step);
  for (const NodeId id : erased) {
    const StepNode& node = step.node(id);
    made.stands_for.push_back(node.source);
    root.control_inputs.insert(root.control_inputs.end(), node.control_inputs.begin(), node.control_inputs.end());
    rewriter.Erase(id);
  }
  made.stands_for.push_back(root.source);
  root.source = made.node.get();
  step.made.push_back(std::move(made));
  return Status();
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
  const std::vector<NodeId> moved = rewriter.Finish();
  std::vector<int>& device_of = placed.placement.device_of;
  for (size_t i = 0; i < moved.size(); ++i) {
    if (moved[i] >= 0) device_of[static_cast<size_t>(moved[i])] = device_of[i];
  }
  device_of.resize(step.nodes.size());
  return Status();
}

constexpr Pass<FuseOptions, PlacedStep> kPasses[] = {{"fuse_matches", FuseMatches}};

}  // namespace

Status Fuse(const FuseOptions& options, StepGraph& step, graph::Placement& placement) {
  PlacedStep placed{step, placement};
  const auto verify = [](const PlacedStep& of) { return graph::Verify(of.step); };
  const auto print = [](const PlacedStep& of) { return graph::ToString(of.step, &of.placement); };
  return RunPasses(options.passes, "fuse", kPasses, options, placed, verify, print);
}

}  // namespace weir::fuse
