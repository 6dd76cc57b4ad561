// Graphs as GraphDef messages, for embedding in larger messages.
#ifndef WEIR_CORE_GRAPH_GRAPH_MESSAGE_H_
#define WEIR_CORE_GRAPH_GRAPH_MESSAGE_H_

#include "core/base/status.h"
#include "core/graph/definition.h"
#include "core/graph/graph_def.h"

namespace weir::tf {
class GraphDef;
class NodeDef;
}  // namespace weir::tf

namespace weir::graph {

/// Writes one node of a graph to an empty message.
Status NodeToMessage(const Definition& graph, const Node& node, OutputShapes shapes, tf::NodeDef& def);

/// As ExportGraphDef, to an empty message.
Status GraphToMessage(const Definition& graph, OutputShapes shapes, tf::GraphDef& def);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_GRAPH_MESSAGE_H_
