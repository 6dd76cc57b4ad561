#include "core/fuse/loops_internal.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/fuse/compiled_internal.h"
#include "core/graph/frames.h"
#include "core/graph/rewriter.h"
#include "core/op/attrs.h"

namespace weir::fuse {
namespace {

using graph::Endpoint;
using graph::Flow;
using graph::FrameId;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

constexpr size_t kMostLoopOps = 256, kMostLoopVariables = 32;

/// A loop variable: its Merge, and the NextIteration that gives its next value.
struct LoopVariable {
  NodeId merge = -1;
  NodeId next = -1;
  NodeId chosen = -1;  // the Switch of the Merge; -1 if the body does not read the variable
};

/// A loop in terms of the step. The candidate's nodes are those of condition and body, its inputs the variables that
/// change and then what does not.
struct Loop {
  Candidate candidate;
  std::vector<LoopVariable> variables;  // those that change, by variable of the region
  std::vector<NodeId> body;             // ascending: the nodes that only the next values need
};

bool IsInvariantEnter(const StepNode& node) {
  const Result<bool> constant = node.source->attrs().Bool("is_constant");
  return constant.ok() && *constant;
}

/// A node that gives its inputs.
bool Passes(const StepNode& node) {
  return node.kind == StepNode::Kind::kOp && node.source->op().traits.passes_value &&
         graph::FlowOf(node) == Flow::kPlain && node.values.empty() && !node.source->op().stateful;
}

/// By frame: whether it may be such a loop, at first sight. O(V).
IndexedVector<FrameId, char> FramesAtFirstSight(const StepGraph& step) {
  IndexedVector<FrameId, char> may_be(std::max<size_t>(step.frames.size(), 1), 1);
  may_be[graph::kStepFrame] = 0;
  for (const FrameId frame : step.frames.indices()) {
    if (frame != graph::kStepFrame) may_be[step.ParentOf(frame)] = 0;
  }
  for (const StepNode& node : step.nodes) {
    if (node.kind != StepNode::Kind::kOp || node.frame == graph::kStepFrame) continue;
    const bool plain = graph::FlowOf(node) == Flow::kPlain;
    const bool fits = !plain || !node.values.empty() || Passes(node) ||
                      (node.types.size() == 1 && !node.source->op().stateful && node.shapes[0].fully_defined());
    if (!fits) may_be[node.frame] = 0;
  }
  return may_be;
}

/// Finds the loop of one frame.
class LoopFinder {
 public:
  /// `nodes` are the ops of the frame, ascending.
  LoopFinder(const Scene& scene, const CandidateFinder& finder, FrameId frame, const std::vector<NodeId>& nodes)
      : step_(scene.step), scene_(scene), finder_(finder), frame_(frame), nodes_(nodes) {}

  std::optional<Loop> Find() {
    if (!FindVariables() || !ReadNextValues() || !FindBody()) return std::nullopt;
    Describe();
    return std::move(loop_);
  }

 private:
  bool InFrame(NodeId id) const {
    const StepNode& node = step_.node(id);
    return node.kind == StepNode::Kind::kOp && node.frame == frame_;
  }
  bool FindVariables() {
    for (const NodeId id : nodes_) {
      if (graph::FlowOf(step_.node(id)) != Flow::kLoopCond) continue;
      if (condition_ >= 0) return false;
      condition_ = id;
    }
    if (condition_ < 0) return false;
    for (const NodeId id : nodes_) {
      if (!TakeFlow(id)) return false;
      const StepNode& node = step_.node(id);
      const bool in_body =
          graph::FlowOf(node) == Flow::kPlain &&
          (std::ranges::any_of(node.inputs, [&](const Endpoint& input) { return IsOfBody(input); }) ||
           std::ranges::any_of(node.control_inputs, [&](NodeId control) { return in_body_.contains(control); }));
      if (in_body) in_body_.insert(id);
    }
    return !variables_.empty() && variables_.size() <= kMostLoopVariables;
  }

  /// The value is there only in the iterations that the condition allows.
  bool IsOfBody(const Endpoint& value) const {
    const bool chosen = InFrame(value.node) && graph::FlowOf(step_.node(value.node)) == Flow::kSwitch;
    return chosen ? value.index == 1 : in_body_.contains(value.node);
  }

