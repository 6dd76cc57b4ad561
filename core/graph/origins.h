// Source locations of nodes in model code, as stored in GraphDef files (GraphDef.debug_info).
#ifndef WEIR_CORE_GRAPH_ORIGINS_H_
#define WEIR_CORE_GRAPH_ORIGINS_H_

#include <string>
#include <string_view>
#include <unordered_map>

#include "core/base/status.h"
#include "core/graph/definition.h"

namespace weir::tf {
class GraphDebugInfo;
}

namespace weir::graph {

/// Maps node names to "file:line", the innermost frame of the node's trace in a serialized GraphDebugInfo. Skips
/// references to missing files and frames. InvalidArgument for malformed bytes.
Result<std::unordered_map<std::string, std::string>> ReadOrigins(std::string_view debug_info);

/// Writes the origins of all nodes that have one to an empty message.
void WriteOrigins(const Definition& graph, tf::GraphDebugInfo& info);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_ORIGINS_H_
