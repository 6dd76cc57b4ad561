#include "core/base/errors.h"
#include "core/plan/unroll_internal.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/graph/frames.h"
#include "core/op/op_names.h"

namespace weir::plan {
namespace {

using graph::Endpoint;
using graph::Flow;
using graph::FlowOf;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

template <class T>
using ByNode = IndexedVector<NodeId, T>;
template <class T>
using ByFrame = IndexedVector<FrameId, T>;

/// By frame: true for `frame` and frames nested in it.
ByFrame<bool> FramesInside(const StepGraph& step, FrameId frame) {
  ByFrame<bool> inside(step.frames.size(), false);
  for (const FrameId f : inside.indices()) {
    if (f != graph::kStepFrame) inside[f] = f == frame || inside[step.ParentOf(f)];
  }
  return inside;
}

/// Nodes that are copied per iteration: those of the frame and nested frames, except the Enter and Exit nodes of the
/// loop.
ByNode<bool> Repeated(const StepGraph& step, FrameId frame) {
  const ByFrame<bool> frames = FramesInside(step, frame);
  ByNode<bool> repeated(step.nodes.size(), false);
  for (const NodeId i : repeated.indices()) {
    const StepNode& node = step.node(i);
    if (node.kind != StepNode::Kind::kOp || !frames[node.frame]) continue;
    const Flow flow = FlowOf(node);
    repeated[i] = node.frame != frame || (flow != Flow::kEnter && flow != Flow::kExit);
  }
  return repeated;
}

/// The NextIteration of a loop variable's Merge; -1 for other nodes.
NodeId NextOf(const StepGraph& step, const StepNode& node) {
  if (FlowOf(node) != Flow::kMerge) return -1;
  const auto back = std::find_if(node.inputs.begin(), node.inputs.end(),
                                 [&](const Endpoint& e) { return IsBackEdge(step, node, e); });
  return back == node.inputs.end() ? -1 : back->node;
}

class Unroller {
 public:
  Unroller(const StepGraph& step, const graph::Placement& placement, const Receivers& receivers, FrameId frame,
           int64_t copies)
      : step_(step), placement_(placement), receivers_(receivers), frame_(frame), copies_(static_cast<size_t>(copies)) {
    repeated_ = Repeated(step_, frame);
    ids_.resize(step_.nodes.size());
    next_.assign(step_.nodes.size(), -1);
    for (const NodeId i : next_.indices()) {
      if (repeated_[i] && step_.node(i).frame == frame) next_[i] = NextOf(step_, step_.node(i));
    }
    pace_ = FindPace();
  }

