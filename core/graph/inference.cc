#include "core/graph/inference.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/graph/known_ints.h"

namespace weir::graph {
namespace {

/// The input that output `e.index` forwards regardless of control flow; -1 if there is none.
int InputPassedOn(const Node& node, Endpoint e) {
  if (node.op().traits.passes_value) return e.index;
  switch (node.op().traits.flow) {
    case op::Flow::kSwitch:
    case op::Flow::kEnter:
    case op::Flow::kExit:
      return 0;
    default:
      return -1;
  }
}

/// The producer of a value, skipping nodes that only forward it.
Endpoint Origin(const Definition& graph, Endpoint e) {
  while (e.node >= 0) {
    const Node& node = graph.node(e.node);
    const int input = InputPassedOn(node, e);
    if (input < 0 || static_cast<size_t>(input) >= node.inputs().size()) break;
    e = node.inputs()[static_cast<size_t>(input)];
  }
  return e;
}

}  // namespace

const Tensor* InputKnowledge::Value(int i) {
  const auto known = std::ranges::find(values_, i, &Known::input);
  if (known != values_.end()) return known->value;
  const Tensor* value = nullptr;
  if (given_ != nullptr) {
    if (*given_) value = (*given_)(i);
  } else if (const Endpoint from = inputs_[static_cast<size_t>(i)]; from.node >= 0) {
    value = ConstantOf(graph_, from);
    if (value == nullptr) {
      if (std::optional<Tensor> made = KnownTensor(graph_, from)) value = &made_.emplace_front(std::move(*made));
    }
  }
  values_.push_back({i, value});
  return value;
}

op::HeldValue InputKnowledge::Held(int i) const {
  if (held_ != nullptr && *held_) return (*held_)(i);
  const Endpoint origin = Origin(graph_, inputs_[static_cast<size_t>(i)]);
  if (origin.node < 0 || graph_.node(origin.node).op().traits.universal != op::Universal::kVariable) return {};
  const op::AttrView attrs = graph_.node(origin.node).attrs();
  op::HeldValue held;
  if (Result<DType> dtype = attrs.Type("dtype"); dtype.ok()) held.dtype = *dtype;
  if (Result<PartialShape> shape = attrs.ShapeAttr("shape"); shape.ok()) held.shape = std::move(*shape);
  return held;
}

PartialShape InputKnowledge::ShapeValue(int i) {
  const Endpoint from = inputs_[static_cast<size_t>(i)];
  if (from.node < 0 || given_ != nullptr) return PartialShape();
  PartialShape shape = KnownShapeValue(graph_, from);
  if (shape.has_rank()) shapes_.push_back({i, shape});
  return shape;
}

std::string InputKnowledge::Computed() const {
  std::string tensors;
  for (const Known& known : values_) {
    if (known.value == nullptr) continue;
    std::string values = known.value->SummarizeValues(32);
    if (values.size() >= 2 && values.front() == '[') values = values.substr(1, values.size() - 2);
    tensors += fmt::format("{}input[{}] = <{}>", tensors.empty() ? "" : ", ", known.input, values);
  }
  std::string shapes;
  for (const KnownShape& known : shapes_) {
    shapes += fmt::format("{}input[{}] = {}", shapes.empty() ? "" : ", ", known.input, known.shape.ToString());
  }
  return (tensors.empty() ? "" : " and with computed input tensors: " + tensors) +
         (shapes.empty() ? "" : " and with input tensors computed as partial shapes: " + shapes);
}

Result<std::vector<PartialShape>> RunShapeFunction(const Node& node, std::span<const PartialShape> input_shapes,
                                                   InputKnowledge& knowledge) {
  op::ShapeContext context(
      node.attrs(), node.signature().inputs, input_shapes, node.num_outputs(),
      [&knowledge](int i) { return knowledge.Value(i); }, [&knowledge](int i) { return knowledge.ShapeValue(i); },
      [&knowledge](int i) { return knowledge.Held(i); });
  const Status status = node.op().shape ? node.op().shape(context) : Status();
  if (status.ok()) return context.TakeOutputs();
  std::string shapes;
  for (const PartialShape& shape : input_shapes) shapes += (shapes.empty() ? "" : ", ") + shape.ToString();
  return status.Append(fmt::format(" for '{}' (op: '{}') with input shapes: {}{}.", node.name(), node.op().name, shapes,
                                   knowledge.Computed()));
}

Result<std::vector<PartialShape>> InferShapes(const Definition& graph, const Node& node,
                                              std::span<const PartialShape> input_shapes,
                                              const op::ShapeContext::ValueFn& value,
                                              const op::ShapeContext::HandleFn& held) {
  if (input_shapes.size() != node.inputs().size()) {
    return InvalidArgument("node '{}' has {} inputs, but {} shapes were given", node.name(), node.inputs().size(),
                           input_shapes.size());
  }
  InputKnowledge knowledge(graph, node.inputs(), value, held);
  return RunShapeFunction(node, input_shapes, knowledge);
}

}  // namespace weir::graph
