// Assigns nodes to parts and finds the edges that cross.
#include <algorithm>
#include <set>

#include "core/base/errors.h"
#include "core/partition/cut_internal.h"

namespace weir::partition {
namespace {

using graph::Endpoint;
using graph::Flow;
using graph::FlowOf;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

class Finder {
 public:
  Finder(const StepGraph& step, const graph::Placement& placement, const Borders& borders)
      : step_(step), borders_(borders) {
    cut_.home = borders.home;
    cut_.home_part = borders.part_of[PositionOf(borders.home)];
    cut_.device_of = placement.device_of;
    for (int& device : cut_.device_of) device = device < 0 ? borders.home : device;
    cut_.part_of.assign(step.nodes.size(), Cut::kEverywhere);
    const size_t frames = step.frame_count();
    cut_.loops.resize(frames);
    cut_.conditions.assign(frames, -1);
    cut_.enters.assign(frames, -1);
  }

  Result<Cut> Run() {
    ChooseParts();
    WEIR_TRY(FindLoops());
    for (size_t i = 0; i < step_.nodes.size(); ++i) FindCrossings(static_cast<NodeId>(i));
    for (const graph::FrameId f : cut_.loops.indices()) {
      if (f == graph::kStepFrame) continue;
      if (cut_.loops[f].empty()) continue;
      for (const auto& [part, device] : cut_.loops[f]) Receive({cut_.conditions[f], 0}, part, device);
    }
    return std::move(cut_);
  }

 private:
  int& PartOf(NodeId id) { return cut_.part_of[id]; }
  int& DeviceOf(NodeId id) { return cut_.device_of[id]; }
  void MoveTo(NodeId id, NodeId beside) {
    PartOf(id) = PartOf(beside);
    DeviceOf(id) = DeviceOf(beside);
  }
  bool IsOp(NodeId id) const { return step_.node(id).kind == StepNode::Kind::kOp; }

  void ChooseParts() {
    for (const NodeId id : step_.nodes.indices()) {
      const StepNode& node = step_.node(id);
      if (node.kind != StepNode::Kind::kOp) continue;
      PartOf(id) = borders_.part_of[PositionOf(DeviceOf(id))];
      if (FlowOf(node) == Flow::kExit && IsOp(node.inputs[0].node)) MoveTo(id, node.inputs[0].node);
    }
    for (const NodeId id : step_.nodes.indices()) GatherVariable(id);
  }

  /// Moves the Enter and NextIteration nodes of a loop variable to the part of its Merge. The Merge takes one of their
  /// values per iteration; a Recv could not wait for both.
  void GatherVariable(NodeId id) {
    const StepNode& node = step_.node(id);
    const auto returns = [&](const Endpoint& input) { return graph::IsBackEdge(step_, node, input); };
    if (std::none_of(node.inputs.begin(), node.inputs.end(), returns)) return;
    for (const Endpoint& input : node.inputs) {  // an Enter may have several Merge users
      if (FlowOf(step_.node(input.node)) == Flow::kEnter && gathered_.contains(input.node)) MoveTo(id, input.node);
    }
    for (const Endpoint& input : node.inputs) {
      if (!returns(input) && FlowOf(step_.node(input.node)) != Flow::kEnter) continue;
      MoveTo(input.node, id);
      gathered_.insert(input.node);
    }
  }

  Status FindLoops() {
    IndexedVector<graph::FrameId, int> conditions(cut_.loops.size(), 0);
    for (const NodeId id : step_.nodes.indices()) {
      const StepNode& node = step_.node(id);
      if (node.kind != StepNode::Kind::kOp) continue;
      for (graph::FrameId frame = node.frame; frame > graph::kStepFrame; frame = step_.ParentOf(frame)) {
        cut_.loops[frame].emplace(PartOf(id), DeviceOf(id));
      }
      if (FlowOf(node) == Flow::kEnter) cut_.enters[node.frame] = id;
      if (FlowOf(node) != Flow::kLoopCond) continue;
      cut_.conditions[node.frame] = id;
      ++conditions[node.frame];
    }
    for (const graph::FrameId f : cut_.loops.indices()) {
      if (f == graph::kStepFrame) continue;
      if (cut_.loops[f].size() <= 1) {
        cut_.loops[f].clear();
        continue;
      }
      if (borders_.through_home) cut_.loops[f].emplace(cut_.home_part, cut_.home);
      if (conditions[f] != 1) {
        return InvalidArgument("A cross-device loop must have a pivot predicate: {} (it has {} LoopCond nodes)",
                               step_.frames[f].name, conditions[f]);
      }
    }
    return Status();
  }

  void Receive(Endpoint value, int part, int device) {
    if (!IsOp(value.node) || PartOf(value.node) == part) return;
    cut_.values[value].emplace(part, device);
    if (GoesThroughHome(value.node, part)) cut_.values[value].emplace(cut_.home_part, cut_.home);
  }

  bool GoesThroughHome(NodeId from, int to) const {
    return borders_.through_home && to != cut_.home_part && cut_.part_of[from] != cut_.home_part;
  }

  void FindCrossings(NodeId id) {
    if (!IsOp(id)) return;
    const StepNode& node = step_.node(id);
    for (const Endpoint& input : node.inputs) Receive(input, PartOf(id), DeviceOf(id));
    for (const NodeId control : node.control_inputs) {
      if (!IsOp(control) || PartOf(control) == PartOf(id)) continue;
      cut_.controls[control].emplace(PartOf(id), DeviceOf(id));
      if (GoesThroughHome(control, PartOf(id))) cut_.controls[control].emplace(cut_.home_part, cut_.home);
    }
  }

  const StepGraph& step_;
  const Borders& borders_;
  std::set<NodeId> gathered_;
  Cut cut_;
};

}  // namespace

Result<Cut> FindCut(const StepGraph& step, const graph::Placement& placement, const Borders& borders) {
  return Finder(step, placement, borders).Run();
}

}  // namespace weir::partition
