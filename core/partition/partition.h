// Cuts a placed step into parts connected only by Send and Recv nodes.
#ifndef WEIR_CORE_PARTITION_PARTITION_H_
#define WEIR_CORE_PARTITION_PARTITION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/graph/part.h"
#include "core/graph/placement.h"
#include "core/graph/step_graph.h"

namespace weir::partition {

/// The cut: edges between devices of different parts.
struct Borders {
  std::vector<int> part_of;  // by device of the placement
  int home = 0;              // the device for nodes without one, and for feeds and constants that are fetched
  bool bfloat16 = false;     // float values cross as their upper 16 bits; the lower ones become 0
  bool late = false;         // nodes as graph::OrderOptions::late has them; a _Recv comes just before its first user
  /// By device: the incarnation of its process, which stands in the keys of the values that it sends. Empty = 1.
  std::vector<uint64_t> incarnations = {};
  /// Values between two other parts than that of `home` go through it.
  bool through_home = false;
};

/// Makes every device a separate part.
Borders BetweenDevices(size_t devices, int home);

/// Returns one graph per non-empty part, ordered by part.
///
/// A value that crosses has one _Send and one _Recv per receiving part, with TensorFlow's attributes and names: `n/_0`,
/// `n/_1`, tensor_name `edge_0_n`. A control edge that crosses is an empty tensor sent after the node. A dead value is
/// sent as dead. Constants and feeds (_Arg) are duplicated in every part that uses them.
///
/// A loop that spans parts runs in each of them for the same number of iterations: each part has a control loop
/// (`_cloop…`) driven by the loop's LoopCond, whose value is sent once per iteration. Enter and NextIteration nodes are
/// moved to the part of their Merge and Exit nodes to the part of their input, so that only values of the current
/// iteration cross.
///
/// With `late`, a _Recv also waits for the nodes that make the operands of the other operands of its first user: its
/// transfer goes on while those are made. Control flow in the step prevents this, since nodes may be dead.
///
/// The nodes of each graph are in an order of the whole step, restricted to the part. Parts that run their nodes in
/// this order cannot deadlock. O((V + E) log V). Errors: InvalidArgument for a loop in several parts without exactly
/// one LoopCond.
Result<std::vector<graph::Part>> Partition(const graph::StepRequest& request, const graph::StepGraph& step,
                                           const graph::Placement& placement, const Borders& borders);

/// Internal, naming the node, unless every node of the step is in exactly one part on its placed device (except Enter,
/// Merge, NextIteration and Exit), and every _Recv has its _Send. O(V log V).
Status Verify(const graph::StepGraph& step, const graph::Placement& placement, std::span<const graph::Part> parts);

}  // namespace weir::partition

#endif  // WEIR_CORE_PARTITION_PARTITION_H_