  Result<PlacedStep> Run() {
    made_.step.graph = step_.graph;
    made_.step.made = step_.made;
    made_.placement.devices = placement_.devices;
    CopyFrames();
    for (const NodeId id : ids_.indices()) CopyNode(id);
    for (const NodeId id : ids_.indices()) Connect(id);
    for (const NodeId id : ids_.indices()) {
      if (FlowOf(step_.node(id)) == Flow::kExit && step_.node(id).frame == frame_) WEIR_TRY(JoinExits(id));
    }
    for (const Endpoint& fetch : step_.fetches) made_.step.fetches.push_back(At(fetch, 0));
    for (const NodeId target : step_.targets) {
      const std::vector<NodeId>& ids = ids_[target];
      made_.step.targets.insert(made_.step.targets.end(), ids.begin(), ids.end());
    }
    for (const auto& [source, devices] : receivers_) {
      const bool repeated = repeated_[source.node];
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
  bool IsVariable(NodeId id) const { return next_[id] >= 0; }

  /// The NextIteration of a variable that the loop condition depends on, else of any variable. Waiting for it is free:
  /// every iteration already does.
  NodeId FindPace() const {
    std::vector<NodeId> waiting;
    ByNode<uint8_t> seen(step_.nodes.size(), 0);
    for (const NodeId id : seen.indices()) {
      const bool decides = step_.node(id).frame == frame_ && FlowOf(step_.node(id)) == Flow::kLoopCond;
      if (decides) waiting.push_back(id);
    }
    while (!waiting.empty()) {
      const NodeId id = waiting.back();
      waiting.pop_back();
      if (!repeated_[id] || std::exchange(seen[id], uint8_t{1}) != 0) continue;
      if (IsVariable(id)) return next_[id];
      for (const Endpoint& input : step_.node(id).inputs) waiting.push_back(input.node);
    }
    const auto any = std::find_if(next_.begin(), next_.end(), [](NodeId id) { return id >= 0; });
    return any == next_.end() ? -1 : *any;
  }

  void CopyFrames() {
    made_.step.frames = step_.frames;
    frames_.assign(copies_, ByFrame<FrameId>(step_.frames.size()));
    const ByFrame<bool> inside = FramesInside(step_, frame_);
    for (size_t copy = 0; copy < copies_; ++copy) {
      for (const FrameId f : inside.indices()) {
        frames_[copy][f] = f;
        if (copy == 0 || !inside[f] || f == frame_) continue;
        const graph::Frame& frame = step_.frames[f];
        frames_[copy][f] = made_.step.frames.Add({frames_[copy][frame.parent], fmt::format("{}#{}", frame.name, copy)});
      }
    }
  }

  int DeviceOf(NodeId id) const { return placement_.device_of[id]; }
  StepNode& Made(NodeId id) { return made_.step.nodes[id]; }

  NodeId Add(StepNode node, int device) {
    made_.placement.device_of.push_back(device);
    return made_.step.nodes.Add(std::move(node));
  }

  /// The Merge of a loop variable is not copied.
  void CopyNode(NodeId id) {
    const size_t count = repeated_[id] && !IsVariable(id) ? copies_ : 1;
    for (size_t copy = 0; copy < count; ++copy) {
      ids_[id].push_back(Add(step_.node(id), DeviceOf(id)));
      StepNode& node = made_.step.nodes.back();
      if (node.kind == StepNode::Kind::kOp) node.frame = frames_[copy][node.frame];
    }
  }

  NodeId IdOf(NodeId id, size_t copy) const {
    const std::vector<NodeId>& ids = ids_[id];
    return ids[std::min(copy, ids.size() - 1)];
  }
  /// A value as seen by a copy: a loop variable has the next value of the previous copy.
  Endpoint At(Endpoint value, size_t copy) const {
    while (copy > 0 && IsVariable(value.node)) {
      value = step_.node(next_[value.node]).inputs[0];
      --copy;
    }
    return {IdOf(value.node, copy), value.index};
  }
  /// The node for a copy's control edge from `id`.
  NodeId ControlAt(NodeId id, size_t copy) const {
    return copy > 0 && IsVariable(id) ? IdOf(next_[id], copy - 1) : IdOf(id, copy);
  }

  void Connect(NodeId id) {
    const StepNode& node = step_.node(id);
    for (size_t copy = 0; copy < ids_[id].size(); ++copy) {
      StepNode& made = Made(IdOf(id, copy));
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const bool closes = IsVariable(id) && node.inputs[i].node == next_[id];
        made.inputs[i] = closes ? Endpoint{IdOf(node.inputs[i].node, copies_ - 1), 0} : At(node.inputs[i], copy);
      }
      for (size_t c = 0; c < node.control_inputs.size(); ++c) {
        made.control_inputs[c] = ControlAt(node.control_inputs[c], copy);
      }
      // A node that depends on nothing in the loop still runs once per iteration.
      const bool alone = repeated_[id] && !DependsOnIteration(node);
      if (copy > 0 && alone && pace_ >= 0) made.control_inputs.push_back(IdOf(pace_, copy - 1));
    }
  }
  bool DependsOnIteration(const StepNode& node) const {
    const auto is_repeated = [&](NodeId id) { return repeated_[id]; };
    return std::any_of(node.control_inputs.begin(), node.control_inputs.end(), is_repeated) ||
           std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Endpoint& e) { return is_repeated(e.node); });
  }

