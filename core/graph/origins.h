// Places in model code where nodes were made, as GraphDef files carry them (GraphDef.debug_info).
#ifndef WEIR_CORE_GRAPH_ORIGINS_H_
#define WEIR_CORE_GRAPH_ORIGINS_H_

#include <string>
#include <string_view>
#include <unordered_map>

#include "core/base/status.h"
#include "core/graph/graph.h"

namespace weir::tf {
class GraphDebugInfo;
}

namespace weir::graph {

/// Node name -> "file:line", from a serialized GraphDebugInfo: the innermost frame of each node's trace. References to
/// files and frames that are not there are left out. InvalidArgument for malformed bytes.
Result<std::unordered_map<std::string, std::string>> ReadOrigins(std::string_view debug_info);

/// The origins of all nodes that have one, into an empty message.
void WriteOrigins(const Graph& graph, tf::GraphDebugInfo& info);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_ORIGINS_H_
