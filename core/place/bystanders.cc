#include "core/place/bystanders.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph/frames.h"
#include "core/place/support.h"

namespace weir::place {
namespace {

using graph::Endpoint;
using graph::Flow;
using graph::Node;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

/// The outermost loop of each node of a graph; loops are identified by `frame_name`.
std::vector<int> OutermostLoops(const graph::Definition& graph) {
  std::map<std::string, int> loop_of_name;
  std::vector<int> loop_of(PositionOf(graph.num_nodes()), -1);
  std::vector<int> depth(loop_of.size(), 0);  // loop depth of a node's outputs
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    const auto follow = [&](NodeId input) {
      if (input < 0 || input >= id || depth[input] <= depth[id]) return;
      depth[id] = depth[input];
      loop_of[id] = loop_of[input];
    };
    for (const Endpoint& input : node.inputs()) follow(input.node);
    for (const NodeId control : node.control_inputs()) follow(control);
    const Flow flow = graph::FlowOf(node);
    if (flow == Flow::kExit) depth[id] = std::max(depth[id] - 1, 0);
    if (flow != Flow::kEnter || depth[id]++ > 0) continue;
    const Result<std::string> name = node.attrs().String("frame_name");
    loop_of[id] = loop_of_name.emplace(name.ok() ? *name : "", static_cast<int>(loop_of_name.size())).first->second;
  }
  return loop_of;
}

/// Sets of nodes in the whole graph that must share a device.
class Ties {
 public:
  Ties(const graph::Definition& graph, const std::vector<int>& loop_of) : parent_(PositionOf(graph.num_nodes())) {
    std::iota(parent_.begin(), parent_.end(), 0);
    std::map<int, NodeId> first_of_loop;
    std::map<std::string, NodeId, std::less<>> strangers;  // names of nodes that the graph does not have
    for (NodeId id = 0; id < graph.num_nodes(); ++id) {
      const Node& node = graph.node(id);
      const std::vector<DType>& taken = node.signature().inputs;
      for (size_t k = 0; k < node.inputs().size() && !node.op().traits.handles_from_anywhere; ++k) {
        const Endpoint& input = node.inputs()[k];
        if (input.node < 0 || !TiesToProducer(graph.TypeOf(input), taken[k], !node.device().empty())) continue;
        Tie(id, input.node);
      }
      const int loop = loop_of[id];
      if (loop >= 0) Tie(id, first_of_loop.emplace(loop, id).first->second);
      for (const std::string_view name : ColocatedWith(node)) {
        const Node* const other = graph.Find(name);
        Tie(id, other != nullptr ? other->id() : strangers.emplace(name, id).first->second);
      }
    }
  }

  NodeId Root(NodeId id) {
    while (parent_[id] != id) {
      NodeId& parent = parent_[id];
      parent = parent_[parent];
      id = parent;
    }
    return id;
  }

 private:
  void Tie(NodeId a, NodeId b) { parent_[Root(a)] = Root(b); }

  std::vector<NodeId> parent_;
};

class Widener {
 public:
  Widener(const StepGraph& step, const std::map<NodeId, int>* placed)
      : step_(step), placed_(placed), position_(PositionOf(step.graph->num_nodes()), -1) {
    for (size_t i = 0; i < step.nodes.size(); ++i) {
      const StepNode& node = step.nodes[i];
      if (node.kind == StepNode::Kind::kOp) position_[node.source->id()] = static_cast<int>(i);
    }
  }

  std::optional<StepGraph> Run() {
    FindTied();
    FindNamed();
    if (added_.empty()) return std::nullopt;
    if (loop_of_.empty()) loop_of_ = OutermostLoops(*step_.graph);
    CopyStep();
    int position = static_cast<int>(step_.nodes.size());
    for (const NodeId id : added_) position_[id] = position++;
    for (const NodeId id : added_) Add(step_.graph->node(id));
    return std::move(wide_);
  }

 private:
  bool Runs(NodeId id) const { return position_[id] >= 0; }
  bool Placed(NodeId id) const { return placed_ != nullptr && placed_->contains(id); }

  void FindTied() {
    std::vector<NodeId> states;
    for (const StepNode& node : step_.nodes) {
      if (MakesState(node) && !Placed(node.source->id())) states.push_back(node.source->id());
    }
    if (states.empty()) return;
    loop_of_ = OutermostLoops(*step_.graph);
    Ties ties(*step_.graph, loop_of_);
    std::set<NodeId> roots;
    for (const NodeId id : states) roots.insert(ties.Root(id));
    for (NodeId id = 0; id < step_.graph->num_nodes(); ++id) {
      if (!Runs(id) && roots.contains(ties.Root(id))) added_.insert(id);
    }
  }

  void FindNamed() {
    if (placed_ == nullptr || placed_->empty()) return;
    for (const StepNode& node : step_.nodes) {
      if (node.kind != StepNode::Kind::kOp) continue;
      for (const std::string_view name : ColocatedWith(*node.source)) {
        const Node* const other = step_.graph->Find(name);
        if (other != nullptr && !Runs(other->id()) && Placed(other->id())) added_.insert(other->id());
      }
    }
  }

  void CopyStep() {
    wide_.graph = step_.graph;
    wide_.frames = step_.frames;
    wide_.nodes.reserve(step_.nodes.size() + added_.size());
    for (const StepNode& node : step_.nodes) {
      StepNode& copy = wide_.nodes.emplace_back();
      copy.kind = node.kind;
      copy.source = node.source;
      copy.inputs = node.inputs;
      copy.types = node.types;
      copy.frame = node.kind == StepNode::Kind::kOp ? OutermostFrame(step_, node) : graph::kStepFrame;
      if (copy.frame > graph::kStepFrame) frame_of_.emplace(loop_of_[node.source->id()], copy.frame);
    }
  }

  void Add(const Node& node) {
    StepNode& copy = wide_.nodes.emplace_back();
    copy.source = &node;
    copy.types.assign(node.output_types().begin(), node.output_types().end());
    for (const Endpoint& input : node.inputs()) {
      copy.inputs.push_back({input.node < 0 ? -1 : position_[input.node], input.index});
    }
    const int loop = loop_of_[node.id()];
    if (loop < 0) return;
    if (wide_.frames.empty()) wide_.frames.emplace_back();
    const auto [frame, fresh] = frame_of_.emplace(loop, wide_.frames.end_index());
    if (fresh) wide_.frames.push_back({graph::kStepFrame, {}});
    copy.frame = frame->second;
  }

  const StepGraph& step_;
  const std::map<NodeId, int>* placed_;
  std::vector<int> position_;  // by graph node: position in `wide_`; -1 = absent
  std::set<NodeId> added_;
  std::vector<int> loop_of_;                // by graph node
  std::map<int, graph::FrameId> frame_of_;  // by loop
  StepGraph wide_;
};

}  // namespace

std::optional<StepGraph> WithBystanders(const StepGraph& step, const std::map<NodeId, int>* placed) {
  return Widener(step, placed).Run();
}

}  // namespace weir::place
