// The part of a graph that one step runs: what compilation stages pass on to each other.
#ifndef WEIR_CORE_GRAPH_STEP_GRAPH_H_
#define WEIR_CORE_GRAPH_STEP_GRAPH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

namespace weir::graph {

/// A node of a step. Ids are positions in StepGraph::nodes; inputs and control inputs have smaller ids, but for the
/// inputs of a Merge that come from NextIteration (frames.h).
struct StepNode {
  enum class Kind : uint8_t { kOp, kFeed, kConstant };
  Kind kind = Kind::kOp;
  /// The node of the graph that it stands for (the fed one for kFeed), or one of StepGraph::made; borrowed.
  const Node* source = nullptr;
  /// Position in the step's feeds; kFeed only.
  int feed = -1;
  std::vector<Endpoint> inputs;
  std::vector<NodeId> control_inputs;
  /// By output. A kFeed node has one output, of value type.
  std::vector<DType> types;
  std::vector<PartialShape> shapes;
  /// Host values by output; kConstant only.
  std::vector<Tensor> values;
  /// Index into StepGraph::frames; of no meaning for feeds and constants, which all frames see.
  int frame = 0;

  std::string_view name() const { return source->name(); }
  bool is_op(std::string_view op) const { return kind == Kind::kOp && source->op().name == op; }
};

/// Type and shape of a value that a step is compiled for.
struct FeedSpec {
  Endpoint endpoint;  // in the graph
  DType dtype = DType::kInvalid;
  PartialShape shape;
};

/// What a step feeds, fetches and runs, in terms of the graph.
struct StepRequest {
  std::vector<FeedSpec> feeds;
  std::vector<Endpoint> fetches;
  std::vector<NodeId> targets;
  /// Nodes that ran in an earlier part of the same run: nothing waits for them, and what is needed of them is fed.
  std::vector<NodeId> done;
};

/// A loop's scope, opened by its Enter nodes. Frame 0 is the step itself.
struct Frame {
  int parent = -1;
  std::string name;
};

/// A node that stands in no graph, and those of the graph whose work it does, in step order.
struct MadeNode {
  std::shared_ptr<const Node> node;
  std::vector<const Node*> stands_for;
};

/// Nodes in an order that respects all edges but those that close loops. `fetches` correspond one to one to the
/// request's; `targets` are the nodes that must run though nobody may consume them.
struct StepGraph {
  const Graph* graph = nullptr;
  std::vector<StepNode> nodes;
  std::vector<Endpoint> fetches;
  std::vector<NodeId> targets;
  std::vector<Frame> frames;
  /// What `source` of nodes that are in no graph points to.
  std::vector<MadeNode> made;
  /// The nodes of the graph that the request feeds or needs, each once, before any was folded, merged or dropped.
  std::vector<const Node*> written;

  const StepNode& node(NodeId id) const { return nodes[static_cast<size_t>(id)]; }
  DType TypeOf(Endpoint e) const { return node(e.node).types[static_cast<size_t>(e.index)]; }
  const PartialShape& ShapeOf(Endpoint e) const { return node(e.node).shapes[static_cast<size_t>(e.index)]; }
  /// The value of a constant endpoint, else null.
  const Tensor* ValueOf(Endpoint e) const {
    const StepNode& n = node(e.node);
    return n.kind == StepNode::Kind::kConstant ? &n.values[static_cast<size_t>(e.index)] : nullptr;
  }
};

/// Removes the nodes that are not kept, to which no kept node, fetch or target leads; the new id of each, -1 for the
/// removed ones.
std::vector<NodeId> Keep(StepGraph& step, const std::vector<bool>& kept);

/// TensorFlow's tail of an error of a node: "\n\t [[{{node NAME}}]] (defined at model.cc:41)" as far as it is known,
/// and the node with its origin in the status.
inline Status AtNode(const Status& status, const Node& node) {
  if (status.ok() || !status.node().empty()) return status;
  const std::string place = node.origin().empty() ? std::string() : " (defined at " + node.origin() + ")";
  return status.Append("\n\t [[{{node " + node.name() + "}}]]" + place).WithNode(node.name(), node.origin());
}

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_STEP_GRAPH_H_
