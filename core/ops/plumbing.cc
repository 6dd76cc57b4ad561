// Ops that forward values: constants, placeholders, identities, and control flow.
#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Category;
using op::Flow;
using op::Grad;
using op::GradContext;
using op::NoOutputs;
using op::OpBuilder;
using op::OpRegistry;
using op::SameAs;
using op::ShapeContext;
using op::Universal;

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

/// The input must be compatible with the declared shape, which is the output shape, since any such tensor may be fed.
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

/// The common part of all input shapes, since any input may arrive.
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

/// The common part of the input shapes if all are known.
Status RefSelectShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 0).status());
  PartialShape common = c.input(1);
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (!c.input(i).fully_defined() || !(c.input(i) == common)) return Status();
  }
  c.set_output(0, std::move(common));
  return Status();
}

/// A loop variable may have another shape after the first iteration.
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
      .RunsAs(Universal::kConstant)
      .Shape(ConstShape)
      .NoGradient("it has no inputs")
      .Doc("The tensor that the attribute `value` holds.");
  ops.Declare("Placeholder")
      .Out("output: dtype")
      .Attr("dtype: type")
      .Attr("shape: shape = { unknown_rank: true }")
      .Is(Category::kArray)
      .RunsAs(Universal::kPlaceholder)
      .Shape(PlaceholderShape)
      .NoGradient("it has no inputs")
      .Doc("A value that every run must feed; it has to fit `shape`.");
  ops.Declare("PlaceholderV2")
      .Out("output: dtype")
      .Attr("dtype: type")
      .Attr("shape: shape")
      .Is(Category::kArray)
      .RunsAs(Universal::kPlaceholder)
      .Shape(PlaceholderShape)
      .NoGradient("it has no inputs")
      .Doc("As Placeholder; TensorFlow keeps it for old graphs.");
  ops.Declare("PlaceholderWithDefault")
      .In("input: dtype")
      .Out("output: dtype")
      .Attr("dtype: type")
      .Attr("shape: shape")
      .Is(Category::kArray)
      .RunsAs(Universal::kForward)
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
        .RunsAs(Universal::kForward)
        .PassesValue()
        .Shape(SameAs(0));
  };
  one("Identity").Grad(PassThrough).Doc("The input; of a variable, the value it has at this point of the run.");
  one("StopGradient")
      .NoGradient("it stands for a constant when differentiating")
      .Doc("The input, through which no gradient flows.");
  one("Snapshot").Grad(PassThrough).Doc("The input, which callers may then change.");
  one("GuaranteeConst")
      .Stateful()
      .ChecksOnly()
      .NoGradient("it stands for a constant when differentiating")
      .Doc("The input, which the graph promises never to change.");
  one("PreventGradient")
      .Attr("message: string = ''")
      .Grad(RefuseGradient)
      .Doc("The input; differentiating through it is an error that gives `message` as the reason.");
  ops.Declare("IdentityN")
      .In("input: [T]")
      .Out("output: [T]")
      .Attr("T: list(type) >= 1")
      .Is(Category::kArray)
      .RunsAs(Universal::kForward)
      .PassesValue()
      .HandlesFromAnywhere()
      .Shape(EachSame)
      .Grad(PassThrough)
      .Doc("All inputs unchanged, available together once every one of them is.");
  ops.Declare("NoOp")
      .Is(Category::kControlFlow)
      .RunsAs(Flow::kPlain)
      .Shape(NoOutputs())
      .NoGradient("it has no outputs")
      .Doc("Nothing: a node to hang control dependencies on.");
}

OpBuilder ControlFlow(OpRegistry& ops, std::string_view name, Flow flow) {
  return ops.Declare(name).Is(Category::kControlFlow).RunsAs(flow).NoGradient(kControlFlowGradient);
}

