// Whole models as files: MetaGraphDef with collections, in and out.
#ifndef WEIR_CORE_CLIENT_SAVER_META_GRAPH_H_
#define WEIR_CORE_CLIENT_SAVER_META_GRAPH_H_

#include <optional>
#include <string>
#include <string_view>

#include "core/client/graph/graph.h"
#include "core/client/saver/saver.h"
#include "core/graph/meta_info.h"
#include "core/io/restore_report.h"

namespace weir {

/// A serialized MetaGraphDef of the graph. Collections of variables become VariableDefs with the slices of partitioned
/// ones, texts bytes, numbers lists of int64 or float, other entries names. A collection that no file can carry
/// (objects, lists, entries of several kinds) is left out with a line on stderr. `saver`: the nodes of the Saver that
/// goes with it, if one does.
Result<std::string> ExportMetaGraph(Graph& graph, std::optional<graph::SaverNodes> saver = {});

/// Writes the nodes of the graph into `logdir`, which is made when it is missing, as TensorFlow's tf.train.write_graph:
/// as text, or binary. Returns the path.
Result<std::string> WriteGraph(const Graph& graph, const std::string& logdir, const std::string& name,
                               graph::GraphFormat format = graph::GraphFormat::kText);

struct MetaGraphOptions {
  std::string import_scope = {};  // put before names with a "/", made unique; empty = none
  bool clear_devices = false;     // nodes forget the devices that they ask for
};

/// Adds a MetaGraphDef (binary or text) to the graph: nodes and collections, a variable that several collections share
/// being one. Returns what the file says of its saver, under the names that its nodes have here.
Result<graph::MetaInfo> ImportMetaGraph(std::string_view bytes, Graph& graph = Graph::Default(),
                                        const MetaGraphOptions& options = {});
/// The same from a file, which is mapped. It may be replaced by renaming, but must not be overwritten while the graph
/// lives: large constants may borrow its memory.
Result<graph::MetaInfo> ImportMetaGraphFile(const std::string& path, Graph& graph = Graph::Default(),
                                            const MetaGraphOptions& options = {});

/// Adds the graph of a `.meta` file with its collections, and returns the saver that the file names, else one of all
/// variables; none when there is no variable, or none whose name the import scope lets through. The errors are those of
/// ImportMetaGraphFile.
Result<std::optional<Saver>> ImportMetaGraphWithSaver(const std::string& path, Graph& graph = Graph::Default(),
                                                      const MetaGraphOptions& options = {});

/// As TensorFlow's print_tensors_in_checkpoint_file: names and values of all tensors, or of one.
Result<std::string> InspectCheckpoint(const std::string& path, const std::string& tensor_name = "",
                                      bool all_tensors = false);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_SAVER_META_GRAPH_H_
