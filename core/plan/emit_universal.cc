// Ops that the core runs on every device.
#include "core/base/errors.h"
#include "core/plan/emitters_internal.h"

namespace weir::plan {

using graph::NodeId;
using graph::StepNode;
using op::Universal;

Status UniversalEmitter::Emit(NodeId id) {
  const StepNode& node = c_.node(id);
  switch (node.source->op().traits.universal) {
    case Universal::kNone:
    case Universal::kPlaceholder:
      return c_.Fail(id, Internal("op {} is nothing that the core runs", node.source->op().name));
    case Universal::kConstant: {
      Result<Tensor> value = node.source->attrs().TensorAttr("value");
      if (!value.ok()) return c_.Fail(id, value.status());
      c_.values[{id, 0}] = tape_.AddConstant(*value);
      return Status();
    }
    case Universal::kReshape:
      return EmitAlias(id, 0);
    case Universal::kForward:
      for (size_t i = 0; i < node.inputs.size(); ++i) WEIR_TRY(EmitAlias(id, static_cast<int>(i)));
      return Status();
    case Universal::kShapeQuery:
      return kernels_.EmitCall(id, {});
    case Universal::kVariable:
      return variables_.EmitVariable(id);
    case Universal::kReadVariable:
      return variables_.EmitRead(id, 0);
    case Universal::kAssignVariable:
      return variables_.EmitAssign(id);
    case Universal::kIsInitialized:
      return variables_.EmitQuery(id, Opcode::kIsInitialized);
    case Universal::kVariableShape:
      return variables_.EmitQuery(id, Opcode::kVariableShape);
  }
  return Status();
}

Status UniversalEmitter::EmitAlias(NodeId id, int output) {
  const StepNode& node = c_.node(id);
  const bool reshapes = node.source->op().traits.universal == Universal::kReshape;
  WEIR_ASSIGN(const ValueId value, c_.Input(id, PositionOf(output)));
  ValueId& out = c_.values[{id, output}];
  if (c_.step.TypeOf(node.inputs[PositionOf(output)]) == DType::kResource) {
    out = value;
    return Status();
  }
  if (tape_.IsVariable(value)) {
    return node.inputs.size() > 1 && reshapes ? kernels_.EmitCall(id, {}) : variables_.EmitRead(id, output);
  }
  if (!reshapes) {
    out = value;
    return Status();
  }
  const PartialShape& shape = node.shapes[PositionOf(output)];
  const Value& from = tape_.ValueAt(value);
  // A shape operand is checked when it is known, even where inference knows the shape without it.
  const bool told = node.inputs.size() < 2 || c_.step.ValueOf(node.inputs[1]) != nullptr;
  const bool is_view = told && shape.fully_defined() && from.shape_known && from.shape.elements() == shape.elements();
  if (!is_view) return kernels_.EmitCall(id, {});
  out = tape_.ViewOf(value, shape);
  return Status();
}

}  // namespace weir::plan
