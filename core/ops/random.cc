// Stateful random ops with TensorFlow's Philox generator: equal seeds give equal numbers.
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {
namespace {

using op::Broadcast;
using op::Category;
using op::Grad;
using op::GradContext;
using op::OpBuilder;
using op::OpRegistry;
using op::SameAs;
using op::ShapeContext;
using op::Value;

Status SampleShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape shape, c.shape_from(0));
  c.set_output(0, std::move(shape));
  return Status();
}

/// `minval` and `maxval` are scalars.
Status IntegerSampleShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(1, 0).status());
  WEIR_TRY(c.WithRank(2, 0).status());
  return SampleShape(c);
}

Status MultinomialShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape logits, c.WithRank(0, 2));
  WEIR_ASSIGN(const int64_t count, DimFromScalar(c, 1));
  c.set_output(0, PartialShape::Of({logits.dim(0), count}));
  return Status();
}

/// The shape in input 0, followed by that of the parameter in input 1.
Status PerParameterShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape head, c.shape_from(0));
  WEIR_ASSIGN(PartialShape shape, Join(head, c.input(1)));
  c.set_output(0, std::move(shape));
  return Status();
}

/// The samples of one parameter lie along the leading axes, over which their derivatives are summed.
std::vector<Grad> RandomGammaGradient(GradContext& g) {
  const Value by_alpha = g.Apply("RandomGammaGrad", {g.X(1), g.Y(0)});
  const Value axes = g.Apply("Range", {g.ConstInt(0), g.Apply("Size", {g.X(0)}), g.ConstInt(1)});
  return {Grad::None(), g.Apply("Sum", {g.Mul(g.Dy(0), by_alpha), axes})};
}

/// If both seeds are 0 an arbitrary seed is used. Each node of a session has a separate generator, which continues from
/// run to run. A shape is an integer vector.
OpBuilder Random(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kRandom); }

void DeclareNumbers(OpRegistry& ops) {
  Random(ops, "RandomUniform")
      .In("shape: T")
      .Out("output: dtype")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("dtype: {half, bfloat16, float, double}")
      .Attr("T: {int32, int64}")
      .Stateful()
      .Shape(SampleShape)
      .NoGradient("the only input is an integer shape, which carries no gradient")
      .Doc("Independent numbers of the given shape, uniform in [0, 1).");
  Random(ops, "RandomStandardNormal")
      .In("shape: T")
      .Out("output: dtype")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("dtype: {half, bfloat16, float, double}")
      .Attr("T: {int32, int64}")
      .Stateful()
      .Shape(SampleShape)
      .NoGradient("the only input is an integer shape, which carries no gradient")
      .Doc("Independent numbers of the given shape, normal with mean 0 and deviation 1.");
  Random(ops, "TruncatedNormal")
      .In("shape: T")
      .Out("output: dtype")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("dtype: {half, bfloat16, float, double}")
      .Attr("T: {int32, int64}")
      .Stateful()
      .Shape(SampleShape)
      .NoGradient("the only input is an integer shape, which carries no gradient")
      .Doc("Independent numbers of the given shape, normal with mean 0 and deviation 1 but drawn again when beyond 2.");
  Random(ops, "RandomUniformInt")
      .In("shape: T")
      .In("minval: Tout")
      .In("maxval: Tout")
      .Out("output: Tout")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("Tout: {int32, int64}")
      .Attr("T: {int32, int64}")
      .Stateful()
      .Shape(IntegerSampleShape)
      .NoGradient(kDiscrete)
      .Doc("Independent integers of the given shape, uniform in [minval, maxval).");
  Random(ops, "RandomShuffle")
      .In("value: T")
      .Out("output: T")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("T: type")
      .Stateful()
      .MovesElements()
      .Shape(SameAs(0))
      .NoGradient("TensorFlow passes none through a shuffle")
      .Doc("The rows of `value` in random order.");
  Random(ops, "Multinomial")
      .In("logits: T")
      .In("num_samples: int32")
      .Out("output: output_dtype")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("output_dtype: {int32, int64} = DT_INT64")
      .Attr("T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64}")
      .Stateful()
      .Shape(MultinomialShape)
      .NoGradient(kDiscrete)
      .Doc(
          "For each row of logits [batch, classes], num_samples class numbers with the probabilities softmax(logits).");
}

void DeclareParameterized(OpRegistry& ops) {
  Random(ops, "RandomGamma")
      .In("shape: S")
      .In("alpha: T")
      .Out("output: T")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("T: {half, float, double}")
      .Attr("S: {int32, int64}")
      .Stateful()
      .Shape(PerParameterShape)
      .Grad(RandomGammaGradient)
      .Doc(
          "Independent gamma numbers with scale 1: for every element of `alpha` a block of the given shape. Output: "
          "shape + alpha.shape.");
  Random(ops, "RandomPoisson")
      .In("shape: S")
      .In("rate: dtype")
      .Out("output: dtype")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("dtype: {half, float, double}")
      .Attr("S: {int32, int64}")
      .Stateful()
      .Shape(PerParameterShape)
      .NoGradient(kDiscrete)
      .Doc(
          "Independent Poisson numbers: for every element of `rate` a block of the given shape. Output: shape + "
          "rate.shape.");
  Random(ops, "RandomPoissonV2")
      .In("shape: S")
      .In("rate: R")
      .Out("output: dtype")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("dtype: {half, float, double, int32, int64} = DT_INT64")
      .Attr("S: {int32, int64}")
      .Attr("R: {half, float, double, int32, int64} = DT_DOUBLE")
      .Stateful()
      .Shape(PerParameterShape)
      .NoGradient(kDiscrete)
      .Doc(
          "Independent Poisson numbers of type `dtype`: for every element of `rate` a block of the given shape. "
          "Output: shape + rate.shape.");
}

}  // namespace

void DeclareRandom(OpRegistry& ops) {
  DeclareNumbers(ops);
  DeclareParameterized(ops);
}

}  // namespace weir::ops
