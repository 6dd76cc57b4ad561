// Ops that carry values from here to there: constants, placeholders, identities, and the switches of control flow.
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Category;
using op::Grad;
using op::GradContext;
using op::NoOutputs;
using op::OpBuilder;
using op::OpRegistry;
using op::RunBy;
using op::SameAs;
using op::ShapeContext;

constexpr std::string_view kControlFlowGradient = "control-flow gradients are built by while_loop and cond";

/// Output i has the shape of input i.
Status EachSame(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(i));
  return Status();
}

Status ConstShape(ShapeContext& c) {
  WEIR_ASSIGN(const Tensor value, c.attrs().TensorAttr("value"));
  WEIR_ASSIGN(const DType dtype, c.attrs().Type("dtype"));
  if (value.dtype() != dtype) {
    return InvalidArgument("Type mismatch between value ({}) and dtype ({})", Name(value.dtype()), Name(dtype));
  }
  c.set_output(0, value.shape());
  return Status();
}

Status PlaceholderShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape shape, c.attrs().ShapeAttr("shape"));
  c.set_output(0, std::move(shape));
  return Status();
}

/// The input must fit the declared shape, which is what the answer is: any tensor that fits it may be fed.
Status PlaceholderWithDefaultShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape declared, c.attrs().ShapeAttr("shape"));
  WEIR_TRY(c.input(0).Merge(declared).status());
  c.set_output(0, std::move(declared));
  return Status();
}

Status SwitchShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(1, 0).status());
  c.set_output(0, c.input(0));
  c.set_output(1, c.input(0));
  return Status();
}

/// What all inputs agree on: any of them may arrive.
Status MergeShape(ShapeContext& c) {
  PartialShape common = c.input(0);
  for (int i = 1; i < c.num_inputs() && common.has_rank(); ++i) {
    const PartialShape& next = c.input(i);
    if (next.rank() != common.rank()) {
      common = PartialShape();
      break;
    }
    for (int d = 0; d < common.rank(); ++d) {
      if (common.dim(d) != next.dim(d)) common.set_dim(d, -1);
    }
  }
  c.set_output(0, std::move(common));
  c.set_output(1, Shape());
  return Status();
}

/// What the inputs agree on, when each of them is known.
Status RefSelectShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 0).status());
  PartialShape common = c.input(1);
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (!c.input(i).fully_defined() || !(c.input(i) == common)) return Status();
  }
  c.set_output(0, std::move(common));
  return Status();
}

/// What enters as a loop's variable may leave its first iteration in another shape.
Status EnterShape(ShapeContext& c) {
  WEIR_ASSIGN(const bool is_constant, c.attrs().Bool("is_constant"));
  if (is_constant) c.set_output(0, c.input(0));
  return Status();
}

Status LoopCondShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape shape, c.WithRank(0, 0));
  c.set_output(0, std::move(shape));
  return Status();
}

Result<std::vector<Grad>> PassThrough(GradContext& g) {
  std::vector<Grad> grads;
  for (int i = 0; i < g.num_inputs(); ++i) grads.push_back(g.HasDy(i) ? g.DyAsIs(i) : Grad::None());
  return grads;
}

Result<std::vector<Grad>> RefuseGradient(GradContext& g) {
  WEIR_ASSIGN(const std::string reason, g.attrs().String("message"));
  return Unimplemented("Gradient explicitly disabled. Reason: {}", reason);
}

void DeclareSources(OpRegistry& ops) {
  ops.Declare("Const")
      .Out("output: dtype")
      .Attr("value: tensor")
      .Attr("dtype: type")
      .Is(Category::kArray)
      .RunsOn(RunBy::kUniversal)
      .Shape(ConstShape)
      .NoGradient("it has no inputs")
      .Doc("The tensor that the attribute `value` holds.");
  ops.Declare("Placeholder")
      .Out("output: dtype")
      .Attr("dtype: type")
      .Attr("shape: shape = { unknown_rank: true }")
      .Is(Category::kArray)
      .RunsOn(RunBy::kUniversal)
      .Shape(PlaceholderShape)
      .NoGradient("it has no inputs")
      .Doc("A value that every run must feed; it has to fit `shape`.");
  ops.Declare("PlaceholderWithDefault")
      .In("input: dtype")
      .Out("output: dtype")
      .Attr("dtype: type")
      .Attr("shape: shape")
      .Is(Category::kArray)
      .RunsOn(RunBy::kUniversal)
      .Shape(PlaceholderWithDefaultShape)
      .Grad(PassThrough)
      .Doc("`input`, unless the run feeds another value that fits `shape`.");
}

