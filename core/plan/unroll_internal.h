// Loop unrolling: several iterations, which may run concurrently, become one.
#ifndef WEIR_CORE_PLAN_UNROLL_INTERNAL_H_
#define WEIR_CORE_PLAN_UNROLL_INTERNAL_H_

#include <map>
#include <vector>

#include "core/base/indexed.h"
#include "core/base/status.h"
#include "core/graph/placement.h"
#include "core/graph/step_graph.h"

namespace weir::plan {

/// The devices that receive each crossing value.
using Receivers = std::map<graph::Endpoint, std::vector<int>>;

/// A placed step as input of the plan builder.
struct PlacedStep {
  graph::StepGraph step;
  graph::Placement placement;
  Receivers receivers;
};

/// Maximum number of concurrent iterations of a frame's loop according to its Enter nodes. 1 if iterations cannot be
/// separated: for loop variables that are references, a Merge with a used value_index, an Exit of anything but a
/// Switch, and inner values that are fetched, sent or received. O(V).
int64_t MostIterations(const graph::StepGraph& step, FrameId frame);

/// Number of nodes in the frame and nested frames. O(V).
size_t NodesInside(const graph::StepGraph& step, FrameId frame);

/// The critical path of `copies` iterations of the frame's loop over their total time, if iterations start as soon as
/// the loop variables that they read have their values. `node_ns`: time of each node of the step. Writes of a variable
/// and calls of a stateful op keep their order. O(copies V).
double CriticalShare(const graph::StepGraph& step, FrameId frame, int64_t copies,
                     const IndexedVector<graph::NodeId, double>& node_ns);

/// The step with the frame's loop unrolled by `copies`. Copy 0 reads the loop variables, copy k the next values of copy
/// k-1; the last copy feeds NextIteration. Exits take their value from the copy whose condition failed. Frames keep
/// their indices; nested frames of the copies are appended. Requires copies <= MostIterations. O(copies V log V).
/// Internal if the registry has no Merge.
Result<PlacedStep> Unroll(const graph::StepGraph& step, const graph::Placement& placement, const Receivers& receivers,
                          FrameId frame, int64_t copies);

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_UNROLL_INTERNAL_H_
