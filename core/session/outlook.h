// The steps that will use the state of a graph, for choosing its device before they run.
#ifndef WEIR_CORE_SESSION_OUTLOOK_H_
#define WEIR_CORE_SESSION_OUTLOOK_H_

#include <map>
#include <optional>

#include "core/graph/step_graph.h"

namespace weir::session {

/// The request of a step that stands for the use of the variables that `step` creates: all nodes that update variables
/// by values computed from variables or placeholders, or, if the graph has none, all nodes that compute from the
/// variables' values and have no such users. Placeholders that `step` does not feed have their declared shapes. Strings
/// do not count as values, so that saving and restoring are left out.
///
/// nullopt if `step` creates no variable that is missing in `known`, if it is such a step itself, or if nothing in the
/// graph uses its variables. O(nodes of the graph).
std::optional<graph::StepRequest> UseOfState(const graph::StepGraph& step, const std::map<graph::NodeId, int>& known);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_OUTLOOK_H_
