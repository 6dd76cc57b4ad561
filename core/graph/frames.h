// TensorFlow 1 control flow: the effect of its ops on frames, and the frame of each node of a step.
#ifndef WEIR_CORE_GRAPH_FRAMES_H_
#define WEIR_CORE_GRAPH_FRAMES_H_

#include "core/base/status.h"
#include "core/graph/step_graph.h"
#include "core/op/op_def.h"

namespace weir::graph {

using op::Flow;

/// The control-flow role of a graph node.
inline Flow FlowOf(const Node& node) { return node.op().traits.flow; }
/// The control-flow role of a step node; feeds and constants are kPlain.
Flow FlowOf(const StepNode& node);

/// True for the edge that closes a loop, from NextIteration into Merge. Only such edges may go against the step order.
bool IsBackEdge(const StepGraph& step, const StepNode& to, const Endpoint& from);

/// The frame of a node's outputs; meaningless for feeds and constants.
FrameId OutputFrame(const StepGraph& step, NodeId id);

/// Fills StepGraph::frames and StepNode::frame. Frames are identified by parent and `frame_name`; an Enter belongs to
/// the frame that it opens, an Exit to the one that it leaves. Source: "Implementation of Control Flow in TensorFlow",
/// 2017. Errors: InvalidArgument, naming the node, for inputs from different frames, for an Exit or NextIteration
/// outside any frame, and for a Merge that has no inputs or only back edges.
Status FindFrames(StepGraph& step);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_FRAMES_H_
