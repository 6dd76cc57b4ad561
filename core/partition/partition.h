// Cuts a placed step into one subgraph per device.
#ifndef WEIR_CORE_PARTITION_PARTITION_H_
#define WEIR_CORE_PARTITION_PARTITION_H_

#include <vector>

#include "core/base/status.h"
#include "core/graph/placement.h"
#include "core/graph/step_graph.h"
#include "core/graph/subgraph.h"

namespace weir::partition {

/// Subgraphs ordered by device, the host's (feeds, constants) first; nodes in step order; one Recv per (tensor,
/// receiving device), in the order in which the receiver first needs them. O(V + E). Source: TensorFlow white paper
/// (2015), section 3.2.2.
std::vector<graph::Subgraph> Partition(const graph::StepGraph& step, const graph::Placement& placement);

/// Internal, naming the node, unless every node is in the subgraph of the device that the placement gave it and in no
/// other, and receives each value that another device makes exactly once, from that device. O(V + E).
Status Verify(const graph::StepGraph& step, const graph::Placement& placement,
              const std::vector<graph::Subgraph>& subgraphs);

}  // namespace weir::partition

#endif  // WEIR_CORE_PARTITION_PARTITION_H_
