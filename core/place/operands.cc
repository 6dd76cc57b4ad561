#include "core/place/operands.h"

#include <utility>

namespace weir::place {
namespace {

Shape AssumedShape(const PartialShape& shape, int64_t unknown_dim) {
  std::vector<int64_t> dims;
  if (!shape.has_rank()) dims.push_back(unknown_dim);
  for (int i = 0; i < shape.rank(); ++i) dims.push_back(shape.dim(i) < 0 ? unknown_dim : shape.dim(i));
  const Result<PartialShape> made = PartialShape::Make(dims);
  if (made.ok()) {
    if (Result<Shape> known = made->ToShape(); known.ok()) return std::move(*known);
  }
  return Shape();
}

}  // namespace

Operands OperandsOf(const graph::StepGraph& step, const graph::StepNode& node, int64_t unknown_dim) {
  Operands operands;
  const auto spec = [&](DType type, const PartialShape& shape) {
    kernel::OperandSpec made;
    made.dtype = BaseType(type);
    made.variable = IsRef(type);
    operands.known = operands.known && shape.fully_defined();
    made.shape = AssumedShape(shape, unknown_dim);
    return made;
  };
  for (const graph::Endpoint& input : node.inputs) {
    operands.inputs.push_back(spec(step.TypeOf(input), step.ShapeOf(input)));
    operands.inputs.back().value = step.ValueOf(input);
  }
  for (size_t i = 0; i < node.types.size(); ++i) operands.outputs.push_back(spec(node.types[i], node.shapes[i]));
  return operands;
}

}  // namespace weir::place
