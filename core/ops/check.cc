// Checks that a graph makes of itself while it runs.
#include "core/op/shape_context.h"
#include "core/ops/families.h"

namespace weir::ops {
namespace {

using op::Category;
using op::OpRegistry;
using op::RunBy;
using op::SameAs;
using op::ShapeContext;

/// A condition of one element counts as a scalar.
Status AssertShape(ShapeContext& c) {
  const PartialShape& condition = c.input(0);
  if (!condition.fully_defined() || condition.elements() == 1) return Status();
  return InvalidArgument("In[0] should be a scalar: {}", condition.ToString());
}

}  // namespace

void DeclareCheck(OpRegistry& ops) {
  ops.Declare("Assert")
      .In("condition: bool")
      .In("data: [T]")
      .Attr("T: list(type) >= 1")
      .Attr("summarize: int = 3")
      .Is(Category::kCheck)
      .RunsOn(RunBy::kBuiltin)
      .Stateful()
      .Shape(AssertShape)
      .NoGradient("it has no outputs")
      .Doc("Ends the run with InvalidArgument, showing `data`, unless the condition holds.");
  ops.Declare("StaticRegexFullMatch")
      .In("input: string")
      .Out("output: bool")
      .Attr("pattern: string")
      .Is(Category::kCheck)
      .RunsOn(RunBy::kBuiltin)
      .Shape(SameAs(0))
      .NoGradient("its answer is discrete")
      .Doc("True for each string that the pattern (RE2 syntax) matches from end to end.");
}

}  // namespace weir::ops
