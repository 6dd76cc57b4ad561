// Graphs as GraphDef messages, for those who put them into larger messages.
#ifndef WEIR_CORE_GRAPH_GRAPH_MESSAGE_H_
#define WEIR_CORE_GRAPH_GRAPH_MESSAGE_H_

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/graph/graph_def.h"

namespace weir::tf {
class GraphDef;
class NodeDef;
}

namespace weir::graph {

/// One node of a graph, into an empty message.
Status NodeToMessage(const Graph& graph, const Node& node, OutputShapes shapes, tf::NodeDef& def);

/// ExportGraphDef into an empty message.
Status GraphToMessage(const Graph& graph, OutputShapes shapes, tf::GraphDef& def);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_GRAPH_MESSAGE_H_
