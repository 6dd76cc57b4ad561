#include "core/graph/step_graph.h"

#include <utility>

namespace weir::graph {

std::vector<NodeId> Keep(StepGraph& step, const std::vector<bool>& kept) {
  std::vector<NodeId> moved(step.nodes.size(), -1);
  NodeId count = 0;
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    if (kept[i]) moved[i] = count++;
  }
  const auto follow = [&](NodeId& id) { id = moved[static_cast<size_t>(id)]; };
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    if (!kept[i]) continue;
    StepNode& node = step.nodes[i];
    for (Endpoint& input : node.inputs) follow(input.node);
    for (NodeId& control : node.control_inputs) follow(control);
    if (moved[i] != static_cast<NodeId>(i)) step.nodes[static_cast<size_t>(moved[i])] = std::move(node);
  }
  step.nodes.resize(static_cast<size_t>(count));
  for (Endpoint& fetch : step.fetches) follow(fetch.node);
  for (NodeId& target : step.targets) follow(target);
  return moved;
}

}  // namespace weir::graph
