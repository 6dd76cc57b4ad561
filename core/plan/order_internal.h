// The order in which a step's nodes run.
#ifndef WEIR_CORE_PLAN_ORDER_INTERNAL_H_
#define WEIR_CORE_PLAN_ORDER_INTERNAL_H_

#include <vector>

#include "core/graph/step_graph.h"

namespace weir::plan {

/// All nodes in an order that respects data and control edges: smallest id first, but nodes that write a variable only
/// when nothing else is ready, so that readers of the old value are done and the update can happen in place. O((V + E)
/// log V), deterministic.
std::vector<graph::NodeId> Order(const graph::StepGraph& step);

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_ORDER_INTERNAL_H_
