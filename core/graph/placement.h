// The device of each node of a step.
#ifndef WEIR_CORE_GRAPH_PLACEMENT_H_
#define WEIR_CORE_GRAPH_PLACEMENT_H_

#include <string>
#include <vector>

#include "core/base/indexed.h"
#include "core/graph/endpoint.h"

namespace weir::graph {

/// `device_of[id]` indexes `devices` (full names in device-set order).
struct Placement {
  std::vector<std::string> devices;
  IndexedVector<NodeId, int> device_of;
};

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_PLACEMENT_H_
