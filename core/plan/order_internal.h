// The order of a tape.
#ifndef WEIR_CORE_PLAN_ORDER_INTERNAL_H_
#define WEIR_CORE_PLAN_ORDER_INTERNAL_H_

#include <vector>

#include "core/base/status.h"
#include "core/graph/step_graph.h"
#include "core/plan/guards_internal.h"

namespace weir::plan {

/// A place on the tape. What lies between kLoopBegin and kLoopEnd of a frame runs once for every iteration; the frame's
/// Enter nodes stand before its kLoopBegin.
struct TapeItem {
  enum class Kind : uint8_t { kNode, kLoopBegin, kLoopEnd };
  Kind kind = Kind::kNode;
  int id = -1;  // of the step node or the frame
};

/// All nodes in an order that respects data and control edges but those that close loops, each loop in one piece:
/// smallest id first among nodes of the guard that was served last, else smallest id; but nodes that write a variable
/// only when nothing else is ready, so that readers of the old value are done and the update can happen in place.
/// O((V + E) log V), deterministic. InvalidArgument for loops that need each other's results to go on, and for frames
/// nested deeper than 64.
Result<std::vector<TapeItem>> Order(const graph::StepGraph& step, const StepGuards& guards);

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_ORDER_INTERNAL_H_
