// Values that may be missing, in variants.
#include <vector>

#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"

namespace weir::ops {
namespace {

using op::Category;
using op::Grad;
using op::GradContext;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;

Status OptionalValueShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 0).status());
  WEIR_ASSIGN(const std::vector<PartialShape> shapes, c.attrs().Shapes("output_shapes"));
  if (static_cast<int>(shapes.size()) != c.num_outputs()) {
    return InvalidArgument("`output_shapes` must be the same length as `output_types` ({} vs. {}", shapes.size(),
                           c.num_outputs());
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, shapes[static_cast<size_t>(i)]);
  return Status();
}

Result<std::vector<Grad>> FromValueGradient(GradContext& g) {
  std::vector<DType> types;
  std::vector<PartialShape> shapes;
  for (int i = 0; i < g.num_inputs(); ++i) {
    types.push_back(g.TypeOf(g.X(i)));
    shapes.push_back(g.ShapeOf(g.X(i)));
  }
  const std::vector<op::Value> values = g.ApplyAll(
      "OptionalGetValue", {g.Dy(0)}, {{"output_types", std::move(types)}, {"output_shapes", std::move(shapes)}});
  return std::vector<Grad>(values.begin(), values.end());
}

std::vector<Grad> GetValueGradient(GradContext& g) {
  std::vector<op::Value> components;
  for (int i = 0; i < g.num_outputs(); ++i) components.push_back(g.Dy(i));
  return op::One(g.ApplyList("OptionalFromValue", components));
}

OpBuilder OptionalOp(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kState); }

}  // namespace

void DeclareOptional(OpRegistry& ops) {
  OptionalOp(ops, "OptionalFromValue")
      .In("components: [Toutput_types]")
      .Out("optional: variant")
      .Attr("Toutput_types: list(type) >= 1")
      .Shape(op::Scalar())
      .Grad(FromValueGradient)
      .Doc("An optional with a tuple of tensors.");
  OptionalOp(ops, "OptionalNone")
      .Out("optional: variant")
      .Shape(op::Scalar())
      .NoGradient("it has no inputs")
      .Doc("An optional without a value.");
  OptionalOp(ops, "OptionalHasValue")
      .In("optional: variant")
      .Out("has_value: bool")
      .Shape(op::Scalar())
      .NoGradient(kDiscrete)
      .Doc("True if the optional has a value.");
  OptionalOp(ops, "OptionalGetValue")
      .In("optional: variant")
      .Out("components: [output_types]")
      .Attr("output_types: list(type) >= 1")
      .Attr("output_shapes: list(shape) >= 1")
      .Shape(OptionalValueShape)
      .Grad(GetValueGradient)
      .Doc("The tensors of an optional; InvalidArgument if it has none.");
}

}  // namespace weir::ops
