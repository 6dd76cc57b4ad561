// A graph for viewers that take no large ones: scopes stand as single nodes.
#ifndef WEIR_CORE_GRAPH_COLLAPSED_H_
#define WEIR_CORE_GRAPH_COLLAPSED_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/base/status.h"
#include "core/graph/definition.h"

namespace weir::graph {

struct CollapseOptions {
  size_t most_nodes = 20'000;                                           // at least 1
  size_t most_attr_bytes = 1'024;                                       // attributes of nodes with more are left out
  std::unordered_map<std::string_view, std::string_view> devices = {};  // by node; they win over requested ones
};

/// A GraphDef with at most `most_nodes` nodes and the edges between them. It is for display: it cannot be imported.
///
/// Scopes are opened from the outermost inwards, those with few parts first, as long as there is room; nodes in open
/// scopes stay as they are, with their devices and shapes. A closed scope is one node "SCOPE/collapsed" of op
/// "Collapsed", the nodes of one op directly in a scope with too many of them are "SCOPE/OP_nodes", and scopes beside
/// each other for which there is no room are "SCOPE/scopes". These have the device of most of their nodes, and the
/// attributes `nodes` and `ops`, a list such as "MatMul 12". Inputs are without repetitions. Function bodies are left
/// out if they have more nodes than that in all. O(nodes + edges) but for logarithms.
Result<std::string> ExportCollapsed(const Definition& graph, const CollapseOptions& options = {});

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_COLLAPSED_H_