  /// Merges the exit values of the copies' Switch nodes.
  Status JoinExits(NodeId id) {
    const StepNode& exit = step_.node(id);
    const op::OpDef* const merge = step_.graph->ops().Find(op::kMergeOp);
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
    const NodeId added = Add(std::move(node), DeviceOf(id));
    Made(IdOf(id, 0)).inputs[0] = {added, 0};
    return Status();
  }

  /// Restores a topological order, as close to the previous one as possible.
  void Sort() {
    const ByNode<StepNode>& nodes = made_.step.nodes;
    ByNode<int> pending(nodes.size(), 0);
    ByNode<std::vector<NodeId>> users(nodes.size());
    for (const NodeId i : pending.indices()) {
      const StepNode& node = made_.step.node(i);
      const auto wait = [&](NodeId from) {
        ++pending[i];
        users[from].push_back(i);
      };
      for (const Endpoint& input : node.inputs) {
        if (!graph::IsBackEdge(made_.step, node, input)) wait(input.node);
      }
      for (const NodeId control : node.control_inputs) wait(control);
    }
    std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
    for (const NodeId i : pending.indices()) {
      if (pending[i] == 0) ready.push(i);
    }
    std::vector<NodeId> order;
    ByNode<NodeId> place(nodes.size());
    while (!ready.empty()) {
      const NodeId id = ready.top();
      ready.pop();
      place[id] = static_cast<NodeId>(order.size());
      order.push_back(id);
      for (const NodeId user : users[id]) {
        if (--pending[user] == 0) ready.push(user);
      }
    }
    Renumber(order, place);
  }

  void Renumber(const std::vector<NodeId>& order, const ByNode<NodeId>& place) {
    const auto moved = [&](NodeId& id) { id = place[id]; };
    ByNode<StepNode> nodes;
    ByNode<int> devices;
    for (const NodeId id : order) {
      nodes.push_back(std::move(Made(id)));
      devices.push_back(made_.placement.device_of[id]);
      for (Endpoint& input : nodes.back().inputs) moved(input.node);
      for (NodeId& control : nodes.back().control_inputs) moved(control);
    }
    made_.step.nodes = std::move(nodes);
    made_.placement.device_of = std::move(devices);
    for (Endpoint& fetch : made_.step.fetches) moved(fetch.node);
    for (NodeId& target : made_.step.targets) moved(target);
    Receivers receivers;
    for (auto& [source, to] : made_.receivers) {
      receivers[{place[source.node], source.index}] = std::move(to);
    }
    made_.receivers = std::move(receivers);
  }

  const StepGraph& step_;
  const graph::Placement& placement_;
  const Receivers& receivers_;
  const FrameId frame_;
  const size_t copies_;
  ByNode<bool> repeated_;
  ByNode<NodeId> next_;  // by loop variable's Merge: its NextIteration
  NodeId pace_ = -1;
  ByNode<std::vector<NodeId>> ids_;       // copies
  std::vector<ByFrame<FrameId>> frames_;  // by copy
  PlacedStep made_;
};

/// The node that makes a reference or handle, behind nodes that pass it on.
NodeId MakerOf(const StepGraph& step, Endpoint reference) {
  for (;;) {
    const StepNode& node = step.node(reference.node);
    const bool passes = node.kind == StepNode::Kind::kOp && !node.inputs.empty() &&
                        (FlowOf(node) != Flow::kPlain || node.source->op().traits.passes_value);
    if (!passes) return reference.node;
    reference = node.inputs[0];
  }
}

/// Runs iterations of a loop on as many processors as they can use.
class LoopClock {
 public:
  LoopClock(const StepGraph& step, FrameId frame, const ByNode<double>& node_ns)
      : step_(step), node_ns_(node_ns), repeated_(Repeated(step, frame)), end_(step.nodes.size(), 0) {
    next_.assign(step.nodes.size(), -1);
    for (const NodeId id : next_.indices()) {
      if (repeated_[id] && step.node(id).frame == frame) next_[id] = NextOf(step, step.node(id));
    }
  }

