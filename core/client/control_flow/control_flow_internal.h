// How the builders of conds, loops and their gradients add nodes.
#ifndef WEIR_CORE_CLIENT_CONTROL_FLOW_CONTROL_FLOW_INTERNAL_H_
#define WEIR_CORE_CLIENT_CONTROL_FLOW_CONTROL_FLOW_INTERNAL_H_

#include <string_view>
#include <vector>

#include "core/client/control_flow/control_flow.h"
#include "core/client/graph/graph_internal.h"

namespace weir {

/// A node whose attributes follow from its inputs.
Operation AddOp(Graph& graph, std::string_view op, std::vector<Output> inputs, std::string_view name,
                const Where& where);

/// The same beside `value`: of its colocation groups, on its device.
Operation AddBeside(const Output& value, std::string_view op, std::vector<Output> inputs, std::string_view name,
                    const Where& where);

/// Gradients of the data inputs of a cond's Switch or Merge: one per input, one that does not exist where none flows.
/// `dy`: of each output, likewise; dense, and at least one exists. New nodes are named below the current scope and, of
/// the gradient proper, `scope`.
Result<std::vector<Output>> ControlFlowGradients(const Operation& forward, std::vector<Output> dy,
                                                 std::string_view scope, const Where& where);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_CONTROL_FLOW_CONTROL_FLOW_INTERNAL_H_
