// Graph nodes outside a step that constrain the placement of its state.
#ifndef WEIR_CORE_PLACE_BYSTANDERS_H_
#define WEIR_CORE_PLACE_BYSTANDERS_H_

#include <map>
#include <optional>

#include "core/graph/step_graph.h"

namespace weir::place {

/// The step's nodes followed by bystanders: nodes of its graph that the step does not run, but that must be colocated
/// (by reference or resource edges, `_class`, or a loop) with state that the step creates and that is not yet in
/// `placed`; also placed nodes named by a `_class` of the step. Only the fields that constraints use are set: kind,
/// source, inputs (node -1 for absent producers), types and the outermost frame. Nullopt if there are no bystanders.
/// `placed` may be null.
std::optional<graph::StepGraph> WithBystanders(const graph::StepGraph& step,
                                               const std::map<graph::NodeId, int>* placed);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_BYSTANDERS_H_
