// Lowers the user's graph to the graph of steps: functions and functional control flow become the nodes of their
// bodies.
#ifndef WEIR_CORE_LOWER_LOWERING_H_
#define WEIR_CORE_LOWER_LOWERING_H_

#include <memory>

#include "core/base/status.h"
#include "core/graph/definition.h"
#include "core/graph/step_graph.h"

namespace weir::lower {

/// Limits on the expansion of calls: a file of a few lines can request any number of nodes.
struct LowerLimits {
  int added_nodes = 1'000'000;  // total of all calls in a graph
  int depth = 64;               // nesting of calls
};

/// A graph without calls that tracks a graph with calls. A call is replaced by the nodes of the function's body, If and
/// Case by Switch and Merge around their branches, While and For by a loop of Enter, Merge, Switch, NextIteration and
/// Exit. All other nodes are copied. Nodes before the first call keep their ids, and a graph without calls is used
/// unchanged. Nodes of a body are named "caller/node", inherit the caller's device where they specify none, and name
/// their function in their origin.
///
/// The side effects of a call happen when the call runs, regardless of which results are used: after all data and
/// control inputs of the call, and before its results and control successors. They are the function's control outputs,
/// or all stateful nodes of a body without control outputs.
///
/// A call that cannot be lowered stays in the graph; only steps that need it get its error.
/// Thread-compatible.
class Lowering {
 public:
  /// The graph is borrowed and may grow.
  explicit Lowering(const graph::Definition& source, LowerLimits limits = {});
  ~Lowering();

  /// Lowers the nodes that were added to the source since the last call.
  void Update();

  /// The graph without calls, as of the last Update. Its address changes once, when the source gets its first call.
  const graph::Definition& graph() const;
  /// The output or node of the lowered graph for `endpoint` or node `id` of the source. A control edge from the node of
  /// a call waits for the whole call.
  graph::Endpoint Of(graph::Endpoint endpoint) const;
  graph::NodeId Of(graph::NodeId id) const;

  /// The error of the first call in the step that could not be lowered; the step must be one of the lowered graph.
  /// Errors name the call and use TensorFlow's texts: those of FunctionBodies::Get and Graph::Add; InvalidArgument for
  /// arguments or results that differ in type or number from the function's; ResourceExhausted beyond the limits;
  /// Unimplemented for RemoteCall, and for SymbolicGradient of a function without a gradient.
  Status Check(const graph::StepGraph& step) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::lower

#endif  // WEIR_CORE_LOWER_LOWERING_H_