  double Share(int64_t copies) {
    double longest = 0, total = 0;
    for (int64_t copy = 0; copy < copies; ++copy) {
      ByNode<double> carried = end_;  // of the last copy
      for (const NodeId id : next_.indices()) {
        if (!repeated_[id]) continue;
        const bool is_variable = next_[id] >= 0;
        end_[id] = is_variable ? (copy == 0 ? 0 : carried[next_[id]]) : Run(step_.node(id), id, carried[id]);
        longest = std::max(longest, end_[id]);
        total += is_variable ? 0 : node_ns_[id];
      }
    }
    return total > 0 ? longest / total : 1;
  }

 private:
  /// When the node ends. `before`: when it ended in the last copy.
  double Run(const StepNode& node, NodeId id, double before) {
    const op::OpDef& op = node.source->op();
    double start = op.stateful ? before : 0;
    const auto wait = [&](NodeId from) {
      if (repeated_[from]) start = std::max(start, end_[from]);
    };
    for (const Endpoint& input : node.inputs) {
      if (!graph::IsBackEdge(step_, node, input)) wait(input.node);
    }
    for (const NodeId control : node.control_inputs) wait(control);
    if (op.run_by == op::RunBy::kExecutor) return start + node_ns_[id];
    const bool reads = op.traits.universal == op::Universal::kReadVariable || op.traits.passes_value;
    for (const Endpoint& input : node.inputs) {
      const DType type = step_.TypeOf(input);
      if (!IsRef(type) && type != DType::kResource) continue;
      Uses& uses = uses_[MakerOf(step_, input)];
      start = std::max(start, reads ? uses.written : std::max(uses.written, uses.read));
      double& last = reads ? uses.read : uses.written;
      last = std::max(last, start + node_ns_[id]);
    }
    return start + node_ns_[id];
  }

  /// When the last reader and the last writer of a variable end.
  struct Uses {
    double read = 0;
    double written = 0;
  };

  const StepGraph& step_;
  const ByNode<double>& node_ns_;
  const ByNode<bool> repeated_;
  ByNode<NodeId> next_;
  ByNode<double> end_;
  std::map<NodeId, Uses> uses_;
};

}  // namespace

double CriticalShare(const StepGraph& step, FrameId frame, int64_t copies,
                     const IndexedVector<NodeId, double>& node_ns) {
  return LoopClock(step, frame, node_ns).Share(copies);
}

size_t NodesInside(const StepGraph& step, FrameId frame) {
  const ByNode<bool> repeated = Repeated(step, frame);
  return static_cast<size_t>(std::count(repeated.begin(), repeated.end(), true));
}

int64_t MostIterations(const StepGraph& step, FrameId frame) {
  int64_t most = INT64_MAX;
  const ByNode<bool> repeated = Repeated(step, frame);
  const auto is_inside = [&](NodeId id) { return repeated[id]; };
  for (const StepNode& node : step.nodes) {
    if (node.kind != StepNode::Kind::kOp) continue;
    for (const Endpoint& input : node.inputs) {
      const StepNode& from = step.node(input.node);
      if (input.index == 1 && from.frame == frame && NextOf(step, from) >= 0) return 1;
    }
    const Flow flow = FlowOf(node);
    if ((flow == Flow::kSend || flow == Flow::kRecv) && is_inside(static_cast<NodeId>(&node - step.nodes.data()))) {
      return 1;
    }
    if (node.frame != frame) continue;
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
                          FrameId frame, int64_t copies) {
  return Unroller(step, placement, receivers, frame, copies).Run();
}

}  // namespace weir::plan
