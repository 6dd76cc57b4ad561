// The subgraph that one step runs, passed between compilation stages.
#ifndef WEIR_CORE_GRAPH_STEP_GRAPH_H_
#define WEIR_CORE_GRAPH_STEP_GRAPH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/indexed.h"
#include "core/graph/definition.h"
#include "core/tensor/tensor.h"

namespace weir::graph {

struct Placement;

using FrameId = Id<struct FrameTag>;  // into StepGraph::frames

/// The step itself.
inline constexpr FrameId kStepFrame{0};

/// A node of a step. Its id is its position in StepGraph::nodes. Inputs and control inputs have smaller ids, except
/// inputs of a Merge from NextIteration (frames.h).
struct StepNode {
  enum class Kind : uint8_t { kOp, kFeed, kConstant };
  Kind kind = Kind::kOp;
  /// The graph node that it represents (the fed node for kFeed), or an entry of StepGraph::made. Borrowed.
  const Node* source = nullptr;
  /// Position among the step's feeds; kFeed only.
  int feed = -1;
  std::vector<Endpoint> inputs;
  std::vector<NodeId> control_inputs;
  /// By output. A kFeed node has one output, of a value type.
  std::vector<DType> types;
  std::vector<PartialShape> shapes;
  /// Known host values by output: for kConstant, and for ops with known values that still depend on liveness of their
  /// inputs; otherwise empty.
  std::vector<Tensor> values;
  /// Meaningless for feeds and constants, which are visible in all frames.
  FrameId frame = kStepFrame;

  std::string_view name() const { return source->name(); }
  bool is_op(std::string_view op) const { return kind == Kind::kOp && source->op().name == op; }
};

/// Type and shape of a feed in a compiled step.
struct FeedSpec {
  Endpoint endpoint;  // in the graph
  DType dtype = DType::kInvalid;
  PartialShape shape;
};

/// Feeds, fetches and targets of a step as graph endpoints and ids.
struct StepRequest {
  std::vector<FeedSpec> feeds;
  std::vector<Endpoint> fetches;
  std::vector<NodeId> targets;
  /// Nodes that an earlier part of the run executed: no node waits for them, and needed outputs are fed.
  std::vector<NodeId> done;
};

/// The scope of a loop, opened by its Enter nodes.
struct Frame {
  FrameId parent;
  std::string name;
};

/// A node outside the graph, and the graph nodes that it replaces, in step order.
struct MadeNode {
  std::shared_ptr<const Node> node;
  std::vector<const Node*> stands_for;
};

/// Nodes in an order that respects all edges except those that close loops. `fetches` match the request's; `targets`
/// must run even without users.
struct StepGraph {
  const Definition* graph = nullptr;
  IndexedVector<NodeId, StepNode> nodes;
  std::vector<Endpoint> fetches;
  std::vector<NodeId> targets;
  IndexedVector<FrameId, Frame> frames;
  /// Nodes outside the graph that `source` may point to.
  std::vector<MadeNode> made;
  /// The graph nodes that the request feeds or needs, before folding, merging and removal; no duplicates.
  std::vector<const Node*> written;

  const StepNode& node(NodeId id) const { return nodes[id]; }
  DType TypeOf(Endpoint e) const { return node(e.node).types[PositionOf(e.index)]; }
  const PartialShape& ShapeOf(Endpoint e) const { return node(e.node).shapes[PositionOf(e.index)]; }
  /// The frames of a step; one that was not searched for loops has kStepFrame alone.
  size_t frame_count() const { return frames.empty() ? 1 : frames.size(); }
  FrameId ParentOf(FrameId frame) const { return frames[frame].parent; }
  /// The value of an endpoint if known, else null.
  const Tensor* ValueOf(Endpoint e) const {
    const StepNode& n = node(e.node);
    return n.values.empty() ? nullptr : &n.values[PositionOf(e.index)];
  }
};

/// Removes the nodes that are not in `kept`; no kept node, fetch or target may use them. Returns the new id of each
/// node, -1 if removed.
IndexedVector<NodeId, NodeId> Keep(StepGraph& step, const IndexedVector<NodeId, bool>& kept);

/// One line per node in order, then the fetches and targets: "m = MatMul(x, w:1, ^init) transpose_a=true @/device:CPU:0
/// in while on CPU:0 -> float [2,4]". Shows the requested device, the loop, and the device from `placement` (may be
/// null). Omits type attributes and truncates values.
std::string ToString(const StepGraph& step, const Placement* placement = nullptr);

/// Internal if an invariant of StepGraph is violated: edges lead to outputs of earlier nodes (except back edges), each
/// output has a type and shape, and constants have matching values.
Status Verify(const StepGraph& step);

/// Adds TensorFlow's tail of a node error, "\n\t [[{{node NAME}}]] (defined at model.cc:41)", as far as it is known,
/// and stores the node and its origin in the status.
inline Status AtNode(const Status& status, const Node& node) {
  if (status.ok() || !status.node().empty()) return status;
  const std::string place = node.origin().empty() ? std::string() : " (defined at " + node.origin() + ")";
  return status.Append("\n\t [[{{node " + node.name() + "}}]]" + place).WithNode(node.name(), node.origin());
}

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_STEP_GRAPH_H_