  /// False for a node that such a loop does not have.
  bool TakeFlow(NodeId id) {
    const StepNode& node = step_.node(id);
    const std::vector<NodeId>& readers = finder_.readers()[id];
    const bool used = std::ranges::find(readers, -1) != readers.end();  // by the step itself
    switch (graph::FlowOf(node)) {
      case Flow::kEnter:
        return !used && (IsInvariantEnter(node) || std::ranges::all_of(readers, [&](NodeId reader) {
                           return graph::FlowOf(step_.node(reader)) == Flow::kMerge;
                         }));
      case Flow::kMerge:
        return !used && TakeMerge(id);
      case Flow::kSwitch: {
        const auto found = variable_of_.find(node.inputs[0].node);
        if (used || node.inputs.size() != 2 || !(node.inputs[1] == Endpoint{condition_, 0})) return false;
        if (found == variable_of_.end() || node.inputs[0].index != 0) return false;
        variables_[found->second].chosen = id;
        return true;
      }
      case Flow::kExit:
        return graph::FlowOf(step_.node(node.inputs[0].node)) == Flow::kSwitch && node.inputs[0].index == 0;
      case Flow::kNextIteration:
        return !used && !finder_.IsWaitedFor(id);
      case Flow::kLoopCond:
        return !used;
      case Flow::kPlain:
        return !used && (!node.values.empty() || Passes(node) || finder_.MayBeIn(id));
      default:
        return false;
    }
  }

  bool TakeMerge(NodeId id) {
    const StepNode& node = step_.node(id);
    if (node.inputs.size() != 2 || !node.shapes[0].fully_defined()) return false;
    const bool first = graph::IsBackEdge(step_, node, node.inputs[0]);
    const bool second = graph::IsBackEdge(step_, node, node.inputs[1]);
    if (first == second) return false;
    variable_of_.emplace(id, variables_.size());
    variables_.push_back({id, node.inputs[first ? 0 : 1].node, -1});
    return true;
  }

  /// What a value is in an iteration: a variable, a node of the region, or a value that is the same in all iterations.
  /// False if it is none of them.
  bool Read(const Endpoint& value, Endpoint* meant) {
    Endpoint at = value;
    for (;;) {
      const StepNode& node = step_.node(at.node);
      if (!InFrame(at.node) || !node.values.empty()) break;
      const Flow flow = graph::FlowOf(node);
      if (flow == Flow::kEnter || flow == Flow::kMerge) {
        if (at.index != 0) return false;
        break;
      }
      if (flow == Flow::kSwitch && at.index == 1) {
        at = node.inputs[0];
      } else if (Passes(node)) {
        at = node.inputs[node.inputs.size() > 1 ? static_cast<size_t>(at.index) : 0];
      } else if (flow == Flow::kPlain) {
        if (at.index != 0 || !ReadNode(at.node)) return false;
        break;
      } else {
        return false;
      }
    }
    *meant = at;
    return true;
  }

  /// Adds the node and those that it needs to the nodes of the region.
  bool ReadNode(NodeId id) {
    if (operands_.contains(id)) return true;
    if (operands_.size() >= kMostLoopOps || !finder_.MayBeIn(id) || !InFrame(id)) return false;
    if (device_ < 0) device_ = scene_.DeviceOf(id);
    if (scene_.DeviceOf(id) != device_) return false;
    operands_.emplace(id, std::vector<Endpoint>());
    std::vector<Endpoint> operands;
    for (const Endpoint& operand : finder_.OperandsOf(id)) {
      if (!Read(operand, &operands.emplace_back())) return false;
    }
    operands_[id] = std::move(operands);
    return true;
  }

  bool ReadNextValues() {
    if (!Read(step_.node(condition_).inputs[0], &meant_condition_)) return false;
    for (const auto& [id, operands] : operands_) in_condition_.insert(id);
    const bool made = in_condition_.contains(meant_condition_.node);
    if (!made && !variable_of_.contains(meant_condition_.node)) return false;  // always the same
    for (LoopVariable& variable : variables_) {
      Endpoint next;
      const Endpoint& given = step_.node(variable.next).inputs[0];
      if (!IsOfBody(given) || !Read(given, &next)) return false;  // else the loop has no end
      if (next == Endpoint{variable.merge, 0}) continue;
      if (!(step_.TypeOf(next) == step_.TypeOf({variable.merge, 0})) ||
          !(step_.ShapeOf(next) == step_.node(variable.merge).shapes[0])) {
        return false;
      }
      loop_.variables.push_back(variable);
      next_.push_back(next);
    }
    // A value of the body tells that the region runs in the iterations that the condition allows.
    return std::ranges::any_of(loop_.variables, [](const LoopVariable& variable) { return variable.chosen >= 0; });
  }

