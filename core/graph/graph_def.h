// GraphDef import and export, binary and text, with TensorFlow's checks.
#ifndef WEIR_CORE_GRAPH_GRAPH_DEF_H_
#define WEIR_CORE_GRAPH_GRAPH_DEF_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/graph/definition.h"
#include "core/graph/endpoint.h"

namespace weir::graph {

/// The value of a constant that lies beside the file, by its name there.
using ConstantFn = std::function<Result<Tensor>(std::string_view name)>;

struct ImportOptions {
  std::string prefix;                 // prepended to every name with a "/", if not empty
  bool rename_taken = false;          // rename nodes whose names are taken to the first free "_k" instead of failing
  bool allow_internal_names = false;  // names starting with "_"
  bool allow_unknown_ops = false;     // load nodes of unknown ops, which cannot run, and those of kUnfitAttr
  uint64_t max_expansion_bytes = uint64_t{2} << 30;  // limit on memory of constants beyond the file size
  /// Keeps the imported bytes alive, which then must not change: large constants that lie aligned in them borrow them.
  /// Null: constants are copied.
  std::shared_ptr<const void> owner = nullptr;
  /// For nodes with kBesideAttr (large_graph.h), which are InvalidArgument without it.
  ConstantFn constants = nullptr;
};

/// Parses a GraphDef, binary or text (detected by content), and adds its nodes to `graph`, which is unchanged on error.
/// Unknown attributes are kept without checks; missing ones get defaults. Nodes may come in any order and keep the
/// order of the file as far as edges allow. Inputs may name existing nodes of the graph. The file's functions are
/// merged into the graph's (FunctionLibrary::Merge); an op may be the name of a function. Errors: InvalidArgument with
/// TensorFlow's texts, naming the node; NotFound for an unknown op; Unimplemented for a removed op. Limits: 2 GiB, 10
/// million nodes, nesting depth 100.
Status ImportGraphDef(std::string_view bytes, const ImportOptions& options, Definition& graph);

/// Creates a graph over `ops` from bytes.
Result<Definition> ParseGraph(std::string_view bytes, const op::OpRegistry& ops, const ImportOptions& options = {});

/// Whether to write the attribute `_output_shapes`, which viewers print on edges, to nodes and those of functions.
enum class OutputShapes { kOmit, kWrite };

/// Writes nodes in id order with canonical inputs ("a", "a:1", "^c") and explicit default attributes, as TensorFlow
/// does. The bytes are deterministic. ResourceExhausted above protobuf's 2 GiB, naming the five largest nodes;
/// FailedPrecondition for a constant outside host memory.
Result<std::string> ExportGraphDef(const Definition& graph, GraphFormat format = GraphFormat::kBinary,
                                   OutputShapes shapes = OutputShapes::kOmit);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_GRAPH_DEF_H_
