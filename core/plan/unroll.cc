#include "core/plan/unroll_internal.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/graph/frames.h"

namespace weir::plan {
namespace {

using graph::Endpoint;
using graph::Flow;
using graph::FlowOf;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

/// By frame: it is `frame` or inside of it.
std::vector<bool> FramesInside(const StepGraph& step, int frame) {
  std::vector<bool> inside(step.frames.size(), false);
  for (size_t f = 1; f < inside.size(); ++f) {
    inside[f] = static_cast<int>(f) == frame || inside[static_cast<size_t>(step.frames[f].parent)];
  }
  return inside;
}

/// What every iteration has for itself: nodes of the frame and those inside, but for what leads in and out.
std::vector<bool> Repeated(const StepGraph& step, int frame) {
  const std::vector<bool> frames = FramesInside(step, frame);
  std::vector<bool> repeated(step.nodes.size(), false);
  for (size_t i = 0; i < repeated.size(); ++i) {
    const StepNode& node = step.nodes[i];
    if (node.kind != StepNode::Kind::kOp || !frames[static_cast<size_t>(node.frame)]) continue;
    const Flow flow = FlowOf(node);
    repeated[i] = node.frame != frame || (flow != Flow::kEnter && flow != Flow::kExit);
  }
  return repeated;
}

/// The NextIteration that gives a loop variable its next value; -1 for other nodes.
NodeId NextOf(const StepGraph& step, const StepNode& node) {
  if (FlowOf(node) != Flow::kMerge) return -1;
  const auto back = std::find_if(node.inputs.begin(), node.inputs.end(),
                                 [&](const Endpoint& e) { return IsBackEdge(step, node, e); });
  return back == node.inputs.end() ? -1 : back->node;
}

class Unroller {
 public:
  Unroller(const StepGraph& step, const graph::Placement& placement, const Receivers& receivers, int frame,
           int64_t copies)
      : step_(step), placement_(placement), receivers_(receivers), frame_(frame), copies_(static_cast<size_t>(copies)) {
    repeated_ = Repeated(step_, frame);
    ids_.resize(step_.nodes.size());
    next_.assign(step_.nodes.size(), -1);
    for (size_t i = 0; i < step_.nodes.size(); ++i) {
      if (repeated_[i] && step_.nodes[i].frame == frame) next_[i] = NextOf(step_, step_.nodes[i]);
    }
    pace_ = FindPace();
  }

  Result<PlacedStep> Run() {
    made_.step.graph = step_.graph;
    made_.step.made = step_.made;
    made_.placement.devices = placement_.devices;
    CopyFrames();
    for (size_t i = 0; i < step_.nodes.size(); ++i) CopyNode(static_cast<NodeId>(i));
    for (size_t i = 0; i < step_.nodes.size(); ++i) Connect(static_cast<NodeId>(i));
    for (size_t i = 0; i < step_.nodes.size(); ++i) {
      if (FlowOf(step_.nodes[i]) == Flow::kExit && step_.nodes[i].frame == frame_) {
        WEIR_TRY(JoinExits(static_cast<NodeId>(i)));
      }
    }
    for (const Endpoint& fetch : step_.fetches) made_.step.fetches.push_back(At(fetch, 0));
    for (const NodeId target : step_.targets) {
      const std::vector<NodeId>& ids = ids_[static_cast<size_t>(target)];
      made_.step.targets.insert(made_.step.targets.end(), ids.begin(), ids.end());
    }
    for (const auto& [source, devices] : receivers_) {
      const bool repeated = repeated_[static_cast<size_t>(source.node)];
      for (size_t copy = 0; copy < (repeated ? copies_ : 1); ++copy) {
        std::vector<int>& to = made_.receivers[At(source, copy)];
        to.insert(to.end(), devices.begin(), devices.end());
        std::sort(to.begin(), to.end());
        to.erase(std::unique(to.begin(), to.end()), to.end());
      }
    }
    Sort();
    return std::move(made_);
  }

 private:
  bool IsVariable(NodeId id) const { return next_[static_cast<size_t>(id)] >= 0; }

  /// The NextIteration of a variable that decides on going on, where there is one: whoever waits for it waits for
  /// nothing that an iteration does not wait for anyway.
  NodeId FindPace() const {
    std::vector<NodeId> waiting;
    std::vector<uint8_t> seen(step_.nodes.size(), 0);
    for (size_t i = 0; i < step_.nodes.size(); ++i) {
      const bool decides = step_.nodes[i].frame == frame_ && FlowOf(step_.nodes[i]) == Flow::kLoopCond;
      if (decides) waiting.push_back(static_cast<NodeId>(i));
    }
    while (!waiting.empty()) {
      const NodeId id = waiting.back();
      waiting.pop_back();
      if (!repeated_[static_cast<size_t>(id)] || std::exchange(seen[static_cast<size_t>(id)], uint8_t{1}) != 0)
        continue;
      if (IsVariable(id)) return next_[static_cast<size_t>(id)];
      for (const Endpoint& input : step_.node(id).inputs) waiting.push_back(input.node);
    }
    const auto any = std::find_if(next_.begin(), next_.end(), [](NodeId id) { return id >= 0; });
    return any == next_.end() ? -1 : *any;
  }

