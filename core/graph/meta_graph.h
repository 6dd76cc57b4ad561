// MetaGraphDef in and out: a graph with its collections and the nodes of its saver.
#ifndef WEIR_CORE_GRAPH_META_GRAPH_H_
#define WEIR_CORE_GRAPH_META_GRAPH_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/graph/graph_def.h"

namespace weir::graph {

/// SaverDef: the nodes that save and restore, and the habits of the saver.
struct SaverNodes {
  std::string filename_tensor;  // "save/Const:0"
  std::string save_tensor;      // "save/control_dependency:0"
  std::string restore_op;       // "save/restore_all"
  int32_t max_to_keep = 5;
  bool sharded = false;
  float keep_checkpoint_every_n_hours = 10000;
};

/// What a MetaGraphDef says beside the graph and its collections.
struct MetaInfo {
  std::string version;
  std::vector<std::string> tags;
  std::optional<SaverNodes> saver;
};

/// A MetaGraphDef with the definitions of the ops that the graph uses. A collection is written as the kind of its first
/// item; InvalidArgument when another item is of another kind. Otherwise the errors of ExportGraphDef.
Result<std::string> ExportMetaGraph(const Graph& graph, const MetaInfo& info,
                                    GraphFormat format = GraphFormat::kBinary);

/// Adds the graph of a MetaGraphDef, binary or text, and its collections, whose items go after those that are there.
/// With a prefix, names in collections, in the variables that they describe, and in the saver get it too.
/// The errors are those of ImportGraphDef; on error `graph` stays as it was.
Result<MetaInfo> ImportMetaGraph(std::string_view bytes, const ImportOptions& options, Graph& graph);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_META_GRAPH_H_
