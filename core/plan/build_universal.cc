// Ops that the core runs on every device: aliases become views, variables are bound to their resource.
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/kernel/operand_args.h"
#include "core/plan/builder_internal.h"

namespace weir::plan {
namespace {

enum class Universal { kConst, kAlias, kAliasN, kMetadata, kVariable, kRead, kAssign, kIsInitialized, kVariableShape };

const std::unordered_map<std::string_view, Universal>& UniversalOps() {
  static const std::unordered_map<std::string_view, Universal> kOps = {
      {"Const", Universal::kConst},
      {"PlaceholderWithDefault", Universal::kAlias},
      {"Identity", Universal::kAlias},
      {"StopGradient", Universal::kAlias},
      {"PreventGradient", Universal::kAlias},
      {"Reshape", Universal::kAlias},
      {"ExpandDims", Universal::kAlias},
      {"Squeeze", Universal::kAlias},
      {"IdentityN", Universal::kAliasN},
      {"Shape", Universal::kMetadata},
      {"ShapeN", Universal::kMetadata},
      {"Size", Universal::kMetadata},
      {"Rank", Universal::kMetadata},
      {"Variable", Universal::kVariable},
      {"VariableV2", Universal::kVariable},
      {"VarHandleOp", Universal::kVariable},
      {"ReadVariableOp", Universal::kRead},
      {"Assign", Universal::kAssign},
      {"AssignVariableOp", Universal::kAssign},
      {"IsVariableInitialized", Universal::kIsInitialized},
      {"VarIsInitializedOp", Universal::kIsInitialized},
      {"VariableShape", Universal::kVariableShape},
  };
  return kOps;
}

}  // namespace

Status Builder::EmitUniversal() {
  const auto found = UniversalOps().find(Current().source->op().name);
  if (found == UniversalOps().end()) {
    return Fail(Internal("op {} is declared universal but the plan does not know it", Current().source->op().name));
  }
  switch (found->second) {
    case Universal::kConst: {
      Result<Tensor> value = Current().source->attrs().TensorAttr("value");
      if (!value.ok()) return Fail(value.status());
      ValueAt({current_, 0}) = AddConstant(*value);
      return Status();
    }
    case Universal::kAlias:
      return EmitAlias(0);
    case Universal::kAliasN:
      for (size_t i = 0; i < Current().inputs.size(); ++i) WEIR_TRY(EmitAlias(static_cast<int>(i)));
      return Status();
    case Universal::kMetadata:
      return EmitCall({});
    case Universal::kVariable:
      return EmitVariable();
    case Universal::kRead:
      return EmitRead(0);
    case Universal::kAssign:
      return EmitAssign();
    case Universal::kIsInitialized:
      return EmitVariableQuery(Opcode::kIsInitialized);
    case Universal::kVariableShape:
      return EmitVariableQuery(Opcode::kVariableShape);
  }
  return Status();
}

Status Builder::EmitAlias(int output) {
  const graph::StepNode& node = Current();
  const graph::Endpoint input = node.inputs[static_cast<size_t>(output)];
  const int value = ValueAt(input);
  if (value < 0) return Fail(Internal("input {} has no value", output));
  if (step_.TypeOf(input) == DType::kResource) {
    ValueAt({current_, output}) = value;
    return Status();
  }
  if (IsVariable(value)) {
    if (node.inputs.size() > 1 && node.source->op().name != "IdentityN") return EmitCall({});
    return EmitRead(output);
  }
  const PartialShape& shape = node.shapes[static_cast<size_t>(output)];
  const Value& from = plan_->values[static_cast<size_t>(value)];
  if (!kernel::OnlyReshapes(node.source->op().name)) {
    ValueAt({current_, output}) = value;
    return Status();
  }
  // An operand that says the shape is checked when it is known, even where inference could tell the answer without it.
  const bool told = node.inputs.size() < 2 || step_.ValueOf(node.inputs[1]) != nullptr;
  if (!told || !shape.fully_defined() || !from.shape_known || from.shape.elements() != shape.elements())
    return EmitCall({});
  ValueAt({current_, output}) = ViewOf(value, shape);
  return Status();
}

bool NamesVariable(const graph::StepNode& node) {
  if (node.kind != graph::StepNode::Kind::kOp) return false;
  const auto found = UniversalOps().find(node.source->op().name);
  return found != UniversalOps().end() && found->second == Universal::kVariable;
}

Status Builder::EmitVariable() {
  if (ValueAt({current_, 0}) >= 0) return Status();  // a loop that may refer to it came first
  const graph::Node& source = *Current().source;
  const bool is_resource = source.op().name == "VarHandleOp";
  VariableUse use;
  use.node = &source;
  use.is_resource = is_resource;
  Result<DType> dtype = source.attrs().Type("dtype");
  if (!dtype.ok()) return Fail(dtype.status());
  Result<PartialShape> shape = source.attrs().ShapeAttr("shape");
  if (shape.ok()) use.declared = *shape;
  if (source.op().name == "Variable" && use.declared.rank() == 0) use.declared = PartialShape();  // "not stated"
  const auto text = [&](std::string_view attr) {
    Result<std::string> value = source.attrs().String(attr);
    return value.ok() ? *value : std::string();
  };
  const int device = placement_.device_of[static_cast<size_t>(current_)];
  use.key.device = device < 0 ? std::string() : placement_.devices[static_cast<size_t>(device)];
  use.key.container = text("container").empty() ? kernel::kDefaultContainer : text("container");
  use.key.name = text("shared_name").empty() ? source.name() : text("shared_name");
  Result<std::shared_ptr<kernel::Variable>> variable = options_.resources->GetOrCreate(use.key, *dtype);
  if (!variable.ok()) return Fail(variable.status());
  use.variable = std::move(*variable);
  Storage storage;
  storage.home = Storage::Home::kVariable;
  storage.space = HasFixedSize(*dtype) ? SpaceOf(device) : kHostSpace;
  storage.variable = static_cast<int>(plan_->variables.size());
  Value value;
  value.dtype = *dtype;
  // A reference may be given values of other shapes, which the step knows; what is behind a handle keeps the declared.
  const PartialShape& settled = is_resource ? use.declared : Current().shapes[0];
  if (Result<Shape> known = settled.ToShape(); known.ok()) {
    value.shape_known = true;
    value.shape = std::move(*known);
  }
  plan_->variables.push_back(std::move(use));
  value.storage = AddStorage(std::move(storage));
  ValueAt({current_, 0}) = AddValue(std::move(value));
  return Status();
}

Result<int> Builder::VariableInput(int input) {
  const int value = ValueAt(Current().inputs[static_cast<size_t>(input)]);
  if (value >= 0 && IsVariable(value)) {
    WEIR_TRY(CheckHeld(input, value));
    return value;
  }
  return Fail(
      Unimplemented("input {} of {} must come from a variable op of the same step; handles that are fed or computed "
                    "are not followed",
                    input, Current().source->op().name));
}

Status Builder::CheckHeld(int input, int variable) const {
  if (step_.TypeOf(Current().inputs[static_cast<size_t>(input)]) != DType::kResource) return {};
  const Status fits = op::CheckHeldType(Current().source->attrs(), plan_->values[static_cast<size_t>(variable)].dtype);
  return fits.ok() ? fits : Fail(fits);
}

Status Builder::EmitRead(int index) {
  WEIR_ASSIGN(const int variable, VariableInput(index));
  ValueAt({current_, index}) = Snapshot(variable, Current().shapes[static_cast<size_t>(index)]);
  return Status();
}

int Builder::Snapshot(int variable, PartialShape shape) {
  const Value& declared = plan_->values[static_cast<size_t>(variable)];
  if (declared.shape_known) shape = PartialShape(declared.shape);
  const int space = plan_->storages[static_cast<size_t>(declared.storage)].space;
  const int out = NewValue(declared.dtype, shape, space, Placing::kAtRun);
  // What a place refers to by the time that the snapshot is dropped may be another variable.
  int source = VariableOf(variable);
  if (IsPlace(variable)) {
    VariableUse place = plan_->variables[static_cast<size_t>(source)];
    source = static_cast<int>(plan_->variables.size());
    plan_->variables.push_back(std::move(place));
  }
  plan_->storages[static_cast<size_t>(StorageOf(out))].variable = source;
  SetLocks({{VariableOf(variable), false}}, Emit(Opcode::kReadVariable, {variable}, {out}));
  return out;
}

Status Builder::EmitAssign() {
  WEIR_ASSIGN(const int variable, VariableInput(0));
  WEIR_TRY(CheckNoHandle(1));
  const int space = plan_->storages[static_cast<size_t>(plan_->values[static_cast<size_t>(variable)].storage)].space;
  const int given = ValueAt(Current().inputs[1]);
  if (given < 0) return Fail(Internal("input 1 has no value"));
  WEIR_ASSIGN(const int value, Located(given, space));
  Instruction& instruction = Emit(Opcode::kAssign, {variable, value}, {});
  std::vector<Lock> locks = {{VariableOf(variable), true}};
  if (IsVariable(value)) locks.push_back({VariableOf(value), false});
  SetLocks(std::move(locks), instruction);
  if (Current().source->op().name == "Assign") {
    Result<bool> validate = Current().source->attrs().Bool("validate_shape");
    instruction.validate_shape = !validate.ok() || *validate;
    ValueAt({current_, 0}) = variable;
  } else {
    instruction.validate_shape = false;
  }
  return Status();
}

Status Builder::EmitVariableQuery(Opcode opcode) {
  WEIR_ASSIGN(const int variable, VariableInput(0));
  const int out = NewValue(Current().types[0], Current().shapes[0], kHostSpace, Placing::kAtRun);
  SetLocks({{VariableOf(variable), false}}, Emit(opcode, {variable}, {out}));
  ValueAt({current_, 0}) = out;
  return Status();
}

}  // namespace weir::plan