  void CopyFrames() {
    made_.step.frames = step_.frames;
    frames_.assign(copies_, std::vector<int>(step_.frames.size()));
    const std::vector<bool> inside = FramesInside(step_, frame_);
    for (size_t copy = 0; copy < copies_; ++copy) {
      for (size_t f = 0; f < step_.frames.size(); ++f) {
        frames_[copy][f] = static_cast<int>(f);
        if (copy == 0 || !inside[f] || static_cast<int>(f) == frame_) continue;
        const graph::Frame& frame = step_.frames[f];
        frames_[copy][f] = static_cast<int>(made_.step.frames.size());
        made_.step.frames.push_back(
            {frames_[copy][static_cast<size_t>(frame.parent)], fmt::format("{}#{}", frame.name, copy)});
      }
    }
  }

  NodeId Add(StepNode node, int device) {
    made_.step.nodes.push_back(std::move(node));
    made_.placement.device_of.push_back(device);
    return static_cast<NodeId>(made_.step.nodes.size()) - 1;
  }

  /// A loop variable's Merge stays one.
  void CopyNode(NodeId id) {
    const auto i = static_cast<size_t>(id);
    const size_t count = repeated_[i] && !IsVariable(id) ? copies_ : 1;
    for (size_t copy = 0; copy < count; ++copy) {
      const NodeId added = Add(step_.nodes[i], placement_.device_of[i]);
      ids_[i].push_back(added);
      StepNode& node = made_.step.nodes.back();
      if (node.kind == StepNode::Kind::kOp) node.frame = frames_[copy][static_cast<size_t>(node.frame)];
    }
  }

  NodeId IdOf(NodeId id, size_t copy) const {
    const std::vector<NodeId>& ids = ids_[static_cast<size_t>(id)];
    return ids[std::min(copy, ids.size() - 1)];
  }
  /// A value as a copy sees it: a loop variable is what the copy before goes on with.
  Endpoint At(Endpoint value, size_t copy) const {
    while (copy > 0 && IsVariable(value.node)) {
      value = step_.node(next_[static_cast<size_t>(value.node)]).inputs[0];
      --copy;
    }
    return {IdOf(value.node, copy), value.index};
  }
  /// What a copy waits for where an iteration waits for `id`.
  NodeId ControlAt(NodeId id, size_t copy) const {
    return copy > 0 && IsVariable(id) ? IdOf(next_[static_cast<size_t>(id)], copy - 1) : IdOf(id, copy);
  }

