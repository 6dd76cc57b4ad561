// Function calls, and control flow with functions as branches and bodies. Steps contain none of these ops: core/lower
// replaces them by the functions' nodes.
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/functional_gradients.h"

namespace weir::ops {
namespace {

using op::Category;
using op::OpBuilder;
using op::OpRegistry;
using op::RunBy;
using op::Scalar;
using op::ShapeContext;

/// Output i has shape i of the attribute `output_shapes`, if it is listed.
Status DeclaredShapes(ShapeContext& c) {
  WEIR_ASSIGN(std::vector<PartialShape> shapes, c.attrs().Shapes("output_shapes"));
  if (static_cast<int>(shapes.size()) != c.num_outputs()) return Status();
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, std::move(shapes[static_cast<size_t>(i)]));
  return Status();
}

Status FakeParamShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape shape, c.attrs().ShapeAttr("shape"));
  c.set_output(0, std::move(shape));
  return Status();
}

OpBuilder Functional(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name).Is(Category::kControlFlow).RunsOn(RunBy::kExecutor).Shape(op::Unknown());
}

OpBuilder Call(OpRegistry& ops, std::string_view name) {
  return Functional(ops, name)
      .In("args: [Tin]")
      .Out("output: [Tout]")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Attr("f: func")
      .Attr("config: string = ''")
      .Attr("config_proto: string = ''")
      .Attr("executor_type: string = ''")
      .Grad(CallGradient)
      .Doc("The results of function `f` for `args`.");
}

OpBuilder If(OpRegistry& ops, std::string_view name) {
  return Functional(ops, name)
      .In("cond: Tcond")
      .In("input: [Tin]")
      .Out("output: [Tout]")
      .Attr("Tcond: type")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Attr("then_branch: func")
      .Attr("else_branch: func")
      .Attr("output_shapes: list(shape) = []")
      .Shape(DeclaredShapes)
      .Grad(IfGradient)
      .Doc("The results of `then_branch` for `input` where `cond` is true as ToBool says, else of `else_branch`.");
}

OpBuilder Case(OpRegistry& ops, std::string_view name) {
  return Functional(ops, name)
      .In("branch_index: int32")
      .In("input: [Tin]")
      .Out("output: [Tout]")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Attr("branches: list(func) >= 1")
      .Attr("output_shapes: list(shape) = []")
      .Shape(DeclaredShapes)
      .Grad(CaseGradient)
      .Doc("The results of branch number `branch_index` for `input`; of the last one when there is no such branch.");
}

OpBuilder While(OpRegistry& ops, std::string_view name) {
  return Functional(ops, name)
      .In("input: [T]")
      .Out("output: [T]")
      .Attr("T: list(type) >= 0")
      .Attr("cond: func")
      .Attr("body: func")
      .Attr("output_shapes: list(shape) = []")
      .Attr("parallel_iterations: int = 10")
      .Shape(DeclaredShapes)
      .Grad(WhileGradient)
      .Doc("`input`, put through `body` as long as `cond` of it is true.");
}

}  // namespace

void DeclareFunctional(OpRegistry& ops) {
  Call(ops, "PartitionedCall");
  Call(ops, "StatefulPartitionedCall").Stateful();
  If(ops, "If").Stateful();
  If(ops, "StatelessIf");
  Case(ops, "Case").Stateful();
  Case(ops, "StatelessCase");
  While(ops, "While").Stateful();
  While(ops, "StatelessWhile");
  Functional(ops, "For")
      .In("start: int32")
      .In("limit: int32")
      .In("delta: int32")
      .In("input: [T]")
      .Out("output: [T]")
      .Attr("T: list(type) >= 0")
      .Attr("body: func")
      .NoGradient(op::kUndefinedGradient)
      .Doc("`input`, put through `body`, whose first argument counts from `start` by `delta` as far as `limit`.");
  Functional(ops, "SymbolicGradient")
      .In("input: [Tin]")
      .Out("output: [Tout]")
      .Attr("Tin: list(type) >= 1")
      .Attr("Tout: list(type) >= 1")
      .Attr("f: func")
      .NoGradient(op::kUndefinedGradient)
      .Doc(
          "The gradients of function `f` with respect to its arguments; `input` are these and the gradients of its "
          "results.");
  Functional(ops, "RemoteCall")
      .In("target: string")
      .In("args: [Tin]")
      .Out("output: [Tout]")
      .Attr("Tin: list(type) >= 1")
      .Attr("Tout: list(type) >= 1")
      .Attr("f: func")
      .Stateful()
      .NoGradient("functions run on other workers have none")
      .Doc("The results of function `f` for `args`, run on the device `target`.");
  Functional(ops, "DeviceIndex")
      .Out("index: int32")
      .Attr("device_names: list(string)")
      .Stateful()
      .Shape(Scalar())
      .NoGradient("its output is an integer that depends on no input")
      .Doc("Position of the type of the node's device in `device_names`, or their number.");
  ops.Declare("FakeParam")
      .Out("output: dtype")
      .Attr("dtype: type")
      .Attr("shape: shape")
      .Is(Category::kControlFlow)
      .Shape(FakeParamShape)
      .NoGradient("it has no inputs")
      .Doc("A value that nothing reads: what a branch gives in place of one that only other branches compute.");
  ops.Declare("ToBool")
      .In("input: T")
      .Out("output: bool")
      .Attr("T: type")
      .Is(Category::kControlFlow)
      .Shape(Scalar())
      .NoGradient("its output is boolean")
      .Doc("Whether a scalar is not zero or a string not empty; of any other tensor, whether it has elements.");
}

}  // namespace weir::ops
