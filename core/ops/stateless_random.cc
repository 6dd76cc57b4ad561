// Random ops without state: equal seeds, or keys and counters, give TensorFlow's numbers. Generators in variables.
#include <numbers>
#include <utility>

#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {
namespace {

using op::Category;
using op::Grad;
using op::GradContext;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;
using op::Value;

/// Input i is a vector of two seeds.
Status CheckSeed(const ShapeContext& c, int i) {
  WEIR_ASSIGN(const PartialShape seed, c.WithRank(i, 1));
  return ExpectDim(seed.dim(0), 2);
}

Status ShapeOfInput(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape shape, c.shape_from(0));
  c.set_output(0, std::move(shape));
  return Status();
}

Status SeededShape(ShapeContext& c) {
  WEIR_TRY(CheckSeed(c, 1));
  return ShapeOfInput(c);
}

Status SeededRangeShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(2, 0).status());
  WEIR_TRY(c.WithRank(3, 0).status());
  return SeededShape(c);
}

Status SeededMultinomialShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape logits, c.WithRank(0, 2));
  WEIR_ASSIGN(const int64_t count, DimFromScalar(c, 1));
  WEIR_TRY(CheckSeed(c, 2));
  c.set_output(0, PartialShape::Of({logits.dim(0), count}));
  return Status();
}

/// Key [1], counter [2] or longer, algorithm.
Status KeyedShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape key, c.WithRank(1, 1));
  WEIR_TRY(ExpectDim(key.dim(0), 1));
  WEIR_TRY(c.WithRank(2, 1).status());
  WEIR_TRY(c.WithRank(3, 0).status());
  return ShapeOfInput(c);
}

Status ShuffleShape(ShapeContext& c) {
  const PartialShape value = c.input(0);
  WEIR_ASSIGN(const PartialShape key, c.WithRank(1, 1));
  WEIR_TRY(ExpectDim(key.dim(0), 1));
  WEIR_TRY(c.WithRank(2, 1).status());
  WEIR_TRY(c.WithRank(3, 0).status());
  c.set_output(0, value);
  return Status();
}

Status KeyedRangeShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(4, 0).status());
  WEIR_TRY(c.WithRank(5, 0).status());
  return KeyedShape(c);
}

Status KeyCounterShape(ShapeContext& c) {
  WEIR_TRY(CheckSeed(c, 0));
  c.set_output(0, VectorOf(1));
  c.set_output(1, VectorOf(2));
  if (c.num_outputs() > 2) c.set_output(2, PartialShape::OfRank(0));
  return Status();
}

Status SkipShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) WEIR_TRY(c.WithRank(i, 0).status());
  return Status();
}

Status ReadAndSkipShape(ShapeContext& c) {
  c.set_output(0, VectorOf(3));
  return SkipShape(c);
}

OpBuilder Stateless(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kRandom); }

