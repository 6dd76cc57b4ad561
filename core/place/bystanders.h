// Nodes that a step does not run and that have a say in where its state lives.
#ifndef WEIR_CORE_PLACE_BYSTANDERS_H_
#define WEIR_CORE_PLACE_BYSTANDERS_H_

#include <map>
#include <optional>

#include "core/graph/step_graph.h"

namespace weir::place {

/// The step's nodes, followed by nodes of its graph that it does not run: those that reference and resource edges,
/// `_class` or a loop tie to state which the step makes and which is not `placed` yet, and placed ones that a `_class`
/// of the step names. Only what constraints look at is filled: kind, source, inputs (node -1 where the maker is neither
/// run nor added), types and the outermost frame. Nothing when there is no such node. `placed` may be null.
std::optional<graph::StepGraph> WithBystanders(const graph::StepGraph& step,
                                               const std::map<graph::NodeId, int>* placed);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_BYSTANDERS_H_
