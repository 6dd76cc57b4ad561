// MetaGraphDef import and export: a graph with its collections and saver nodes.
#ifndef WEIR_CORE_GRAPH_META_GRAPH_H_
#define WEIR_CORE_GRAPH_META_GRAPH_H_

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/graph/definition.h"
#include "core/graph/graph_def.h"
#include "core/graph/meta_info.h"

namespace weir::graph {

/// Writes a MetaGraphDef including the definitions of the ops in use. The kind of a collection is that of its first
/// item; InvalidArgument if another item differs. Otherwise errors as in ExportGraphDef.
Result<std::string> ExportMetaGraph(const Definition& graph, const MetaInfo& info,
                                    GraphFormat format = GraphFormat::kBinary);

/// Adds the graph of a MetaGraphDef, binary or text, and appends its collection items to those of `graph`. A prefix
/// also applies to names in collections, in the variables that they describe, and in the saver. Errors as in
/// ImportGraphDef; on error `graph` is unchanged.
Result<MetaInfo> ImportMetaGraph(std::string_view bytes, const ImportOptions& options, Definition& graph);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_META_GRAPH_H_