  void Connect(NodeId id) {
    const StepNode& node = step_.node(id);
    for (size_t copy = 0; copy < ids_[static_cast<size_t>(id)].size(); ++copy) {
      StepNode& made = made_.step.nodes[static_cast<size_t>(IdOf(id, copy))];
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const bool closes = IsVariable(id) && node.inputs[i].node == next_[static_cast<size_t>(id)];
        made.inputs[i] = closes ? Endpoint{IdOf(node.inputs[i].node, copies_ - 1), 0} : At(node.inputs[i], copy);
      }
      for (size_t c = 0; c < node.control_inputs.size(); ++c) {
        made.control_inputs[c] = ControlAt(node.control_inputs[c], copy);
      }
      // What depends on nothing in the loop runs when its iteration does.
      const bool alone = repeated_[static_cast<size_t>(id)] && !DependsOnIteration(node);
      if (copy > 0 && alone && pace_ >= 0) made.control_inputs.push_back(IdOf(pace_, copy - 1));
    }
  }
  bool DependsOnIteration(const StepNode& node) const {
    const auto is_repeated = [&](NodeId id) { return repeated_[static_cast<size_t>(id)]; };
    return std::any_of(node.control_inputs.begin(), node.control_inputs.end(), is_repeated) ||
           std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Endpoint& e) { return is_repeated(e.node); });
  }

  /// A Merge of what the copies' Switch nodes let out.
  Status JoinExits(NodeId id) {
    const StepNode& exit = step_.node(id);
    const op::OpDef* const merge = step_.graph->ops().Find("Merge");
    if (merge == nullptr) return Internal("the catalogue has no Merge");
    graph::MadeNode joined;
    WEIR_ASSIGN(joined.node,
                graph::Node::InPlaceOf(*exit.source, *merge,
                                       {{"T", BaseType(exit.types[0])}, {"N", static_cast<int64_t>(copies_)}}));
    StepNode node;
    node.source = joined.node.get();
    node.frame = frame_;
    node.types = {BaseType(exit.types[0]), DType::kInt32};
    node.shapes = {exit.shapes[0], PartialShape(Shape())};
    for (size_t copy = 0; copy < copies_; ++copy) node.inputs.push_back(At(exit.inputs[0], copy));
    made_.step.made.push_back(std::move(joined));
    const NodeId added = Add(std::move(node), placement_.device_of[static_cast<size_t>(id)]);
    made_.step.nodes[static_cast<size_t>(IdOf(id, 0))].inputs[0] = {added, 0};
    return Status();
  }

  /// Renumbers the nodes so that edges lead upwards again, as near to the order in which they stand as that allows.
  void Sort() {
    std::vector<StepNode>& nodes = made_.step.nodes;
    std::vector<int> pending(nodes.size(), 0);
    std::vector<std::vector<NodeId>> users(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      const auto wait = [&](NodeId from) {
        ++pending[i];
        users[static_cast<size_t>(from)].push_back(static_cast<NodeId>(i));
      };
      for (const Endpoint& input : nodes[i].inputs) {
        if (!graph::IsBackEdge(made_.step, nodes[i], input)) wait(input.node);
      }
      for (const NodeId control : nodes[i].control_inputs) wait(control);
    }
    std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (pending[i] == 0) ready.push(static_cast<NodeId>(i));
    }
    std::vector<NodeId> order, place(nodes.size());
    while (!ready.empty()) {
      const NodeId id = ready.top();
      ready.pop();
      place[static_cast<size_t>(id)] = static_cast<NodeId>(order.size());
      order.push_back(id);
      for (const NodeId user : users[static_cast<size_t>(id)]) {
        if (--pending[static_cast<size_t>(user)] == 0) ready.push(user);
      }
    }
    Renumber(order, place);
  }

  void Renumber(const std::vector<NodeId>& order, const std::vector<NodeId>& place) {
    const auto moved = [&](NodeId& id) { id = place[static_cast<size_t>(id)]; };
    std::vector<StepNode> nodes;
    std::vector<int> devices;
    for (const NodeId id : order) {
      nodes.push_back(std::move(made_.step.nodes[static_cast<size_t>(id)]));
      devices.push_back(made_.placement.device_of[static_cast<size_t>(id)]);
      for (Endpoint& input : nodes.back().inputs) moved(input.node);
      for (NodeId& control : nodes.back().control_inputs) moved(control);
    }
    made_.step.nodes = std::move(nodes);
    made_.placement.device_of = std::move(devices);
    for (Endpoint& fetch : made_.step.fetches) moved(fetch.node);
    for (NodeId& target : made_.step.targets) moved(target);
    Receivers receivers;
    for (auto& [source, to] : made_.receivers) {
      receivers[{place[static_cast<size_t>(source.node)], source.index}] = std::move(to);
    }
    made_.receivers = std::move(receivers);
  }

  const StepGraph& step_;
  const graph::Placement& placement_;
  const Receivers& receivers_;
  const int frame_;
  const size_t copies_;
  std::vector<bool> repeated_;  // by node
  std::vector<NodeId> next_;    // of a loop variable's Merge: its NextIteration
  NodeId pace_ = -1;
  std::vector<std::vector<NodeId>> ids_;  // by node: those of its copies
  std::vector<std::vector<int>> frames_;  // by copy and frame
  PlacedStep made_;
};

}  // namespace

size_t NodesInside(const StepGraph& step, int frame) {
  const std::vector<bool> repeated = Repeated(step, frame);
  return static_cast<size_t>(std::count(repeated.begin(), repeated.end(), true));
}

int64_t MostIterations(const StepGraph& step, int frame) {
  int64_t most = INT64_MAX;
  const std::vector<bool> repeated = Repeated(step, frame);
  const auto is_inside = [&](NodeId id) { return repeated[static_cast<size_t>(id)]; };
  for (const StepNode& node : step.nodes) {
    if (node.kind != StepNode::Kind::kOp) continue;
    for (const Endpoint& input : node.inputs) {
      const StepNode& from = step.node(input.node);
      if (input.index == 1 && from.frame == frame && NextOf(step, from) >= 0) return 1;
    }
    if (node.frame != frame) continue;
    const Flow flow = FlowOf(node);
    if (flow == Flow::kEnter) {
      const Result<int64_t> given = node.source->attrs().Int("parallel_iterations");
      most = std::min(most, given.ok() ? *given : 1);
    } else if (flow == Flow::kMerge && NextOf(step, node) >= 0 && (IsRef(node.types[0]) || node.inputs.size() != 2)) {
      return 1;
    } else if (flow == Flow::kExit) {
      const StepNode& from = step.node(node.inputs[0].node);
      const bool simple = is_inside(node.inputs[0].node) && FlowOf(from) == Flow::kSwitch && !IsRef(node.types[0]) &&
                          std::none_of(node.control_inputs.begin(), node.control_inputs.end(), is_inside);
      if (!simple) return 1;
    }
  }
  const bool fetched = std::any_of(step.fetches.begin(), step.fetches.end(),
                                   [&](const Endpoint& fetch) { return is_inside(fetch.node); });
  return fetched || most == INT64_MAX ? 1 : most;
}

Result<PlacedStep> Unroll(const StepGraph& step, const graph::Placement& placement, const Receivers& receivers,
                          int frame, int64_t copies) {
  return Unroller(step, placement, receivers, frame, copies).Run();
}

}  // namespace weir::plan
