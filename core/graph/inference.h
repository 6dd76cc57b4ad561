// Shape inference of one node, and the known values of its inputs.
#ifndef WEIR_CORE_GRAPH_INFERENCE_H_
#define WEIR_CORE_GRAPH_INFERENCE_H_

#include <forward_list>
#include <span>
#include <string>
#include <vector>

#include "core/graph/definition.h"

namespace weir::graph {

/// Values of a node's inputs that the graph determines or the caller supplies, computed on demand. Records the values
/// read, for messages. Single-threaded.
class InputKnowledge {
 public:
  /// Uses values determined by the graph: constants, and arithmetic on known shapes.
  InputKnowledge(const Definition& graph, std::span<const Endpoint> inputs) : graph_(graph), inputs_(inputs) {}
  /// Uses values from `given`; `held`, if set, describes the variables behind handles.
  InputKnowledge(const Definition& graph, std::span<const Endpoint> inputs, const op::ShapeContext::ValueFn& given,
                 const op::ShapeContext::HandleFn& held)
      : graph_(graph), inputs_(inputs), given_(&given), held_(&held) {}

  /// Borrowed; valid as long as this object.
  const Tensor* Value(int i);
  PartialShape ShapeValue(int i);
  /// The variable behind a handle: from `held`, else as declared by its VarHandleOp; kInvalid if unknown.
  op::HeldValue Held(int i) const;

  /// " and with computed input tensors: input[1] = <2 3>", or empty.
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

  const Definition& graph_;
  std::span<const Endpoint> inputs_;
  const op::ShapeContext::ValueFn* given_ = nullptr;
  const op::ShapeContext::HandleFn* held_ = nullptr;
  std::forward_list<Tensor> made_;  // stable addresses; empty for most nodes, and then without memory
  std::vector<Known> values_;
  std::vector<KnownShape> shapes_;
};

/// An attribute with the error of a shape function: of nodes that an import with `allow_unknown_ops` takes although the
/// shapes of their inputs do not fit. Nothing is known of their outputs; the op fails if it runs.
inline constexpr char kUnfitAttr[] = "_weir_unfit";

/// Runs the shape function of `node`'s op; errors end in TensorFlow's text.
Result<std::vector<PartialShape>> RunShapeFunction(const Node& node, std::span<const PartialShape> input_shapes,
                                                   InputKnowledge& knowledge);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_INFERENCE_H_
