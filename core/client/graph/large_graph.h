/// \file
/// Graphs beyond the 2 GiB of a GraphDef.
#ifndef WEIR_CORE_CLIENT_GRAPH_LARGE_GRAPH_H_
#define WEIR_CORE_CLIENT_GRAPH_LARGE_GRAPH_H_

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/client/graph/graph.h"

namespace weir {

/// Writes the GraphDef `path` and, beside it, the checkpoint PATH.constants with the constants of a megabyte or more.
/// `weir run` and ReadLargeGraph read both; TensorFlow reads the checkpoint, and a graph without such constants.
Status WriteLargeGraph(const Graph& graph, const std::string& path);

/// As Graph::Import, from files of WriteLargeGraph or any GraphDef file.
Status ReadLargeGraph(const std::string& path, Graph& graph, std::string_view prefix = "import");

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_GRAPH_LARGE_GRAPH_H_
