// Loops whose iterations may run beside each other: several of them become one.
#ifndef WEIR_CORE_PLAN_UNROLL_INTERNAL_H_
#define WEIR_CORE_PLAN_UNROLL_INTERNAL_H_

#include <map>
#include <vector>

#include "core/base/status.h"
#include "core/graph/placement.h"
#include "core/graph/step_graph.h"

namespace weir::plan {

/// The devices that receive each value that crosses.
using Receivers = std::map<graph::Endpoint, std::vector<int>>;

/// A step as building takes it.
struct PlacedStep {
  graph::StepGraph step;
  graph::Placement placement;
  Receivers receivers;
};

/// How many iterations of a frame's loop may run at once, by its Enter nodes; 1 where iterations cannot be told apart:
/// loop variables that are references, a Merge whose position somebody reads, an Exit of something else than a Switch,
/// values inside that are fetched. O(V).
int64_t MostIterations(const graph::StepGraph& step, int frame);

/// Nodes of the frame and of frames inside it. O(V).
size_t NodesInside(const graph::StepGraph& step, int frame);

/// The same step with `copies` iterations in each turn of a frame's loop. Copy 0 begins with the loop's variables, each
/// other one where the one before has gone on; the last one closes the loop. What leaves comes from the copy that ends
/// it. Frames keep their positions, those inside the copies are added at the end. For copies <= MostIterations.
/// O(copies V log V). Internal for a catalogue without Merge.
Result<PlacedStep> Unroll(const graph::StepGraph& step, const graph::Placement& placement, const Receivers& receivers,
                          int frame, int64_t copies);

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_UNROLL_INTERNAL_H_