void DeclareSeeded(OpRegistry& ops) {
  Stateless(ops, "StatelessRandomUniform")
      .In("shape: T")
      .In("seed: Tseed")
      .Out("output: dtype")
      .Attr("dtype: {half, bfloat16, float, double} = DT_FLOAT")
      .Attr("Tseed: {int32, int64} = DT_INT64")
      .Attr("T: {int32, int64} = DT_INT32")
      .Shape(SeededShape)
      .NoGradient("its inputs are integers, which carry no gradient")
      .Doc("Numbers uniform in [0, 1); equal seeds [2] give equal numbers.");
  Stateless(ops, "StatelessRandomNormal")
      .In("shape: T")
      .In("seed: Tseed")
      .Out("output: dtype")
      .Attr("dtype: {half, bfloat16, float, double} = DT_FLOAT")
      .Attr("Tseed: {int32, int64} = DT_INT64")
      .Attr("T: {int32, int64} = DT_INT32")
      .Shape(SeededShape)
      .NoGradient("its inputs are integers, which carry no gradient")
      .Doc("Normal numbers with mean 0 and deviation 1; equal seeds [2] give equal numbers.");
  Stateless(ops, "StatelessTruncatedNormal")
      .In("shape: T")
      .In("seed: Tseed")
      .Out("output: dtype")
      .Attr("dtype: {half, bfloat16, float, double} = DT_FLOAT")
      .Attr("Tseed: {int32, int64} = DT_INT64")
      .Attr("T: {int32, int64} = DT_INT32")
      .Shape(SeededShape)
      .NoGradient("its inputs are integers, which carry no gradient")
      .Doc(
          "Normal numbers with mean 0 and deviation 1, drawn again when beyond 2; equal seeds [2] give equal numbers.");
  Stateless(ops, "StatelessRandomUniformInt")
      .In("shape: T")
      .In("seed: Tseed")
      .In("minval: dtype")
      .In("maxval: dtype")
      .Out("output: dtype")
      .Attr("dtype: {int32, int64}")
      .Attr("Tseed: {int32, int64} = DT_INT64")
      .Attr("T: {int32, int64}")
      .Shape(SeededRangeShape)
      .NoGradient("its inputs are integers, which carry no gradient")
      .Doc("Integers uniform in [minval, maxval); equal seeds [2] give equal numbers.");
  Stateless(ops, "StatelessRandomUniformFullInt")
      .In("shape: T")
      .In("seed: Tseed")
      .Out("output: dtype")
      .Attr("dtype: {int32, int64, uint32, uint64} = DT_UINT64")
      .Attr("Tseed: {int32, int64, uint32, uint64} = DT_INT64")
      .Attr("T: {int32, int64} = DT_INT32")
      .Shape(SeededShape)
      .NoGradient("its inputs are integers, which carry no gradient")
      .Doc("Integers uniform in the whole range of their type; equal seeds [2] give equal numbers.");
  Stateless(ops, "StatelessMultinomial")
      .In("logits: T")
      .In("num_samples: int32")
      .In("seed: Tseed")
      .Out("output: output_dtype")
      .Attr("output_dtype: {int32, int64} = DT_INT64")
      .Attr("Tseed: {int32, int64} = DT_INT64")
      .Attr("T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64}")
      .Shape(SeededMultinomialShape)
      .NoGradient(kDiscrete)
      .Doc(
          "For each row of logits [batch, classes], num_samples class numbers with the probabilities softmax(logits); "
          "equal seeds [2] give equal numbers.");
}

/// Input 0 is the shape, which ends with that of the parameters.
Status ParameterShape(ShapeContext& c, int parameters) {
  WEIR_ASSIGN(PartialShape shape, c.shape_from(0));
  const PartialShape& inner = c.input(parameters);
  if (shape.has_rank() && inner.has_rank()) {
    const bool fits = inner.rank() <= shape.rank() && Span(shape, shape.rank() - inner.rank()).Merge(inner).ok();
    if (!fits) return InvalidArgument("Shape passed in must end with broadcasted shape.");
  }
  c.set_output(0, std::move(shape));
  return Status();
}

Status SeededParameterShape(ShapeContext& c) {
  WEIR_TRY(CheckSeed(c, 1));
  return ParameterShape(c, 2);
}

Status KeyedParameterShape(ShapeContext& c) {
  WEIR_TRY(KeyedShape(c));
  return ParameterShape(c, 4);
}

/// dy times the derivative of the sample by alpha, summed over the samples.
std::vector<Grad> GammaGradient(GradContext& g, int alpha) {
  const Value slopes = g.Mul(g.Dy(0), g.Apply("RandomGammaGrad", {g.X(alpha), g.Y(0)}));
  const Value shape = g.ShapeOp(g.X(alpha));
  const Value axes = g.ApplyAll("BroadcastGradientArgs", {g.ShapeOp(g.Y(0)), shape})[1];
  std::vector<Grad> grads(static_cast<size_t>(g.num_inputs()));
  grads[static_cast<size_t>(alpha)] = g.Reshape(g.Apply("Sum", {slopes, axes}), shape);
  return grads;
}

