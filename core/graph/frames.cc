#include "core/graph/frames.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"

namespace weir::graph {
namespace {

class FrameFinder {
 public:
  explicit FrameFinder(StepGraph& step) : step_(step) {}

  Status Run() {
    step_.frames.assign(1, Frame{});
    if (std::ranges::none_of(step_.nodes, [](const StepNode& node) { return FlowOf(node) != Flow::kPlain; })) {
      for (StepNode& node : step_.nodes) node.frame = kStepFrame;
      return Status();
    }
    is_constant_.reserve(step_.nodes.size());
    for (StepNode& node : step_.nodes) {
      is_constant_.push_back(IsConstant(node));
      if (IsAnywhere(static_cast<NodeId>(is_constant_.size() - 1))) continue;
      WEIR_TRY(Enclosing(node));
      if (FlowOf(node) == Flow::kEnter) WEIR_TRY(Open(node));
      if (FlowOf(node) == Flow::kMerge) WEIR_TRY(CheckMerge(node));
      if ((FlowOf(node) == Flow::kExit || FlowOf(node) == Flow::kNextIteration) && node.frame == kStepFrame) {
        return AtNode(
            InvalidArgument("{} '{}' is in no frame: an Enter must lead to it", node.source->op().name, node.name()),
            *node.source);
      }
    }
    return CheckBackEdges();
  }

 private:
  /// True for a constant or a value computed from constants only, as in the body of a function called by a loop.
  bool IsConstant(const StepNode& node) const {
    if (node.kind != StepNode::Kind::kOp) return node.kind == StepNode::Kind::kConstant;
    const op::OpDef& op = node.source->op();
    if (op.stateful || op.run_by == op::RunBy::kExecutor || !node.control_inputs.empty()) return false;
    if (node.inputs.empty()) return op.traits.universal == op::Universal::kConstant;
    return std::ranges::all_of(node.inputs, [this](const Endpoint& input) {
      return is_constant_.Has(input.node) && is_constant_[input.node];
    });
  }
  /// Feeds and constants have one value per step and may be used in any frame.
  bool IsAnywhere(NodeId id) const {
    return step_.node(id).kind == StepNode::Kind::kFeed || (is_constant_.Has(id) && is_constant_[id]);
  }

  /// Sets the node's frame to the one that all its inputs share.
  Status Enclosing(StepNode& node) {
    const StepNode* first = nullptr;
    const auto join = [&](NodeId from) -> Status {
      const StepNode& input = step_.node(from);
      if (IsAnywhere(from)) return Status();
      const FrameId frame = OutputFrame(step_, from);
      if (first != nullptr && frame != node.frame) return Mixed(node, *first, input);
      first = &input;
      node.frame = frame;
      return Status();
    };
    for (const Endpoint& input : node.inputs) {
      if (!IsBackEdge(step_, node, input)) WEIR_TRY(join(input.node));
    }
    for (const NodeId control : node.control_inputs) WEIR_TRY(join(control));
    return Status();
  }

  Status Mixed(const StepNode& node, const StepNode& a, const StepNode& b) const {
    const auto name = [&](const StepNode& input) {
      return step_.frames[OutputFrame(step_, static_cast<NodeId>(&input - step_.nodes.data()))].name;
    };
    return AtNode(
        InvalidArgument("The node '{}' has inputs from different frames. The input '{}' is in frame '{}'. The "
                        "input '{}' is in frame '{}'.",
                        node.name(), a.name(), name(a), b.name(), name(b)),
        *node.source);
  }

  Status Open(StepNode& node) {
    Result<std::string> name = node.source->attrs().String("frame_name");
    if (!name.ok()) return AtNode(name.status(), *node.source);
    const auto [found, is_new] = by_name_.try_emplace({node.frame, *name}, step_.frames.end_index());
    if (is_new) step_.frames.push_back({node.frame, *name});
    node.frame = found->second;
    return Status();
  }

  Status CheckMerge(const StepNode& node) const {
    if (node.inputs.empty()) {
      return AtNode(InvalidArgument("Merge '{}' has no inputs, wanted at least one", node.name()), *node.source);
    }
    for (const Endpoint& input : node.inputs) {
      if (!IsBackEdge(step_, node, input)) return Status();
    }
    return AtNode(InvalidArgument("Merge '{}' is entered by NextIteration only: the loop has no Enter", node.name()),
                  *node.source);
  }

  Status CheckBackEdges() const {
    for (const StepNode& node : step_.nodes) {
      if (FlowOf(node) != Flow::kMerge) continue;
      for (const Endpoint& input : node.inputs) {
        if (!IsBackEdge(step_, node, input) || step_.node(input.node).frame == node.frame) continue;
        return Mixed(node, node, step_.node(input.node));
      }
    }
    return Status();
  }

  StepGraph& step_;
  IndexedVector<NodeId, bool> is_constant_;  // of the nodes visited so far
  std::map<std::pair<FrameId, std::string>, FrameId> by_name_;
};

}  // namespace

Flow FlowOf(const StepNode& node) {
  return node.kind == StepNode::Kind::kOp ? node.source->op().traits.flow : Flow::kPlain;
}

bool IsBackEdge(const StepGraph& step, const StepNode& to, const Endpoint& from) {
  return FlowOf(to) == Flow::kMerge && FlowOf(step.node(from.node)) == Flow::kNextIteration;
}

FrameId OutputFrame(const StepGraph& step, NodeId id) {
  const StepNode& node = step.node(id);
  return FlowOf(node) == Flow::kExit ? step.ParentOf(node.frame) : node.frame;
}

Status FindFrames(StepGraph& step) { return FrameFinder(step).Run(); }

}  // namespace weir::graph
