// Whole models as files: MetaGraphDef with collections, in and out.
#ifndef WEIR_CORE_CLIENT_META_GRAPH_H_
#define WEIR_CORE_CLIENT_META_GRAPH_H_

#include <optional>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/client/graph.h"
#include "core/graph/meta_graph.h"

namespace weir {

/// A serialized MetaGraphDef of the graph: variables as VariableDef, other entries of collections by name, texts as
/// bytes. `saver`: the nodes of the Saver that goes with it, if one does.
Result<std::string> ExportMetaGraph(Graph& graph, std::optional<graph::SaverNodes> saver = {});

/// Adds a MetaGraphDef (binary or text) to the graph: nodes, collections, and variables that can be asked for again.
/// Names get `prefix` + "/" when it is not empty. Returns what the file says of its saver.
Result<graph::MetaInfo> ImportMetaGraph(std::string_view bytes, Graph& graph = Graph::Default(),
                                        std::string_view prefix = "");
/// The same from a file.
Result<graph::MetaInfo> ImportMetaGraphFile(const std::string& path, Graph& graph = Graph::Default(),
                                            std::string_view prefix = "");

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_META_GRAPH_H_
