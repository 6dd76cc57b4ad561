// GraphDef in and out: binary, text, and the checks that TensorFlow makes.
#ifndef WEIR_CORE_GRAPH_GRAPH_DEF_H_
#define WEIR_CORE_GRAPH_GRAPH_DEF_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/graph/graph.h"

namespace weir::graph {

struct ImportOptions {
  std::string prefix;                 // put before every name with a "/", when not empty
  bool rename_taken = false;          // a name that the graph has gets the first free "_k", instead of an error
  bool allow_internal_names = false;  // names that begin with "_"
  bool allow_unknown_ops = false;     // load nodes of unknown ops and function calls, to be looked at but not run
  uint64_t max_expansion_bytes = uint64_t{2} << 30;  // memory that constants may take beyond the bytes of the file
};

/// Parses a GraphDef, binary or text (told apart by content), and adds its nodes to `graph`, which stays as it was on
/// error. Unknown attributes are ignored but kept, missing ones take defaults, node order is free; nodes come out in
/// the order of the file as far as edges allow. Inputs may name nodes that were in the graph before. Errors:
/// InvalidArgument with TensorFlow's texts, naming the node; NotFound for an unknown op; Unimplemented for a removed
/// op. The input is bounded: at most 2 GiB, 10 million nodes, nesting 100.
Status ImportGraphDef(std::string_view bytes, const ImportOptions& options, Graph& graph);

/// A graph from bytes, over `ops`.
Result<Graph> ParseGraph(std::string_view bytes, const op::OpRegistry& ops, const ImportOptions& options = {});

enum class GraphFormat { kBinary, kText };
/// Whether nodes get the attribute `_output_shapes`, which viewers print on edges.
enum class OutputShapes { kOmit, kWrite };

/// Nodes in id order, inputs canonical ("a", "a:1", "^c"), default-valued attributes written out as TensorFlow does.
/// The same graph gives the same bytes. ResourceExhausted beyond protobuf's 2 GiB, naming the five largest nodes;
/// FailedPrecondition for a constant outside host memory.
Result<std::string> ExportGraphDef(const Graph& graph, GraphFormat format = GraphFormat::kBinary,
                                   OutputShapes shapes = OutputShapes::kOmit);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_GRAPH_DEF_H_
