// The part of a step that one process or device runs.
#ifndef WEIR_CORE_GRAPH_PART_H_
#define WEIR_CORE_GRAPH_PART_H_

#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/definition.h"
#include "core/graph/step_graph.h"

namespace weir::graph {

/// A part of a step as a separate graph; all its nodes run. Values from other parts enter through _Recv and leave
/// through _Send; feeds are _Arg and fetches are _Retval. It can be sent to another process as a GraphDef.
struct Part {
  std::string device;  // full name of the first device with nodes in the part
  Definition graph;
};

/// The inputs and outputs of a part's run.
struct PartRequest {
  StepRequest request;
  std::vector<int> feeds;    // by feed of `request`: its position among the feeds of the whole step
  std::vector<int> fetches;  // by fetch
};

/// Derives the request from a part's graph: feeds are its _Arg nodes, fetches the inputs of its _Retval nodes, targets
/// all nodes without users. `fed` are the feeds of the whole step and supply shapes; shapes of later feeds are unknown.
/// O(V + E). InvalidArgument if two _Arg or two _Retval nodes have one index.
Result<PartRequest> RequestOfPart(const Definition& graph, std::span<const FeedSpec> fed = {});

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_PART_H_
