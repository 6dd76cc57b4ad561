// Any bytes as a GraphDef, binary or text: an answer or an error, and what was accepted goes out and comes back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/graph/graph_def.h"
#include "core/ops/declare_all.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const weir::Result<const weir::op::OpRegistry*> ops = weir::ops::Catalogue();
  if (!ops.ok()) std::abort();
  const weir::Result<weir::graph::Graph> graph =
      weir::graph::ParseGraph(std::string_view(reinterpret_cast<const char*>(data), size), **ops);
  if (!graph.ok()) return 0;
  const weir::Result<std::string> bytes = weir::graph::ExportGraphDef(*graph);
  if (!bytes.ok()) return 0;
  const weir::Result<weir::graph::Graph> again = weir::graph::ParseGraph(*bytes, **ops);
  if (!again.ok() || again->num_nodes() != graph->num_nodes()) std::abort();
  return 0;
}
