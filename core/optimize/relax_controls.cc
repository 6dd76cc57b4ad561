// Redirects control edges from nodes without effects to the inputs of those nodes.
#include <algorithm>
#include <string_view>
#include <vector>

#include "core/graph/frames.h"
#include "core/graph/rewriter.h"
#include "core/optimize/passes_internal.h"

namespace weir::optimize {
namespace {

using graph::Endpoint;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

/// A node keeps its control edges if more than these would replace them.
constexpr size_t kMostEdges = 32;

/// True if the node has no effect besides its outputs. An op that only checks its input has one: its error. A reader of
/// a Switch tells its control successors which branch runs; a control edge from the Switch would not.
bool IsPure(const StepGraph& step, const StepNode& node) {
  if (node.kind != StepNode::Kind::kOp || node.types.empty()) return false;
  const op::OpDef& op = node.source->op();
  if (op.stateful || op.run_by == op::RunBy::kExecutor) return false;
  const auto switched = [&](const Endpoint& input) {
    return graph::FlowOf(step.node(input.node)) == graph::Flow::kSwitch;
  };
  return std::none_of(node.inputs.begin(), node.inputs.end(), switched) &&
         std::none_of(node.types.begin(), node.types.end(), IsRef) &&
         std::none_of(op.inputs.begin(), op.inputs.end(), [](const op::ArgDef& arg) { return arg.is_ref; });
}

/// Pure nodes whose outputs are unused, or used by such nodes only.
std::vector<bool> FindUnread(const StepGraph& step) {
  IndexedVector<NodeId, int> users = graph::CountUsers(step);
  std::vector<bool> unread(step.nodes.size(), false);
  for (size_t i = step.nodes.size(); i-- > 0;) {
    if (users[static_cast<NodeId>(i)] != 0 || !IsPure(step, step.nodes[i])) continue;
    unread[i] = true;
    for (const Endpoint& input : step.nodes[i].inputs) --users[input.node];
  }
  return unread;
}

/// Feeds and constants are no nodes to wait for.
bool WaitsForNodes(const StepGraph& step, const StepNode& node) {
  return !node.control_inputs.empty() || std::ranges::any_of(node.inputs, [&](const Endpoint& input) {
    return step.node(input.node).kind == StepNode::Kind::kOp;
  });
}

}  // namespace

Status RelaxControls(const PassContext&, StepGraph& step) {
  const std::vector<bool> unread = FindUnread(step);
  graph::Rewriter rewriter(step);
  for (NodeId id = 0; id < static_cast<NodeId>(step.nodes.size()); ++id) {
    const StepNode& node = rewriter.Visit(id);
    if (unread[static_cast<size_t>(id)] && WaitsForNodes(step, node)) (void)rewriter.Bypass(id, kMostEdges);
  }
  (void)rewriter.Finish();
  return Status();
}

}  // namespace weir::optimize
