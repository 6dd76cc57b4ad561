// Graphs as GraphDef messages, for embedding in larger messages.
#ifndef WEIR_CORE_GRAPH_GRAPH_MESSAGE_H_
#define WEIR_CORE_GRAPH_GRAPH_MESSAGE_H_

#include <functional>
#include <string_view>

#include "core/base/status.h"
#include "core/graph/definition.h"
#include "core/graph/graph_def.h"

namespace weir::tf {
class GraphDef;
class NodeDef;
}  // namespace weir::tf

namespace weir::graph {

/// Called for each tensor of a node's attributes: true if it is kept elsewhere. The message then has kBesideAttr
/// (large_graph.h) with the node's name instead of the attribute.
using PutAside = std::function<Result<bool>(const Node& node, std::string_view attr, const Tensor& tensor)>;

/// Writes one node of a graph to an empty message.
Status NodeToMessage(const Definition& graph, const Node& node, OutputShapes shapes, tf::NodeDef& def,
                     const PutAside& aside = nullptr);

/// As ExportGraphDef, to an empty message.
Status GraphToMessage(const Definition& graph, OutputShapes shapes, tf::GraphDef& def);
Status GraphToMessage(const Definition& graph, OutputShapes shapes, const PutAside& aside, tf::GraphDef& def);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_GRAPH_MESSAGE_H_
