// Shape inference of one node, and what it may know of the node's inputs beyond their shapes.
#ifndef WEIR_CORE_GRAPH_INFERENCE_H_
#define WEIR_CORE_GRAPH_INFERENCE_H_

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace weir::graph {

/// Values of a node's inputs, as far as they follow from the graph or are given, computed when asked for. What was
/// asked for is remembered, for messages. Single-threaded.
class InputKnowledge {
 public:
  /// Values follow from the graph: constants, and arithmetic on known shapes.
  InputKnowledge(const Graph& graph, std::span<const Endpoint> inputs) : graph_(graph), inputs_(inputs) {}
  /// Values are those that `given` knows; `held`, where it is set, tells what handles name.
  InputKnowledge(const Graph& graph, std::span<const Endpoint> inputs, const op::ShapeContext::ValueFn& given,
                 const op::ShapeContext::HandleFn& held)
      : graph_(graph), inputs_(inputs), given_(&given), held_(&held) {}

  /// Borrowed until this object goes.
  const Tensor* Value(int i);
  PartialShape ShapeValue(int i);
  /// What the VarHandleOp behind a handle declares unless it was given; nothing where the graph does not tell.
  op::HeldValue Held(int i) const;

  /// " and with computed input tensors: input[1] = <2 3>" or nothing.
  std::string Computed() const;

 private:
  struct Known {
    int input;
    const Tensor* value;
  };
  struct KnownShape {
    int input;
    PartialShape shape;
  };

  const Graph& graph_;
  std::span<const Endpoint> inputs_;
  const op::ShapeContext::ValueFn* given_ = nullptr;
  const op::ShapeContext::HandleFn* held_ = nullptr;
  std::deque<Tensor> made_;
  std::vector<Known> values_;
  std::vector<KnownShape> shapes_;
};

/// Output shapes of `node` by its op's shape function; errors with TensorFlow's tail.
Result<std::vector<PartialShape>> RunShapeFunction(const Node& node, std::span<const PartialShape> input_shapes,
                                                   InputKnowledge& knowledge);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_INFERENCE_H_
