// Control edges from nodes without effect: whoever waits for such a node only needs what that node waits for.
#include <algorithm>
#include <string_view>
#include <vector>

#include "core/graph/frames.h"
#include "core/optimize/passes_internal.h"

namespace weir::optimize {
namespace {

using graph::Endpoint;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

/// A node is left in place when more than this would be waited for instead.
constexpr size_t kMostEdges = 32;

/// Nothing but its outputs tells whether it ran. An op that only checks its input has an effect: its error. What reads
/// a Switch tells its consumers which way was taken, and a control edge from the Switch itself would not.
bool IsPure(const StepGraph& step, const StepNode& node) {
  if (node.kind != StepNode::Kind::kOp || node.types.empty()) return false;
  const op::OpDef& op = node.source->op();
  if (op.stateful || op.run_by == op::RunBy::kExecutor || op.name == "CheckNumerics") return false;
  const auto switched = [&](const Endpoint& input) {
    return graph::FlowOf(step.node(input.node)) == graph::Flow::kSwitch;
  };
  return std::none_of(node.inputs.begin(), node.inputs.end(), switched) &&
         std::none_of(node.types.begin(), node.types.end(), IsRef) &&
         std::none_of(op.inputs.begin(), op.inputs.end(), [](const op::ArgDef& arg) { return arg.is_ref; });
}

/// Pure nodes whose outputs are read by nobody, or by such nodes only.
std::vector<bool> FindUnread(const StepGraph& step) {
  std::vector<int> readers(step.nodes.size(), 0);
  for (const StepNode& node : step.nodes) {
    for (const Endpoint& input : node.inputs) ++readers[static_cast<size_t>(input.node)];
  }
  for (const Endpoint& fetch : step.fetches) ++readers[static_cast<size_t>(fetch.node)];
  for (const NodeId target : step.targets) ++readers[static_cast<size_t>(target)];
  std::vector<bool> unread(step.nodes.size(), false);
  for (size_t i = step.nodes.size(); i-- > 0;) {
    if (readers[i] != 0 || !IsPure(step, step.nodes[i])) continue;
    unread[i] = true;
    for (const Endpoint& input : step.nodes[i].inputs) --readers[static_cast<size_t>(input.node)];
  }
  return unread;
}

}  // namespace

Status RelaxControls(const PassContext&, StepGraph& step) {
  const std::vector<bool> unread = FindUnread(step);
  std::vector<std::vector<NodeId>> waits_for(step.nodes.size());  // of unread nodes; empty: it stays
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    StepNode& node = step.nodes[i];
    std::vector<NodeId> controls;
    bool changed = false;
    const auto add = [&](NodeId from) {
      const std::vector<NodeId>& instead = waits_for[static_cast<size_t>(from)];
      changed = changed || !instead.empty();
      if (instead.empty()) {
        controls.push_back(from);
      } else {
        controls.insert(controls.end(), instead.begin(), instead.end());
      }
    };
    for (const NodeId control : node.control_inputs) add(control);
    if (changed) {
      std::sort(controls.begin(), controls.end());
      controls.erase(std::unique(controls.begin(), controls.end()), controls.end());
      node.control_inputs = controls;
    }
    if (!unread[i]) continue;
    for (const Endpoint& input : node.inputs) {
      if (step.node(input.node).kind == StepNode::Kind::kOp) add(input.node);
    }
    std::sort(controls.begin(), controls.end());
    controls.erase(std::unique(controls.begin(), controls.end()), controls.end());
    if (controls.size() <= kMostEdges) waits_for[i] = std::move(controls);
  }
  return Status();
}

}  // namespace weir::optimize