  /// The nodes that have no readers once NextIterations of variables that change take their values from the region.
  /// Those of the region that the condition does not need must be among them.
  bool FindBody() {
    std::set<NodeId> gone, redirected;
    for (const LoopVariable& variable : loop_.variables) redirected.insert(variable.next);
    for (auto at = nodes_.rbegin(); at != nodes_.rend(); ++at) {
      const NodeId id = *at;
      const StepNode& node = step_.node(id);
      if (graph::FlowOf(node) != Flow::kPlain || !node.values.empty() || in_condition_.contains(id)) continue;
      const bool unread = std::ranges::all_of(
          finder_.readers()[id], [&](NodeId reader) { return gone.contains(reader) || redirected.contains(reader); });
      if (unread && !finder_.IsWaitedFor(id)) gone.insert(id);
      if (operands_.contains(id) && !gone.contains(id)) return false;
    }
    const auto is_op = [&](NodeId id) { return operands_.contains(id); };
    loop_.body.assign(gone.begin(), gone.end());
    return std::ranges::any_of(gone, is_op);
  }

  void Describe() {
    Candidate& candidate = loop_.candidate;
    compile::Region& region = candidate.region;
    candidate.device = device_;
    region.deterministic = scene_.options.compile.deterministic;
    std::map<Endpoint, uint32_t> number;
    const auto add_input = [&](const Endpoint& meant, const Endpoint& given) {
      if (!number.emplace(meant, static_cast<uint32_t>(number.size())).second) return;
      region.inputs.push_back(finder_.InputOf(given));
      candidate.inputs.push_back(given);
    };
    for (const LoopVariable& variable : loop_.variables) {
      region.outputs.push_back(static_cast<uint32_t>(number.size()));
      const Endpoint entering{variable.merge, 0};
      add_input(entering, variable.chosen >= 0 ? Endpoint{variable.chosen, 1} : entering);
    }
    const auto add_outer = [&](const Endpoint& value) {
      if (!operands_.contains(value.node)) add_input(value, value);
    };
    for (const auto& [id, operands] : operands_) std::ranges::for_each(operands, add_outer);
    std::ranges::for_each(next_, add_outer);
    add_outer(meant_condition_);
    for (const auto& [id, operands] : operands_) {
      number.emplace(Endpoint{id, 0}, static_cast<uint32_t>(number.size()));
      candidate.nodes.push_back(id);
      region.nodes.push_back(finder_.OpOf(id));
      for (const Endpoint& operand : operands) region.nodes.back().operands.push_back(number.at(operand));
    }
    region.loop.emplace();
    region.loop->condition = number.at(meant_condition_);
    for (const Endpoint& next : next_) region.loop->next.push_back(number.at(next));
  }