void DeclareIdentities(OpRegistry& ops) {
  const auto one = [&ops](std::string_view name) {
    return ops.Declare(name)
        .In("input: T")
        .Out("output: T")
        .Attr(kAnyT)
        .Is(Category::kArray)
        .RunsOn(RunBy::kUniversal)
        .Shape(SameAs(0));
  };
  one("Identity").Grad(PassThrough).Doc("The input; of a variable, the value it has at this point of the run.");
  one("StopGradient")
      .NoGradient("it stands for a constant when differentiating")
      .Doc("The input, through which no gradient flows.");
  one("PreventGradient")
      .Attr("message: string = ''")
      .Grad(RefuseGradient)
      .Doc("The input; differentiating through it is an error that gives `message` as the reason.");
  ops.Declare("IdentityN")
      .In("input: [T]")
      .Out("output: [T]")
      .Attr("T: list(type) >= 1")
      .Is(Category::kArray)
      .RunsOn(RunBy::kUniversal)
      .Shape(EachSame)
      .Grad(PassThrough)
      .Doc("All inputs unchanged, available together once every one of them is.");
  ops.Declare("NoOp")
      .Is(Category::kControlFlow)
      .RunsOn(RunBy::kExecutor)
      .Shape(NoOutputs())
      .NoGradient("it has no outputs")
      .Doc("Nothing: a node to hang control dependencies on.");
}

OpBuilder ControlFlow(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name).Is(Category::kControlFlow).RunsOn(RunBy::kExecutor).NoGradient(kControlFlowGradient);
}

void DeclareControlFlow(OpRegistry& ops) {
  ControlFlow(ops, "Switch")
      .In("data: T")
      .In("pred: bool")
      .Out("output_false: T")
      .Out("output_true: T")
      .Attr(kAnyT)
      .Shape(SwitchShape)
      .Doc("Sends `data` to the output that `pred` selects; the other one is dead.");
  ControlFlow(ops, "Merge")
      .In("inputs: N*T")
      .Out("output: T")
      .Out("value_index: int32")
      .Attr(kAnyT)
      .Attr("N: int >= 1")
      .Shape(MergeShape)
      .Doc("The first input that arrives alive, and its position.");
  ControlFlow(ops, "Enter")
      .In("data: T")
      .Out("output: T")
      .Attr(kAnyT)
      .Attr("frame_name: string")
      .Attr("is_constant: bool = false")
      .Attr("parallel_iterations: int = 10")
      .Shape(EnterShape)
      .Doc("Brings `data` into the loop frame of that name: into its first iteration, or as a constant into all.");
  ControlFlow(ops, "Exit")
      .In("data: T")
      .Out("output: T")
      .Attr(kAnyT)
      .Shape(SameAs(0))
      .Doc("Hands `data` out of its loop frame when the loop ends.");
  ControlFlow(ops, "NextIteration")
      .In("data: T")
      .Out("output: T")
      .Attr(kAnyT)
      .Shape(SameAs(0))
      .Doc("Makes `data` available to the next iteration of its loop frame.");
  ControlFlow(ops, "LoopCond")
      .In("input: bool")
      .Out("output: bool")
      .Shape(LoopCondShape)
      .Doc("The condition on which a loop goes on.");
  ControlFlow(ops, "ControlTrigger").Shape(NoOutputs()).Doc("Nothing, but alive even when a control input is dead.");
}

void DeclareRefControlFlow(OpRegistry& ops) {
  ControlFlow(ops, "RefSwitch")
      .In("data: Ref(T)")
      .In("pred: bool")
      .Out("output_false: Ref(T)")
      .Out("output_true: Ref(T)")
      .Attr(kAnyT)
      .AllowsUninitialized()
      .Shape(SwitchShape)
      .Doc("Switch for a reference to a variable.");
  ControlFlow(ops, "RefMerge")
      .In("inputs: Ref(N*T)")
      .Out("output: Ref(T)")
      .Out("value_index: int32")
      .Attr(kAnyT)
      .Attr("N: int >= 1")
      .Shape(MergeShape)
      .Doc("Merge for references to variables.");
  ControlFlow(ops, "RefEnter")
      .In("data: Ref(T)")
      .Out("output: Ref(T)")
      .Attr(kAnyT)
      .Attr("frame_name: string")
      .Attr("is_constant: bool = false")
      .Attr("parallel_iterations: int = 10")
      .Shape(SameAs(0))
      .Doc("Enter for a reference to a variable.");
  ControlFlow(ops, "RefExit")
      .In("data: Ref(T)")
      .Out("output: Ref(T)")
      .Attr(kAnyT)
      .Shape(SameAs(0))
      .Doc("Exit for a reference to a variable.");
  ControlFlow(ops, "RefNextIteration")
      .In("data: Ref(T)")
      .Out("output: Ref(T)")
      .Attr(kAnyT)
      .Shape(SameAs(0))
      .Doc("NextIteration for a reference to a variable.");
  ControlFlow(ops, "RefIdentity")
      .In("input: Ref(T)")
      .Out("output: Ref(T)")
      .Attr(kAnyT)
      .AllowsUninitialized()
      .Shape(SameAs(0))
      .Doc("The same reference to a variable.");
  ControlFlow(ops, "RefSelect")
      .In("index: int32")
      .In("inputs: Ref(N*T)")
      .Out("output: Ref(T)")
      .Attr(kAnyT)
      .Attr("N: int >= 1")
      .Shape(RefSelectShape)
      .Doc("The reference among `inputs` that `index` says.");
}

}  // namespace

void DeclarePlumbing(OpRegistry& ops) {
  DeclareSources(ops);
  DeclareIdentities(ops);
  DeclareControlFlow(ops);
  DeclareRefControlFlow(ops);
}

}  // namespace weir::ops
