// Ops that check values at run time.
#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Category;
using op::Grad;
using op::GradContext;
using op::One;
using op::OpRegistry;
using op::SameAs;
using op::ShapeContext;

Status AssertShape(ShapeContext& c) {
  const PartialShape& condition = c.input(0);
  if (!condition.has_rank() || condition.rank() == 0) return Status();
  return InvalidArgument("In[0] should be a scalar: {}", condition.ToString());
}

Result<std::vector<Grad>> CheckedGradient(GradContext& g) {
  WEIR_ASSIGN(const std::string message, g.attrs().String("message"));
  const std::string text = "Not a number (NaN) or infinity (Inf) values detected in gradient. b'" + message + "'";
  return One(g.Apply("CheckNumerics", {g.Dy(0)}, {{"message", text}}));
}

}  // namespace

void DeclareCheck(OpRegistry& ops) {
  ops.Declare("Assert")
      .In("condition: bool")
      .In("data: [T]")
      .Attr("T: list(type) >= 1")
      .Attr("summarize: int = 3")
      .Is(Category::kCheck)
      .Stateful()
      .ChecksOnly()
      .Shape(AssertShape)
      .NoGradient("it has no outputs")
      .Doc("Ends the run with InvalidArgument, showing `data`, unless the condition holds.");
  ops.Declare("CheckNumerics")
      .In("tensor: T")
      .Out("output: T")
      .Attr(kFloatT)
      .Attr("message: string")
      .Is(Category::kCheck)
      .Stateful()
      .ChecksOnly()
      .Shape(SameAs(0))
      .Grad(CheckedGradient)
      .Doc("The input; ends the run with InvalidArgument, beginning with `message`, if it has a NaN or an infinity.");
  ops.Declare("StaticRegexFullMatch")
      .In("input: string")
      .Out("output: bool")
      .Attr("pattern: string")
      .Is(Category::kCheck)
      .Shape(SameAs(0))
      .NoGradient(kDiscrete)
      .Doc("True for each string that the pattern (RE2 syntax) matches from end to end.");
}

}  // namespace weir::ops
