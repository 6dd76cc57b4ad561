// Graphs of any size: large constants lie in a checkpoint beside the GraphDef, which protobuf limits to 2 GiB.
#ifndef WEIR_CORE_GRAPH_LARGE_GRAPH_H_
#define WEIR_CORE_GRAPH_LARGE_GRAPH_H_

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "core/graph/graph_def.h"

namespace weir::graph {

/// The attribute that stands for `value` in a node whose constant lies beside the GraphDef: its name there. TensorFlow
/// refuses such a node, which lacks `value`; it can read the checkpoint.
inline constexpr char kBesideAttr[] = "_weir_beside";

/// Constants of fewer bytes stay in the GraphDef.
inline constexpr uint64_t kLeastBesideBytes = uint64_t{1} << 20;

/// Writes the GraphDef `path`, binary, and the checkpoint PATH.constants with the numeric constants of at least
/// `least_bytes` under the names of their nodes (core/io/bundle.h); without such constants there is no checkpoint.
/// Constants of functions stay in the GraphDef. The checkpoint is complete before the GraphDef is replaced. Errors: as
/// ExportGraphDef for what stays, and those of files.
Status WriteLargeGraph(const Definition& graph, const std::string& path, uint64_t least_bytes = kLeastBesideBytes);

/// ImportOptions::constants from PATH.constants, which the first constant opens. Each tensor is read once, whatever the
/// number of nodes that name it, and takes no more memory than its file. NotFound and DataLoss as of a checkpoint.
ConstantFn ConstantsBeside(std::string path);

/// Adds the nodes of a GraphDef that WriteLargeGraph wrote, or any other one; `options.constants` is set here.
Status ReadLargeGraph(const std::string& path, ImportOptions options, Definition& graph);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_LARGE_GRAPH_H_
