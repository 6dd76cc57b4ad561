// The graph of an op case with its gradients.
#ifndef WEIR_TOOLS_WEIR_CASES_GRADIENT_GRAPH_H_
#define WEIR_TOOLS_WEIR_CASES_GRADIENT_GRAPH_H_

#include <vector>

#include "core/base/status.h"
#include "core/client/graph/graph.h"
#include "core/client/session/session.h"
#include "tools/weir/cases/case_table.h"

namespace weir::cases {

/// Adds the op of the row, and its gradients by all inputs that are differentiated, which are fed. Returns the output
/// and those gradients that exist.
Result<std::vector<Output>> AddGradients(const OpCase& row, Graph& graph, Feeds* feeds);

}  // namespace weir::cases

#endif  // WEIR_TOOLS_WEIR_CASES_GRADIENT_GRAPH_H_