/// The distribution function of normal numbers.
Value NormalCdf(GradContext& g, Value x) {
  const Value edge = g.ConstLike(x, 0.5 * std::numbers::sqrt2);
  const Value w = g.Mul(x, edge), z = g.Apply("Abs", {w});
  const Value rest = g.Apply("Erfc", {z});
  const Value tail =
      g.Apply("SelectV2", {g.Apply("Greater", {w, g.ConstLike(x, 0)}), g.Sub(g.ConstLike(x, 2), rest), rest});
  const Value middle = g.Add(g.ConstLike(x, 1), g.Apply("Erf", {w}));
  return g.Mul(g.ConstLike(x, 0.5), g.Apply("SelectV2", {g.Apply("Less", {z, edge}), middle, tail}));
}

/// Smallest normal number and distance of 1 to the next number.
std::pair<double, double> TinyAndEpsilon(DType type) {
  if (type == DType::kHalf) return {0x1p-14, 0x1p-10};
  if (type == DType::kFloat) return {0x1p-126, 0x1p-23};
  return {0x1p-1022, 0x1p-52};
}

/// Of mean, deviation and bounds, by implicit differentiation. M. Figurnov, S. Mohamed and A. Mnih, "Implicit
/// reparameterization gradients" (2018).
std::vector<Grad> TruncatedNormalGradient(GradContext& g) {
  const Value mean = g.X(2), deviation = g.X(3);
  const auto standard = [&](Value v) { return g.Div(g.Sub(v, mean), deviation); };
  const Value low = standard(g.X(4)), high = standard(g.X(5)), sample = standard(g.Y(0));
  const Value below = NormalCdf(g, low);
  const Value portion = g.Div(g.Sub(NormalCdf(g, sample), below), g.Sub(NormalCdf(g, high), below));
  const auto [tiny, epsilon] = TinyAndEpsilon(g.TypeOf(mean));
  const Value clipped = g.Apply(
      "Maximum", {g.Apply("Minimum", {portion, g.ConstLike(portion, 1 - epsilon)}), g.ConstLike(portion, tiny)});
  const auto of_bound = [&](Value bound, Value log_portion) {
    const Value squares = g.Sub(g.Apply("Square", {sample}), g.Apply("Square", {bound}));
    return g.Apply("Exp", {g.Add(g.Mul(g.ConstLike(squares, 0.5), squares), log_portion)});
  };
  const Value slopes[] = {g.Apply("OnesLike", {sample}), sample, of_bound(low, g.Apply("Log1p", {g.Neg(clipped)})),
                          of_bound(high, g.Apply("Log", {clipped}))};
  std::vector<Grad> grads(6);
  for (int i = 0; i < 4; ++i) {
    const Value shape = g.ShapeOp(g.X(2 + i));
    const std::vector<Value> axes = g.ApplyAll("BroadcastGradientArgs", {g.ShapeOp(g.Y(0)), shape});
    if (axes.size() < 2) return grads;  // the context has the error
    grads[static_cast<size_t>(2 + i)] = g.Reshape(g.Apply("Sum", {g.Mul(g.Dy(0), slopes[i]), axes[1]}), shape);
  }
  return grads;
}

void DeclareSeveralParameters(OpRegistry& ops) {
  Stateless(ops, "StatelessRandomBinomial")
      .In("shape: S")
      .In("seed: Tseed")
      .In("counts: T")
      .In("probs: T")
      .Out("output: dtype")
      .Attr("S: {int32, int64}")
      .Attr("Tseed: {int32, int64} = DT_INT64")
      .Attr("T: {half, float, double, int32, int64} = DT_DOUBLE")
      .Attr("dtype: {half, float, double, int32, int64} = DT_INT64")
      .Shape(SeededShape)
      .NoGradient(kDiscrete)
      .Doc(
          "How many of `counts` trials succeed that do so with the probability `probs`; `shape` ends with the shape to "
          "which both broadcast. Equal seeds [2] give equal numbers.");
  Stateless(ops, "StatelessParameterizedTruncatedNormal")
      .In("shape: S")
      .In("seed: Tseed")
      .In("means: dtype")
      .In("stddevs: dtype")
      .In("minvals: dtype")
      .In("maxvals: dtype")
      .Out("output: dtype")
      .Attr("S: {int32, int64}")
      .Attr("Tseed: {int32, int64} = DT_INT64")
      .Attr("dtype: {half, float, double}")
      .Shape(SeededShape)
      .Grad(TruncatedNormalGradient)
      .Doc(
          "Normal numbers between two bounds, one of which may be infinite; `shape` ends with the shape to which the "
          "parameters broadcast. Equal seeds [2] give equal numbers.");
}

