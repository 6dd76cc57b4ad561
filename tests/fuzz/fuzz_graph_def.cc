// Arbitrary bytes as a GraphDef, binary or text: import fails, or the graph survives export and import. Lowering its
// calls succeeds or fails with an error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/graph/graph_def.h"
#include "core/lower/lowering.h"
#include "core/ops/declare_all.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const weir::Result<const weir::op::OpRegistry*> ops = weir::ops::Catalogue();
  if (!ops.ok()) std::abort();
  const weir::Result<weir::graph::Definition> graph =
      weir::graph::ParseGraph(std::string_view(reinterpret_cast<const char*>(data), size), **ops);
  if (!graph.ok()) return 0;
  const weir::Result<std::string> bytes = weir::graph::ExportGraphDef(*graph);
  if (!bytes.ok()) return 0;
  const weir::Result<weir::graph::Definition> again = weir::graph::ParseGraph(*bytes, **ops);
  if (!again.ok() || again->num_nodes() != graph->num_nodes()) std::abort();
  weir::lower::Lowering lowering(*graph, {.added_nodes = 10'000});
  lowering.Update();
  for (weir::graph::NodeId id = 0; id < graph->num_nodes(); ++id) {
    if (!lowering.graph().Has(lowering.Of(id))) std::abort();
    for (int i = 0; i < graph->node(id).num_outputs(); ++i) {
      if (!lowering.graph().Has(lowering.Of(weir::graph::Endpoint{id, i}))) std::abort();
    }
  }
  return 0;
}
