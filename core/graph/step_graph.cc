#include "core/graph/step_graph.h"

#include <utility>

namespace weir::graph {

IndexedVector<NodeId, NodeId> Keep(StepGraph& step, const IndexedVector<NodeId, bool>& kept) {
  IndexedVector<NodeId, NodeId> moved(step.nodes.size(), -1);
  NodeId count = 0;
  for (const NodeId id : step.nodes.indices()) {
    if (kept[id]) moved[id] = count++;
  }
  const auto follow = [&](NodeId& id) { id = moved[id]; };
  for (const NodeId id : step.nodes.indices()) {
    if (!kept[id]) continue;
    StepNode& node = step.nodes[id];
    for (Endpoint& input : node.inputs) follow(input.node);
    for (NodeId& control : node.control_inputs) follow(control);
    if (moved[id] != id) step.nodes[moved[id]] = std::move(node);
  }
  step.nodes.resize(PositionOf(count));
  for (Endpoint& fetch : step.fetches) follow(fetch.node);
  for (NodeId& target : step.targets) follow(target);
  return moved;
}

}  // namespace weir::graph