void DeclareRejected(OpRegistry& ops) {
  Stateless(ops, "StatelessRandomGammaV2")
      .In("shape: T")
      .In("seed: Tseed")
      .In("alpha: dtype")
      .Out("output: dtype")
      .Attr("dtype: {half, float, double}")
      .Attr("T: {int32, int64}")
      .Attr("Tseed: {int32, int64} = DT_INT64")
      .Shape(SeededParameterShape)
      .Grad([](GradContext& g) { return GammaGradient(g, 2); })
      .Doc("Numbers of gamma distributions; `shape` ends with the shape of alpha. Equal seeds [2] give equal numbers.");
  Stateless(ops, "StatelessRandomGammaV3")
      .In("shape: shape_dtype")
      .In("key: uint64")
      .In("counter: uint64")
      .In("alg: int32")
      .In("alpha: dtype")
      .Out("output: dtype")
      .Attr("dtype: {half, float, double}")
      .Attr("shape_dtype: {int32, int64} = DT_INT32")
      .Shape(KeyedParameterShape)
      .Grad([](GradContext& g) { return GammaGradient(g, 4); })
      .Doc("Numbers of gamma distributions that follow from key [1], counter [2] and algorithm.");
  Stateless(ops, "StatelessRandomPoisson")
      .In("shape: T")
      .In("seed: Tseed")
      .In("lam: Rtype")
      .Out("output: dtype")
      .Attr("Rtype: {half, float, double, int32, int64}")
      .Attr("dtype: {half, float, double, int32, int64}")
      .Attr("T: {int32, int64}")
      .Attr("Tseed: {int32, int64} = DT_INT64")
      .Shape(SeededParameterShape)
      .NoGradient(kDiscrete)
      .Doc("Numbers of Poisson distributions; `shape` ends with the shape of lam. Equal seeds [2] give equal numbers.");
}

void DeclareKeyed(OpRegistry& ops) {
  Stateless(ops, "StatelessRandomUniformV2")
      .In("shape: Tshape")
      .In("key: uint64")
      .In("counter: uint64")
      .In("alg: int32")
      .Out("output: dtype")
      .Attr("dtype: {half, bfloat16, float, double} = DT_FLOAT")
      .Attr("Tshape: {int32, int64} = DT_INT32")
      .Shape(KeyedShape)
      .NoGradient("its inputs are integers, which carry no gradient")
      .Doc("Numbers uniform in [0, 1) that follow from key [1], counter [2] and algorithm.");
  Stateless(ops, "StatelessRandomNormalV2")
      .In("shape: Tshape")
      .In("key: uint64")
      .In("counter: uint64")
      .In("alg: int32")
      .Out("output: dtype")
      .Attr("dtype: {half, bfloat16, float, double} = DT_FLOAT")
      .Attr("Tshape: {int32, int64} = DT_INT32")
      .Shape(KeyedShape)
      .NoGradient("its inputs are integers, which carry no gradient")
      .Doc("Normal numbers with mean 0 and deviation 1 that follow from key [1], counter [2] and algorithm.");
  Stateless(ops, "StatelessTruncatedNormalV2")
      .In("shape: Tshape")
      .In("key: uint64")
      .In("counter: uint64")
      .In("alg: int32")
      .Out("output: dtype")
      .Attr("dtype: {half, bfloat16, float, double} = DT_FLOAT")
      .Attr("Tshape: {int32, int64} = DT_INT32")
      .Shape(KeyedShape)
      .NoGradient("its inputs are integers, which carry no gradient")
      .Doc(
          "Normal numbers with mean 0 and deviation 1, drawn again when beyond 2, that follow from key [1], counter "
          "[2] and algorithm.");
  Stateless(ops, "StatelessRandomUniformIntV2")
      .In("shape: Tshape")
      .In("key: uint64")
      .In("counter: uint64")
      .In("alg: int32")
      .In("minval: dtype")
      .In("maxval: dtype")
      .Out("output: dtype")
      .Attr("dtype: {int32, int64, uint32, uint64}")
      .Attr("Tshape: {int32, int64} = DT_INT32")
      .Shape(KeyedRangeShape)
      .NoGradient("its inputs are integers, which carry no gradient")
      .Doc("Integers uniform in [minval, maxval) that follow from key [1], counter [2] and algorithm.");
  Stateless(ops, "StatelessRandomUniformFullIntV2")
      .In("shape: Tshape")
      .In("key: uint64")
      .In("counter: uint64")
      .In("alg: int32")
      .Out("output: dtype")
      .Attr("dtype: {int32, int64, uint32, uint64} = DT_UINT64")
      .Attr("Tshape: {int32, int64} = DT_INT32")
      .Shape(KeyedShape)
      .NoGradient("its inputs are integers, which carry no gradient")
      .Doc("Integers uniform in the whole range of their type that follow from key [1], counter [2] and algorithm.");
}