void DeclareControlFlow(OpRegistry& ops) {
  ControlFlow(ops, "Switch", Flow::kSwitch)
      .In("data: T")
      .In("pred: bool")
      .Out("output_false: T")
      .Out("output_true: T")
      .Attr(kAnyT)
      .Shape(SwitchShape)
      .Doc("Sends `data` to the output that `pred` selects; the other one is dead.");
  ControlFlow(ops, "Merge", Flow::kMerge)
      .In("inputs: N*T")
      .Out("output: T")
      .Out("value_index: int32")
      .Attr(kAnyT)
      .Attr("N: int >= 1")
      .Shape(MergeShape)
      .Doc("The first input that arrives alive, and its position.");
  ControlFlow(ops, "Enter", Flow::kEnter)
      .In("data: T")
      .Out("output: T")
      .Attr(kAnyT)
      .Attr("frame_name: string")
      .Attr("is_constant: bool = false")
      .Attr("parallel_iterations: int = 10")
      .Shape(EnterShape)
      .Doc("Brings `data` into the loop frame of that name: into its first iteration, or as a constant into all.");
  ControlFlow(ops, "Exit", Flow::kExit)
      .In("data: T")
      .Out("output: T")
      .Attr(kAnyT)
      .Shape(SameAs(0))
      .Doc("Hands `data` out of its loop frame when the loop ends.");
  ControlFlow(ops, "NextIteration", Flow::kNextIteration)
      .In("data: T")
      .Out("output: T")
      .Attr(kAnyT)
      .Shape(SameAs(0))
      .Doc("Makes `data` available to the next iteration of its loop frame.");
  ControlFlow(ops, "LoopCond", Flow::kLoopCond)
      .In("input: bool")
      .Out("output: bool")
      .Shape(LoopCondShape)
      .Doc("The condition on which a loop goes on.");
  ControlFlow(ops, "ControlTrigger", Flow::kTrigger)
      .Shape(NoOutputs())
      .Doc("Nothing, but alive even when a control input is dead.");
}

void DeclareRefControlFlow(OpRegistry& ops) {
  ControlFlow(ops, "RefSwitch", Flow::kSwitch)
      .In("data: Ref(T)")
      .In("pred: bool")
      .Out("output_false: Ref(T)")
      .Out("output_true: Ref(T)")
      .Attr(kAnyT)
      .AllowsUninitialized()
      .Shape(SwitchShape)
      .Doc("Switch for a reference to a variable.");
  ControlFlow(ops, "RefMerge", Flow::kMerge)
      .In("inputs: Ref(N*T)")
      .Out("output: Ref(T)")
      .Out("value_index: int32")
      .Attr(kAnyT)
      .Attr("N: int >= 1")
      .Shape(MergeShape)
      .Doc("Merge for references to variables.");
  ControlFlow(ops, "RefEnter", Flow::kEnter)
      .In("data: Ref(T)")
      .Out("output: Ref(T)")
      .Attr(kAnyT)
      .Attr("frame_name: string")
      .Attr("is_constant: bool = false")
      .Attr("parallel_iterations: int = 10")
      .Shape(SameAs(0))
      .Doc("Enter for a reference to a variable.");
  ControlFlow(ops, "RefExit", Flow::kExit)
      .In("data: Ref(T)")
      .Out("output: Ref(T)")
      .Attr(kAnyT)
      .Shape(SameAs(0))
      .Doc("Exit for a reference to a variable.");
  ControlFlow(ops, "RefNextIteration", Flow::kNextIteration)
      .In("data: Ref(T)")
      .Out("output: Ref(T)")
      .Attr(kAnyT)
      .Shape(SameAs(0))
      .Doc("NextIteration for a reference to a variable.");
  ControlFlow(ops, "RefIdentity", Flow::kPlain)
      .In("input: Ref(T)")
      .Out("output: Ref(T)")
      .Attr(kAnyT)
      .PassesValue()
      .AllowsUninitialized()
      .Shape(SameAs(0))
      .Doc("The same reference to a variable.");
  ControlFlow(ops, "RefSelect", Flow::kSelect)
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
