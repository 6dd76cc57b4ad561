// Rounding of floating-point numbers to those of a fixed-point type.
#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::AttrList;
using op::Category;
using op::Grad;
using op::GradContext;
using op::MergeDim;
using op::One;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;

constexpr std::string_view kRounded = "TensorFlow declares it not differentiable";

/// Inputs of one shape; the last two are scalars min and max.
Status FakeQuantShape(ShapeContext& c) {
  PartialShape shape = c.input(0);
  const int arrays = c.num_inputs() - 2;
  for (int i = 1; i < arrays; ++i) {
    WEIR_ASSIGN(shape, shape.Merge(c.input(i)));
  }
  for (int i = arrays; i < c.num_inputs(); ++i) WEIR_TRY(c.WithRank(i, 0).status());
  c.set_output(0, std::move(shape));
  for (size_t i = 1; i < c.outputs().size(); ++i) c.set_output(static_cast<int>(i), PartialShape(Shape()));
  return Status();
}

/// The last two inputs are vectors with an element per channel, the last axis.
Status FakeQuantChannelShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape shape, c.WithRankAtLeast(0, 1));
  const int arrays = c.num_inputs() - 2;
  if (arrays > 1) {
    WEIR_ASSIGN(shape, ToRankAtMost(shape, 4));
  }
  for (int i = 1; i < arrays; ++i) {
    WEIR_ASSIGN(shape, shape.Merge(c.input(i)));
  }
  int64_t channels = shape.has_rank() ? shape.dim(shape.rank() - 1) : -1;
  for (int i = arrays; i < c.num_inputs(); ++i) {
    WEIR_ASSIGN(const PartialShape range, c.WithRank(i, 1));
    WEIR_ASSIGN(channels, MergeDim(channels, range.dim(0)));
  }
  if (shape.has_rank()) shape.set_dim(shape.rank() - 1, channels);
  c.set_output(0, std::move(shape));
  for (size_t i = 1; i < c.outputs().size(); ++i) c.set_output(static_cast<int>(i), VectorOf(channels));
  return Status();
}

Status SameShape(ShapeContext& c) {
  PartialShape shape = c.input(0);
  if (c.num_inputs() > 1) {
    WEIR_ASSIGN(shape, shape.Merge(c.input(1)));
  }
  c.set_output(0, std::move(shape));
  return Status();
}

AttrList QuantSteps(const GradContext& g, bool range) {
  AttrList attrs;
  for (const char* name : {"min", "max", "num_bits", "narrow_range"}) {
    const op::AttrValue* value = g.attrs().Find(name);
    if (value != nullptr && (range || std::string_view(name).size() > 3)) attrs.emplace_back(name, *value);
  }
  return attrs;
}

op::GradFn RangeGradient(std::string_view grad) {
  return [grad](GradContext& g) {
    const std::vector<op::Value> all = g.ApplyAll(grad, {g.Dy(0), g.X(0), g.X(1), g.X(2)}, QuantSteps(g, false));
    return std::vector<Grad>(all.begin(), all.end());
  };
}

OpBuilder FakeQuant(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kNeural); }

OpBuilder& Bits(OpBuilder& op) { return op.Attr("num_bits: int = 8").Attr("narrow_range: bool = false"); }

constexpr const char* kDoc =
    "inputs limited to [min, max] and rounded to one of 2^num_bits numbers at equal distances, of which one is 0; the "
    "range is moved for that. narrow_range leaves out the least of them.";
constexpr const char* kGradDoc =
    "The gradients of a fake quantisation: gradients where the input is in range; by min and max, their sums below and "
    "above it.";

void DeclareByAttrs(OpRegistry& ops) {
  OpBuilder forward = FakeQuant(ops, "FakeQuantWithMinMaxArgs");
  Bits(forward.In("inputs: float").Out("outputs: float").Attr("min: float = -6.0").Attr("max: float = 6.0"))
      .Doc(kDoc)
      .Shape(SameShape)
      .Grad([](GradContext& g) {
        return One(g.Apply("FakeQuantWithMinMaxArgsGradient", {g.Dy(0), g.X(0)}, QuantSteps(g, true)));
      });
  OpBuilder grad = FakeQuant(ops, "FakeQuantWithMinMaxArgsGradient");
  grad.In("gradients: float").In("inputs: float").Out("backprops: float");
  Bits(grad.Attr("min: float = -6.0").Attr("max: float = 6.0")).Doc(kGradDoc).Shape(SameShape).NoGradient(kRounded);
}

void DeclareByInputs(OpRegistry& ops, const std::string& name, const op::ShapeFn& shape) {
  OpBuilder forward = FakeQuant(ops, name);
  Bits(forward.In("inputs: float").In("min: float").In("max: float").Out("outputs: float"))
      .Doc(kDoc)
      .Shape(shape)
      .Grad([grad = name + "Gradient"](GradContext& g) { return RangeGradient(grad)(g); });
  OpBuilder grad = FakeQuant(ops, name + "Gradient");
  grad.In("gradients: float").In("inputs: float").In("min: float").In("max: float");
  grad.Out("backprops_wrt_input: float").Out("backprop_wrt_min: float").Out("backprop_wrt_max: float");
  Bits(grad).Doc(kGradDoc).Shape(shape).NoGradient(kRounded);
}

}  // namespace

void DeclareFakeQuant(OpRegistry& ops) {
  DeclareByAttrs(ops);
  DeclareByInputs(ops, "FakeQuantWithMinMaxVars", FakeQuantShape);
  DeclareByInputs(ops, "FakeQuantWithMinMaxVarsPerChannel", FakeQuantChannelShape);
}

}  // namespace weir::ops
