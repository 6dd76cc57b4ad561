// Variables: bound to the plan where they are known; references that are chosen while running are reference cells.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/errors.h"
#include "core/graph/frames.h"
#include "core/plan/emitters_internal.h"

namespace weir::plan {
namespace {

using graph::Endpoint;
using graph::Flow;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

/// A handle or reference that comes out is one that went in.
bool HandsOn(const StepNode& node) {
  if (node.kind != StepNode::Kind::kOp || node.inputs.empty()) return false;
  const op::RunBy run_by = node.source->op().run_by;
  return run_by == op::RunBy::kExecutor || run_by == op::RunBy::kUniversal || IsRef(node.types[0]);
}

/// The nodes that name the variables which may reach `reference`; none if another value may reach it.
std::set<NodeId> VariablesBehind(const StepGraph& step, Endpoint reference) {
  std::set<NodeId> variables;
  std::set<Endpoint> seen;
  std::vector<Endpoint> open = {reference};
  while (!open.empty()) {
    const Endpoint at = open.back();
    open.pop_back();
    const StepNode& node = step.node(at.node);
    if (!KeepsVariable(step.TypeOf(at)) || !seen.insert(at).second) continue;
    if (NamesVariable(node)) {
      variables.insert(at.node);
    } else if (graph::FlowOf(node) == Flow::kMerge) {
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    } else if (graph::FlowOf(node) == Flow::kSelect) {
      open.insert(open.end(), node.inputs.begin() + 1, node.inputs.end());
    } else if (HandsOn(node)) {
      open.push_back(node.inputs[node.source->op().traits.passes_value ? PositionOf(at.index) : 0]);
    } else {
      return {};
    }
  }
  return variables;
}

std::string TextAttr(const graph::Node& node, std::string_view attr) {
  Result<std::string> value = node.attrs().String(attr);
  return value.ok() ? *value : std::string();
}

/// Its variable lives in the step: it names no container.
bool IsTemporary(const graph::Node& source) { return !source.attrs().Has("container"); }

}  // namespace

bool NamesVariable(const StepNode& node) {
  return node.kind == StepNode::Kind::kOp && node.source->op().traits.universal == op::Universal::kVariable;
}

Status VariableEmitter::EmitVariable(NodeId id) {
  ValueId& bound = c_.values[{id, 0}];
  if (bound.valid()) return Status();  // a loop that may refer to it came first
  const graph::Node& source = *c_.node(id).source;
  VariableUse use;
  use.node = &source;
  use.is_resource = source.output_types()[0] == DType::kResource;
  Value value;
  if (Result<DType> dtype = source.attrs().Type("dtype"); dtype.ok()) {
    value.dtype = *dtype;
  } else {
    return c_.Fail(id, dtype.status());
  }
  if (Result<PartialShape> shape = source.attrs().ShapeAttr("shape"); use.is_resource && shape.ok()) {
    use.declared = std::move(*shape);
  } else if (!use.is_resource) {
    use.declared = source.output_shapes()[0];
  }
  const std::string container = TextAttr(source, "container"), name = TextAttr(source, "shared_name");
  use.key.device = c_.DeviceName(id);
  use.key.container = container.empty() ? runtime::kDefaultContainer : container;
  use.key.name = name.empty() ? source.name() : name;
  const bool temporary = IsTemporary(source);
  if (temporary) {
    const std::string var_name = TextAttr(source, "var_name");
    use.key = {{}, runtime::kStepContainer, var_name.empty() ? source.name() : var_name};
  } else {
    Result<std::shared_ptr<runtime::Variable>> variable = c_.options.resources->GetOrCreate(use.key, value.dtype);
    if (!variable.ok()) return c_.Fail(id, variable.status());
    use.variable = std::move(*variable);
  }
  // A reference may be given values of other shapes, which the step knows; a handle's variable keeps the declared one.
  const PartialShape& settled = use.is_resource ? use.declared : c_.node(id).shapes[0];
  if (Result<Shape> known = settled.ToShape(); known.ok()) {
    value.shape_known = true;
    value.shape = std::move(*known);
  }
  const SpaceId space = HasFixedSize(value.dtype) ? c_.SpaceOf(id) : kHostSpace;
  bound = tape_.AddVariable(std::move(use), std::move(value), space);
  if (temporary) tape_.Emit(Opcode::kTemporary, {}, {bound});
  return Status();
}

Result<ValueId> VariableEmitter::VariableInput(NodeId id, int input) {
  const Endpoint from = c_.node(id).inputs[PositionOf(input)];
  const ValueId value = c_.values[from];
  if (value.valid() && tape_.IsVariable(value)) {
    WEIR_TRY(CheckHeld(id, input, value));
    return value;
  }
  if (c_.step.TypeOf(from) == DType::kResource) return Resolved(id, input);
  return c_.Fail(id, Unimplemented("input {} of {} must come from a variable op of the same step; references that are "
                                   "fed or computed are not followed",
                                   input, c_.node(id).source->op().name));
}

Status VariableEmitter::CheckHeld(NodeId id, int input, ValueId variable) const {
  const StepNode& node = c_.node(id);
  if (c_.step.TypeOf(node.inputs[PositionOf(input)]) != DType::kResource) return {};
  const Status fits = op::CheckHeldType(node.source->attrs(), tape_.ValueAt(variable).dtype);
  return fits.ok() ? fits : c_.Fail(id, fits);
}

Status VariableEmitter::EmitRead(NodeId id, int index) {
  WEIR_ASSIGN(const ValueId variable, VariableInput(id, index));
  const DType held = tape_.ValueAt(variable).dtype, declared = BaseType(c_.node(id).types[PositionOf(index)]);
  if (held != declared) {
    return c_.Fail(id, InvalidArgument("Trying to read variable with wrong dtype. Expected {} got {}", Name(held),
                                       Name(declared)));
  }
  c_.values[{id, index}] = Snapshot(variable, c_.node(id).shapes[PositionOf(index)]);
  return Status();
}

ValueId VariableEmitter::Snapshot(ValueId variable, PartialShape shape) {
  const Value& declared = tape_.ValueAt(variable);
  if (declared.shape_known) shape = PartialShape(declared.shape);
  const ValueId out = tape_.NewValue(declared.dtype, shape, tape_.StorageAt(variable).space, Placing::kAtRun);
  VariableId source = tape_.VariableOf(variable);
  if (tape_.IsPlace(variable)) {  // it may refer to another variable by the time that the snapshot is dropped
    source = tape_.plan().variables.Add(VariableUse(tape_.UseOf(variable)));
  }
  tape_.StorageAt(out).variable = source;
  tape_.SetLocks({{tape_.VariableOf(variable), false}}, tape_.Emit(Opcode::kReadVariable, {variable}, {out}));
  return out;
}

Status VariableEmitter::EmitAssign(NodeId id) {
  const StepNode& node = c_.node(id);
  WEIR_ASSIGN(const ValueId variable, VariableInput(id, 0));
  WEIR_ASSIGN(ValueId given, c_.Input(id, 1));
  if (c_.step.TypeOf(node.inputs[1]) == DType::kResource) given = HandleValue(given);
  WEIR_ASSIGN(const ValueId value, c_.Located(given, tape_.StorageAt(variable).space));
  Instruction& instruction = tape_.Emit(Opcode::kAssign, {variable, value}, {});
  std::vector<Lock> locks = {{tape_.VariableOf(variable), true}};
  if (tape_.IsVariable(value)) locks.push_back({tape_.VariableOf(value), false});
  tape_.SetLocks(std::move(locks), instruction);
  instruction.validate_shape = false;
  if (node.types.empty()) return Status();
  const Result<bool> validate = node.source->attrs().Bool("validate_shape");
  instruction.validate_shape = !validate.ok() || *validate;
  c_.values[{id, 0}] = variable;  // a reference to it
  return Status();
}

Status VariableEmitter::EmitQuery(NodeId id, Opcode opcode) {
  WEIR_ASSIGN(const ValueId variable, VariableInput(id, 0));
  const StepNode& node = c_.node(id);
  const ValueId out = tape_.NewValue(node.types[0], node.shapes[0], kHostSpace, Placing::kAtRun);
  tape_.SetLocks({{tape_.VariableOf(variable), false}}, tape_.Emit(opcode, {variable}, {out}));
  c_.values[{id, 0}] = out;
  return Status();
}

Status VariableEmitter::EmitSelect(NodeId id) {
  WEIR_ASSIGN(const ValueId index, HostInput(id, 0));
  std::vector<ValueId> operands = {index};
  std::vector<Lock> locks;
  for (size_t i = 1; i < c_.node(id).inputs.size(); ++i) {
    WEIR_ASSIGN(operands.emplace_back(), c_.Input(id, i));
    if (tape_.IsVariable(operands.back())) locks.push_back({tape_.VariableOf(operands.back()), false});
  }
  WEIR_ASSIGN(const ValueId cell, CellFor(id, std::span(operands).subspan(1)));
  const std::vector<ValueId> outputs = {cell};
  tape_.SetLocks(std::move(locks), tape_.Emit(Opcode::kSelect, operands, outputs));
  c_.values[{id, 0}] = cell;
  return Status();
}

Result<ValueId> VariableEmitter::Forwarded(NodeId id) {
  WEIR_ASSIGN(const ValueId value, c_.Input(id, 0));
  if (!tape_.IsVariable(value) || KeepsVariable(c_.node(id).types[0])) return value;
  WEIR_TRY(EmitRead(id, 0));
  return c_.values[{id, 0}];
}

Result<ValueId> VariableEmitter::HostInput(NodeId id, size_t input) {
  WEIR_ASSIGN(ValueId value, c_.Input(id, input));
  if (tape_.IsVariable(value)) value = Snapshot(value, c_.step.ShapeOf(c_.node(id).inputs[input]));
  return c_.Located(value, kHostSpace);
}

Result<ValueId> VariableEmitter::CellFor(NodeId id, std::span<const ValueId> references) {
  const std::string_view op = c_.node(id).source->op().name;
  VariableUse cell;
  Value value;
  SpaceId space = kHostSpace;
  for (const ValueId reference : references) {
    if (!tape_.IsVariable(reference)) {
      return c_.Fail(id, Unimplemented("{} chooses between a variable and a value, wanted variables only", op));
    }
    const Value& one = tape_.ValueAt(reference);
    const VariableUse& use = tape_.UseOf(reference);
    if (cell.choices.empty()) {
      value = one;
      cell.node = use.node;
      cell.is_resource = use.is_resource;
      space = tape_.StorageAt(reference).space;
    }
    if (use.variable != nullptr) {
      cell.choices.push_back(tape_.VariableOf(reference));
    } else {
      cell.choices.insert(cell.choices.end(), use.choices.begin(), use.choices.end());
    }
    value.shape_known = value.shape_known && one.shape_known && one.shape == value.shape;
    if (one.dtype != value.dtype) {
      return c_.Fail(id, Unimplemented("{} chooses between variables of types {} and {}, wanted one type", op,
                                       Name(value.dtype), Name(one.dtype)));
    }
    if (tape_.StorageAt(reference).space != space) {
      return c_.Fail(id, Unimplemented("{} chooses between variables on several devices, wanted one device", op));
    }
  }
  std::sort(cell.choices.begin(), cell.choices.end());
  cell.choices.erase(std::unique(cell.choices.begin(), cell.choices.end()), cell.choices.end());
  if (cell.choices.size() == 1) return references[0];
  if (!value.shape_known) value.shape = Shape();
  return tape_.AddVariable(std::move(cell), std::move(value), space);
}

Result<std::vector<ValueId>> VariableEmitter::VariablesAt(Endpoint reference) {
  std::vector<ValueId> variables;
  for (const NodeId id : VariablesBehind(c_.step, reference)) {
    if (IsTemporary(*c_.node(id).source)) {
      return c_.Fail(id,
                     Unimplemented("a temporary variable goes through a loop or a choice between references, wanted "
                                   "only ops that use it directly"));
    }
    WEIR_TRY(EmitVariable(id));
    variables.push_back(c_.values[{id, 0}]);
  }
  const bool handles = c_.step.TypeOf(reference) == DType::kResource;
  if (handles && !FitOneCell(variables)) variables.clear();
  return variables;
}

Result<ValueId> VariableEmitter::CellFor(NodeId id, Endpoint reference) {
  WEIR_ASSIGN(const std::vector<ValueId> variables, VariablesAt(reference));
  if (variables.size() > 1) return CellFor(id, std::span(variables));
  return variables.empty() ? ValueId() : variables[0];
}

bool VariableEmitter::FitOneCell(std::span<const ValueId> references) const {
  const auto space = [&](ValueId value) { return tape_.StorageAt(value).space; };
  const auto type = [&](ValueId value) { return tape_.ValueAt(value).dtype; };
  return std::ranges::all_of(references, [&](ValueId value) {
    return tape_.IsVariable(value) && type(value) == type(references[0]) && space(value) == space(references[0]);
  });
}

Result<bool> VariableEmitter::StaysVariable(Endpoint handle) {
  WEIR_ASSIGN(const std::vector<ValueId> variables, VariablesAt(handle));
  return !variables.empty();
}

ValueId VariableEmitter::HandleValue(ValueId value) {
  if (!tape_.IsVariable(value)) return value;
  const VariableUse& use = tape_.UseOf(value);
  if (use.variable != nullptr) return tape_.AddConstant(Tensor::Scalar(runtime::HandleOf(use.key, use.variable)));
  const ValueId handle = tape_.NewScalar(DType::kResource, Placing::kAtRun);
  tape_.Emit(Opcode::kHandle, {value}, {handle});
  return handle;
}

void VariableEmitter::UnifyHandles(std::span<const GuardId> guards, std::vector<ValueId>* handles) {
  if (FitOneCell(*handles)) return;
  for (size_t i = 0; i < handles->size(); ++i) {
    c_.conditions.Under(guards[i]);
    (*handles)[i] = HandleValue((*handles)[i]);
  }
}

Result<ValueId> VariableEmitter::Resolved(NodeId id, int input) {
  WEIR_ASSIGN(const ValueId handle, c_.Input(id, PositionOf(input)));
  const graph::Node& source = *c_.node(id).source;
  const op::AttrView attrs = source.attrs();
  VariableUse cell;
  cell.node = &source;
  cell.is_resource = true;
  cell.key.device = c_.DeviceName(id);
  Value value;
  if (attrs.Has("dtype") || attrs.Has("T")) {
    const Result<DType> type = attrs.Type(attrs.Has("dtype") ? "dtype" : "T");
    if (!type.ok()) return c_.Fail(id, type.status());
    value.dtype = *type;
  }
  const SpaceId space = HasFixedSize(value.dtype) ? c_.SpaceOf(id) : kHostSpace;
  const ValueId out = tape_.AddVariable(std::move(cell), std::move(value), space);
  const bool makes = source.op().traits.universal == op::Universal::kAssignVariable;
  tape_.Emit(Opcode::kResolve, {handle}, {out}).detail = makes ? 1 : 0;
  return out;
}

Result<ValueId> VariableEmitter::RoomFor(NodeId id, ValueId value) {
  if (tape_.IsVariable(value)) return CellFor(id, std::span<const ValueId>(&value, 1));
  return tape_.NewLike(value, tape_.StorageAt(value).space);
}

}  // namespace weir::plan
