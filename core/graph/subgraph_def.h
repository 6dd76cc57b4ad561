// The parts of a placed step as GraphDefs, for people and tools that look at them.
#ifndef WEIR_CORE_GRAPH_SUBGRAPH_DEF_H_
#define WEIR_CORE_GRAPH_SUBGRAPH_DEF_H_

#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/placement.h"
#include "core/graph/step_graph.h"
#include "core/graph/subgraph.h"

namespace weir::graph {

/// One serialized GraphDef per subgraph, with TensorFlow's names for what a step adds: `_arg_x_0_0` (_Arg) for feeds,
/// `_retval_y_0_0` (_Retval) for fetches, `n/_0` (_Send) and `n/_1` (_Recv) with tensor_name `edge_5_n` where a value
/// crosses. Folded nodes are Consts. A control edge between devices is an empty tensor that crosses, `n/ctrl/_2`
/// (Const), and what waits for it waits for `n/_5` (Identity).
Result<std::vector<std::string>> ExportSubgraphs(const StepRequest& request, const StepGraph& step,
                                                 const Placement& placement, std::span<const Subgraph> subgraphs);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_SUBGRAPH_DEF_H_
