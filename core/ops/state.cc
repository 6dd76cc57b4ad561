// Variables, by reference and by handle: creation, reads, assignments, counters.
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Category;
using op::Grad;
using op::GradContext;
using op::OpBuilder;
using op::OpRegistry;
using op::Scalar;
using op::ShapeContext;
using op::Universal;

constexpr std::string_view kNoInputs = "it has no inputs";

/// Legacy variables cannot distinguish a scalar from an undeclared shape; an empty shape means undeclared.
Status LegacyVariableShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape shape, c.attrs().ShapeAttr("shape"));
  c.set_output(0, shape.rank() > 0 ? std::move(shape) : PartialShape());
  return Status();
}

Status VariableV2Shape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape shape, c.attrs().ShapeAttr("shape"));
  c.set_output(0, std::move(shape));
  return Status();
}

Status MergeBoth(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape merged, c.input(0).Merge(c.input(1)));
  c.set_output(0, std::move(merged));
  return Status();
}

Status AssignShape(ShapeContext& c) {
  WEIR_ASSIGN(const bool validate, c.attrs().Bool("validate_shape"));
  if (validate) return MergeBoth(c);
  c.set_output(0, c.input(1));
  return Status();
}

Status ReadShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 0).status());
  WEIR_ASSIGN(PartialShape shape, c.held_shape(0));
  c.set_output(0, std::move(shape));
  return Status();
}

Status AssignHandleShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 0).status());
  WEIR_ASSIGN(const PartialShape held, c.held_shape(0));
  return held.Merge(c.input(1)).status();
}

Status HandleShapeVector(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 0).status());
  WEIR_ASSIGN(const PartialShape held, c.held_shape(0));
  c.set_output(0, RankVector(held));
  return Status();
}

Status ScalarRef(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape shape, c.WithRank(0, 0));
  c.set_output(0, std::move(shape));
  return Status();
}

Status ScalarHandle(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 0).status());
  WEIR_ASSIGN(PartialShape shape, c.held_shape(0));
  WEIR_ASSIGN(shape, ToRank(shape, 0));
  c.set_output(0, std::move(shape));
  return Status();
}

Result<std::vector<Grad>> ReadGradient(GradContext& g) { return std::vector<Grad>{g.DyAsIs(0)}; }

OpBuilder State(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kState); }

OpBuilder RefVariable(OpRegistry& ops, std::string_view name) {
  return State(ops, name)
      .RunsAs(Universal::kVariable)
      .Out("ref: Ref(dtype)")
      .Attr("shape: shape")
      .Attr("dtype: type")
      .Attr("container: string = ''")
      .Attr("shared_name: string = ''")
      .Stateful()
      .NoGradient(kNoInputs);
}

/// Variables of the step: without an attr `container`.
void DeclareTemporaryVariables(OpRegistry& ops) {
  State(ops, "TemporaryVariable")
      .RunsAs(Universal::kVariable)
      .Out("ref: Ref(dtype)")
      .Attr("shape: shape")
      .Attr("dtype: type")
      .Attr("var_name: string = ''")
      .Stateful()
      .Shape(VariableV2Shape)
      .NoGradient(kNoInputs)
      .Doc("A reference to a tensor that lives until DestroyTemporaryVariable or the end of the step.");
  State(ops, "DestroyTemporaryVariable")
      .In("ref: Ref(T)")
      .Out("value: T")
      .Attr("T: type")
      .Attr("var_name: string")
      .Shape(op::SameAs(0))
      .NoGradient("its variable ends with it")
      .Doc("The value of the temporary variable of that name, which it destroys.");
}

