// The share of one device in a placed step, and the tensors that cross devices.
#ifndef WEIR_CORE_GRAPH_SUBGRAPH_H_
#define WEIR_CORE_GRAPH_SUBGRAPH_H_

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace weir::graph {

/// A tensor that arrives from another device: one per (tensor, receiving device).
struct Recv {
  Endpoint source;
  int from_device = 0;  // indexes Placement::devices
};

/// Nodes in step order.
struct Subgraph {
  int device = 0;
  std::vector<NodeId> nodes;
  std::vector<Recv> recvs;
};

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_SUBGRAPH_H_