void DeclareGenerators(OpRegistry& ops) {
  Stateless(ops, "StatelessRandomGetKeyCounter")
      .In("seed: Tseed")
      .Out("key: uint64")
      .Out("counter: uint64")
      .Attr("Tseed: {int32, int64} = DT_INT64")
      .Shape(KeyCounterShape)
      .NoGradient("its inputs are integers, which carry no gradient")
      .Doc("The key [1] and counter [2] of a seed [2] for the Philox generator.");
  Stateless(ops, "StatelessRandomGetKeyCounterAlg")
      .In("seed: Tseed")
      .Out("key: uint64")
      .Out("counter: uint64")
      .Out("alg: int32")
      .Attr("Tseed: {int32, int64} = DT_INT64")
      .Shape(KeyCounterShape)
      .NoGradient("its inputs are integers, which carry no gradient")
      .Doc("The key [1], counter [2] and algorithm of a seed [2].");
  Stateless(ops, "StatelessRandomGetAlg")
      .Out("alg: int32")
      .Stateful()
      .Shape(op::Scalar())
      .NoGradient(kDiscrete)
      .Doc("The algorithm of the device: 1, Philox.");
  Stateless(ops, "RngReadAndSkip")
      .In("resource: resource")
      .In("alg: int32")
      .In("delta: uint64")
      .Out("value: int64")
      .Stateful()
      .Shape(ReadAndSkipShape)
      .NoGradient(kUpdate)
      .Doc(
          "The state [3] of the generator in an int64 variable, which then moves on by the numbers that `delta` "
          "samples may use.");
  Stateless(ops, "RngSkip")
      .In("resource: resource")
      .In("algorithm: int64")
      .In("delta: int64")
      .Stateful()
      .Shape(SkipShape)
      .NoGradient(kUpdate)
      .Doc("Moves the generator in an int64 variable on by the numbers that `delta` samples may use.");
}

void DeclareShuffle(OpRegistry& ops) {
  Stateless(ops, "StatelessShuffle")
      .In("value: T")
      .In("key: uint64")
      .In("counter: uint64")
      .In("alg: int32")
      .Out("output: T")
      .Attr("T: type")
      .MovesElements()
      .Shape(ShuffleShape)
      .NoGradient("TensorFlow passes none through a shuffle")
      .Doc("The rows of `value` in an order that follows from key [1], counter [2] and algorithm.");
}

}  // namespace

void DeclareStateless(OpRegistry& ops) {
  DeclareSeeded(ops);
  DeclareRejected(ops);
  DeclareSeveralParameters(ops);
  DeclareKeyed(ops);
  DeclareGenerators(ops);
  DeclareShuffle(ops);
}

}  // namespace weir::ops