void DeclareVariables(OpRegistry& ops) {
  RefVariable(ops, "Variable")
      .Shape(LegacyVariableShape)
      .Doc("VariableV2 of old graphs: an empty `shape` says that the shape is not declared.");
  RefVariable(ops, "VariableV2")
      .Shape(VariableV2Shape)
      .Doc("A reference to a tensor that outlives the run, shared under its name by all runs of a session.");
  State(ops, "VarHandleOp")
      .RunsAs(Universal::kVariable)
      .Out("resource: resource")
      .Attr("container: string = ''")
      .Attr("shared_name: string = ''")
      .Attr("debug_name: string = ''")
      .Attr("dtype: type")
      .Attr("shape: shape")
      .Attr("allowed_devices: list(string) = []")
      .Stateful()
      .Shape(Scalar())
      .NoGradient(kNoInputs)
      .Doc("A handle of a variable of that type and shape, which outlives the run.");
  State(ops, "IsVariableInitialized")
      .RunsAs(Universal::kIsInitialized)
      .In("ref: Ref(dtype)")
      .Out("is_initialized: bool")
      .Attr("dtype: type")
      .AllowsUninitialized()
      .Shape(Scalar())
      .NoGradient(kDiscrete)
      .Doc("True when the variable has a value.");
  State(ops, "VarIsInitializedOp")
      .RunsAs(Universal::kIsInitialized)
      .In("resource: resource")
      .Out("is_initialized: bool")
      .Stateful()
      .Shape(Scalar())
      .NoGradient(kDiscrete)
      .Doc("True when the variable behind the handle has a value.");
  State(ops, "DisableCopyOnRead")
      .In("resource: resource")
      .Stateful()
      .Shape(op::NoOutputs())
      .NoGradient("it has no outputs")
      .Doc("Reads of the variable need not copy its value; they do not here in any case.");
  State(ops, "DestroyResourceOp")
      .In("resource: resource")
      .Attr("ignore_lookup_error: bool = true")
      .Stateful()
      .Shape(op::NoOutputs())
      .NoGradient("it has no outputs")
      .Doc("Gives up what is behind the handle: a variable has no value any more, anything else is gone.");
  State(ops, "VariableShape")
      .RunsAs(Universal::kVariableShape)
      .In("input: resource")
      .Out("output: out_type")
      .Attr("out_type: {int32, int64} = DT_INT32")
      .Stateful()
      .Shape(HandleShapeVector)
      .NoGradient(kDiscrete)
      .Doc("The shape of the variable's value, as a vector.");
}

/// Assignment to a reference, which is forwarded as the output.
OpBuilder RefAssign(OpRegistry& ops, std::string_view name, std::string_view type_attr) {
  return State(ops, name)
      .In("ref: Ref(T)")
      .In("value: T")
      .Out("output_ref: Ref(T)")
      .Attr(type_attr)
      .NoGradient(kUpdate);
}

OpBuilder HandleAssign(OpRegistry& ops, std::string_view name) {
  return State(ops, name)
      .In("resource: resource")
      .In("value: dtype")
      .Attr("dtype: type")
      .Stateful()
      .Shape(AssignHandleShape)
      .NoGradient(kUpdate);
}

void DeclareAssignments(OpRegistry& ops) {
  RefAssign(ops, "Assign", kAnyT)
      .RunsAs(Universal::kAssignVariable)
      .Attr("validate_shape: bool = true")
      .Attr("use_locking: bool = true")
      .AllowsUninitialized()
      .Shape(AssignShape)
      .Doc("Makes `value` the variable's value; with validate_shape its shape must fit the declared one.");
  RefAssign(ops, "AssignAdd", kNumberT)
      .Attr("use_locking: bool = false")
      .Shape(MergeBoth)
      .Doc("Adds `value` to the variable.");
  RefAssign(ops, "AssignSub", kNumberT)
      .Attr("use_locking: bool = false")
      .Shape(MergeBoth)
      .Doc("Subtracts `value` from the variable.");
  State(ops, "ReadVariableOp")
      .RunsAs(Universal::kReadVariable)
      .In("resource: resource")
      .Out("value: dtype")
      .Attr("dtype: type")
      .Stateful()
      .Shape(ReadShape)
      .Grad(ReadGradient)
      .Doc("The variable's value at this point of the run; later assignments do not change it.");
  HandleAssign(ops, "AssignVariableOp")
      .RunsAs(Universal::kAssignVariable)
      .Attr("validate_shape: bool = false")
      .Doc("Makes `value` the variable's value.");
  HandleAssign(ops, "AssignAddVariableOp").Doc("Adds `value` to the variable.");
  HandleAssign(ops, "AssignSubVariableOp").Doc("Subtracts `value` from the variable.");
}

void DeclareCounters(OpRegistry& ops) {
  State(ops, "CountUpTo")
      .In("ref: Ref(T)")
      .Out("output: T")
      .Attr("limit: int")
      .Attr("T: {int32, int64}")
      .Shape(ScalarRef)
      .NoGradient(kDiscrete)
      .Doc("The scalar variable's value, which then grows by one; OutOfRange once it has reached `limit`.");
  State(ops, "ResourceCountUpTo")
      .In("resource: resource")
      .Out("output: T")
      .Attr("limit: int")
      .Attr("T: {int32, int64}")
      .Stateful()
      .Shape(ScalarHandle)
      .NoGradient(kDiscrete)
      .Doc("The value of the scalar variable behind the handle, which then grows by one; OutOfRange at `limit`.");
}

}  // namespace

void DeclareState(OpRegistry& ops) {
  DeclareVariables(ops);
  DeclareTemporaryVariables(ops);
  DeclareAssignments(ops);
  DeclareCounters(ops);
}

}  // namespace weir::ops
