// A serial order of the nodes of a step.
#ifndef WEIR_CORE_GRAPH_ORDER_H_
#define WEIR_CORE_GRAPH_ORDER_H_

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/graph/step_graph.h"

namespace weir::graph {

/// True for ops that write a variable: they take it by reference and return it, or take a resource and have no outputs.
bool WritesVariable(const StepGraph& step, const StepNode& node);

/// An item of the order. The items between kLoopBegin and kLoopEnd of a frame run once per iteration. The frame's Enter
/// nodes precede its kLoopBegin.
struct OrderItem {
  enum class Kind : uint8_t { kNode, kLoopBegin, kLoopEnd };
  Kind kind = Kind::kNode;
  int id = -1;  // of the step node or frame
  FrameId frame() const { return FrameId(id); }
};

/// Preferences among nodes that are ready.
struct OrderOptions {
  /// Nodes and loops of one group are kept together where edges allow. Group 0 and empty vectors mean no preference.
  IndexedVector<NodeId, int> group_of_node;
  IndexedVector<FrameId, int> group_of_frame;
  /// Keeps the order of the graph, with a loop at its first node, and ignores groups and `late`. For steps cut by
  /// core/partition: all parts of a step must share one order, or two parts could deadlock.
  bool as_in_graph = false;
  /// Nodes that make more bytes than they let go of run as late as their users allow, others as early as their operands
  /// allow: of the nodes that may come last, the one that frees most, looking back, is put last. Ignores groups.
  bool late = false;
};

/// Orders all nodes so that data and control edges, except those that close loops, are respected and each loop is
/// contiguous. Takes the smallest ready id, preferring the group taken last. Nodes that write a variable come only when
/// nothing else is ready, so that readers of the old value finish first and the update can run in place. O((V + E) log
/// V), deterministic. InvalidArgument for loops that depend on each other's results and for frames nested deeper than
/// 64.
Result<std::vector<OrderItem>> Order(const StepGraph& step, const OrderOptions& options = {});

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_ORDER_H_
