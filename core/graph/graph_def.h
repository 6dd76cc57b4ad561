// GraphDef in and out: binary, text, and the checks that TensorFlow makes.
#ifndef WEIR_CORE_GRAPH_GRAPH_DEF_H_
#define WEIR_CORE_GRAPH_GRAPH_DEF_H_

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/graph/graph.h"

namespace weir::graph {

struct ImportOptions {
  std::string prefix;           // put before every name with a "/", when not empty
  bool allow_internal_names = false;
};

/// Parses a GraphDef, binary or text (told apart by content), and adds its nodes to `graph`, which stays as it was on
/// error. Unknown attributes are ignored, missing ones take defaults, node order is free.
/// Errors: InvalidArgument with TensorFlow's texts, naming the node; NotFound for an unknown op; Unimplemented for a
/// removed op. The input is bounded: at most 2 GiB, nesting 100.
Status ImportGraphDef(std::string_view bytes, const ImportOptions& options, Graph& graph);

/// A graph from bytes, over `ops`.
Result<Graph> ParseGraph(std::string_view bytes, const op::OpRegistry& ops);

enum class GraphFormat { kBinary, kText };

/// Nodes in id order, inputs canonical ("a", "a:1", "^c"), default-valued attributes written out as TensorFlow does.
/// The same graph gives the same bytes.
std::string ExportGraphDef(const Graph& graph, GraphFormat format = GraphFormat::kBinary);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_GRAPH_DEF_H_