  const StepGraph& step_;
  const Scene& scene_;
  const CandidateFinder& finder_;
  const FrameId frame_;
  const std::vector<NodeId>& nodes_;
  Loop loop_;
  int device_ = -1;
  NodeId condition_ = -1;       // the LoopCond
  Endpoint meant_condition_;    // its value
  std::vector<Endpoint> next_;  // by variable that changes
  std::vector<LoopVariable> variables_;
  std::map<NodeId, size_t> variable_of_;              // by Merge
  std::map<NodeId, std::vector<Endpoint>> operands_;  // by node of the region
  std::set<NodeId> in_condition_, in_body_;
};

/// Puts nodes, in this order, behind all that come before node `end`. No node outside that is there reads them.
void MoveBefore(NodeId end, const std::vector<NodeId>& nodes, StepGraph& step, graph::Placement& placement) {
  const size_t count = step.nodes.size();
  std::vector<NodeId> order;
  IndexedVector<NodeId, char> moves(count, 0);
  for (const NodeId id : nodes) moves[id] = 1;
  for (const NodeId id : step.nodes.indices()) {
    if (id == end) order.insert(order.end(), nodes.begin(), nodes.end());
    if (moves[id] == 0) order.push_back(id);
  }
  if (end == step.nodes.end_index()) order.insert(order.end(), nodes.begin(), nodes.end());
  IndexedVector<NodeId, NodeId> place(count);
  IndexedVector<NodeId, StepNode> moved;
  IndexedVector<NodeId, int> devices;
  for (const NodeId from : order) {
    place[from] = moved.Add(std::move(step.nodes[from]));
    devices.push_back(placement.device_of[from]);
  }
  const auto follow = [&](NodeId& id) { id = place[id]; };
  for (StepNode& node : moved) {
    for (Endpoint& input : node.inputs) follow(input.node);
    for (NodeId& control : node.control_inputs) follow(control);
  }
  for (Endpoint& fetch : step.fetches) follow(fetch.node);
  for (NodeId& target : step.targets) follow(target);
  step.nodes = std::move(moved);
  placement.device_of = std::move(devices);
}

/// The last node of the body that is an op of the region becomes the region, behind everything that it reads; the
/// NextIterations follow it.
Status ReplaceLoop(const Loop& loop, const Replacement& by, const op::OpDef& result, StepGraph& step,
                   graph::Placement& placement) {
  std::vector<NodeId> ops, others;
  for (const NodeId id : loop.body) {
    if (std::ranges::binary_search(loop.candidate.nodes, id)) ops.push_back(id);
  }
  const NodeId root = ops.back();
  for (const NodeId id : loop.body) {
    if (id != root) others.push_back(id);
  }
  graph::Rewriter rewriter(step);
  ops.pop_back();
  WEIR_TRY(rewriter.StandFor(root, ops, result, by.attrs));
  StepNode& made = step.nodes[root];
  made.inputs = by.inputs;
  made.types = by.types;
  made.shapes = by.shapes;
  NodeId last = root;
  for (const Endpoint& input : made.inputs) last = std::max(last, input.node);
  for (const NodeId control : made.control_inputs) last = std::max(last, control);
  std::vector<NodeId> moved = {root};
  for (size_t i = 0; i < loop.variables.size(); ++i) {
    const NodeId next = loop.variables[i].next;
    step.nodes[next].inputs[0] = {root, static_cast<int>(i)};
    for (const NodeId control : step.node(next).control_inputs) last = std::max(last, control);
    moved.push_back(next);
    last = std::max(last, next);
  }
  for (const NodeId id : others) rewriter.Erase(id);
  const IndexedVector<NodeId, NodeId> places = rewriter.Finish();
  const auto now = [&](NodeId id) { return places.empty() ? id : places[id]; };
  for (const NodeId id : places.indices()) {
    if (places[id] >= 0) placement.device_of[places[id]] = placement.device_of[id];
  }
  placement.device_of.resize(step.nodes.size());
  while (now(last) < 0) --last;  // the root is never erased
  for (NodeId& id : moved) id = now(id);
  MoveBefore(now(last) + 1, moved, step, placement);
  return Status();
}

/// What is known of a step until a loop of it is replaced.
struct Sight {
  Sight(const FuseOptions& options, const StepGraph& step, const graph::Placement& placement)
      : users(graph::CountUsers(step)), scene{options, step, placement, users}, finder(scene) {
    for (const NodeId id : step.nodes.indices()) {
      if (step.node(id).kind == StepNode::Kind::kOp) nodes[step.node(id).frame].push_back(id);
    }
  }

  const IndexedVector<NodeId, int> users;
  const Scene scene;
  const CandidateFinder finder;
  std::map<FrameId, std::vector<NodeId>> nodes;  // the ops of each frame, ascending
};

}  // namespace

Status ReplaceLoops(const FuseOptions& options, const op::OpDef& result, StepGraph& step, graph::Placement& placement) {
  const IndexedVector<FrameId, char> may_be = FramesAtFirstSight(step);
  std::optional<Sight> sight;
  for (const FrameId frame : step.frames.indices()) {
    if (may_be[frame] == 0) continue;
    if (!sight) sight.emplace(options, step, placement);
    const std::optional<Loop> loop = LoopFinder(sight->scene, sight->finder, frame, sight->nodes[frame]).Find();
    if (!loop) continue;
    const std::optional<Replacement> by = CompileLoop(sight->scene, loop->candidate);
    if (!by) continue;
    sight.reset();
    WEIR_TRY(ReplaceLoop(*loop, *by, result, step, placement));
  }
  return Status();
}

}  // namespace weir::fuse
