// Control flow in the style of TensorFlow 1: what its ops do with frames, and which frame each node of a step runs in.
#ifndef WEIR_CORE_GRAPH_FRAMES_H_
#define WEIR_CORE_GRAPH_FRAMES_H_

#include <cstdint>

#include "core/base/status.h"
#include "core/graph/step_graph.h"
#include "core/op/op_def.h"

namespace weir::graph {

/// What an op means to the scheduler. The reference forms (RefSwitch, …) count as the plain ones.
enum class Flow : uint8_t { kPlain, kSwitch, kMerge, kEnter, kExit, kNextIteration, kLoopCond, kTrigger };

Flow FlowOf(const op::OpDef& op);
/// Of a node of a step; feeds and constants are plain.
Flow FlowOf(const StepNode& node);

/// The edge that closes a loop: from NextIteration into Merge, the only one that may run against the order of a step.
bool IsBackEdge(const StepGraph& step, const StepNode& to, const Endpoint& from);

/// Fills StepGraph::frames and StepNode::frame. Frames are told apart by parent and `frame_name`; an Enter counts to
/// the frame that it opens, an Exit to the one that it leaves. Source: "Implementation of Control Flow in TensorFlow",
/// 2017. Errors: InvalidArgument, naming the node, for inputs from different frames, an Exit or NextIteration outside
/// any frame, and a Merge without inputs or with back edges only.
Status FindFrames(StepGraph& step);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_FRAMES_H_
