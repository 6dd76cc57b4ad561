#include "core/graph/part.h"

#include <limits>
#include <map>

#include "core/base/errors.h"
#include "core/graph/frames.h"

namespace weir::graph {
namespace {

/// Argument or result nodes by their attribute `index`.
Result<std::map<int64_t, NodeId>> ByIndex(const Definition& graph, Flow flow) {
  std::map<int64_t, NodeId> found;
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (FlowOf(node) != flow) continue;
    Result<int64_t> index = node.attrs().Int("index");
    if (!index.ok()) return AtNode(index.status(), node);
    if (*index > std::numeric_limits<int>::max()) {
      return AtNode(InvalidArgument("{} '{}' has index {}, which is too large", node.op().name, node.name(), *index),
                    node);
    }
    const auto [first, fresh] = found.emplace(*index, id);
    if (fresh) continue;
    return AtNode(InvalidArgument("{} '{}' and '{}' have the same index {}", node.op().name,
                                  graph.node(first->second).name(), node.name(), *index),
                  node);
  }
  return found;
}

}  // namespace

Result<PartRequest> RequestOfPart(const Definition& graph, std::span<const FeedSpec> fed) {
  PartRequest part;
  WEIR_ASSIGN(const auto arguments, ByIndex(graph, Flow::kArgument));
  for (const auto& [index, id] : arguments) {
    const auto position = static_cast<size_t>(index);
    const PartialShape shape = position < fed.size() ? fed[position].shape : PartialShape();
    part.request.feeds.push_back({{id, 0}, graph.TypeOf({id, 0}), shape});
    part.feeds.push_back(static_cast<int>(index));
  }
  WEIR_ASSIGN(const auto results, ByIndex(graph, Flow::kResult));
  for (const auto& [index, id] : results) {
    part.request.fetches.push_back(graph.node(id).inputs()[0]);
    part.fetches.push_back(static_cast<int>(index));
  }
  std::vector<bool> used(static_cast<size_t>(graph.num_nodes()), false);
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    for (const Endpoint& input : graph.node(id).inputs()) used[static_cast<size_t>(input.node)] = true;
    for (const NodeId control : graph.node(id).control_inputs()) used[static_cast<size_t>(control)] = true;
  }
  for (const auto& [index, id] : arguments) used[static_cast<size_t>(id)] = true;  // set by the caller
  for (const auto& [index, id] : results) used[static_cast<size_t>(id)] = true;    // their inputs are fetched
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    if (!used[static_cast<size_t>(id)]) part.request.targets.push_back(id);
  }
  return part;
}

}  // namespace weir::graph
