// Incomplete gamma and beta functions and their derivatives.
#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Grad;
using op::GradContext;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;
using op::Value;

constexpr std::string_view kWideT = "T: {float, double}";

/// By a: IgammaGradA; by x: e^-x x^(a - 1) / Gamma(a), as the exponential of a sum.
std::vector<Grad> LowerGammaGradient(GradContext& g, Value dy) {
  const Value a = g.X(0), x = g.X(1);
  const Value by_a = g.Apply("IgammaGradA", {a, x});
  const Value power = g.Mul(g.Sub(a, g.ConstLike(a, 1)), g.Apply("Log", {x}));
  const Value by_x = g.Apply("Exp", {g.Sub(g.Sub(power, x), g.Apply("Lgamma", {a}))});
  return g.Unbroadcast(g.Mul(by_a, dy), g.Mul(by_x, dy));
}

/// By x only, as in TensorFlow: x^(a - 1) (1 - x)^(b - 1) / B(a, b).
std::vector<Grad> BetaGradient(GradContext& g) {
  const Value a = g.X(0), b = g.X(1), x = g.X(2);
  const auto lgamma = [&](Value v) { return g.Apply("Lgamma", {v}); };
  const auto less_one = [&](Value v) { return g.Sub(v, g.ConstLike(v, 1)); };
  const Value log_beta = g.Sub(g.Add(lgamma(a), lgamma(b)), lgamma(g.Add(a, b)));
  const Value powers = g.Add(g.Apply("Xlog1py", {less_one(b), g.Neg(x)}), g.Apply("Xlogy", {less_one(a), x}));
  const Value slope = g.Mul(g.Apply("Exp", {g.Sub(powers, log_beta)}), g.Dy(0));
  const std::vector<Value> axes = g.ApplyAll("BroadcastGradientArgs", {g.ShapeOp(slope), g.ShapeOp(x)});
  if (axes.size() != 2) return {Grad::None(), Grad::None(), Grad::None()};
  return {Grad::None(), Grad::None(), g.Reshape(g.Apply("Sum", {slope, axes[1]}), g.ShapeOp(x))};
}

/// Operands of one shape, except that each may be a scalar.
Status BetaShape(ShapeContext& c) {
  PartialShape out = PartialShape::OfRank(0);
  bool known = true;
  for (int i = 0; i < 3; ++i) {
    const PartialShape& in = c.input(i);
    if (in.rank() == 0) continue;
    known = known && in.has_rank();
    if (!in.has_rank()) continue;
    if (out.rank() == 0) {
      out = in;
    } else {
      WEIR_ASSIGN(out, out.Merge(in));
    }
  }
  c.set_output(0, known || out.rank() > 0 ? out : PartialShape());
  return Status();
}

OpBuilder PairOp(OpRegistry& ops, std::string_view name, std::string_view first, std::string_view second,
                 std::string_view types) {
  return ops.Declare(name).In(first).In(second).Attr(types).Shape(op::Broadcast(0, 1));
}

}  // namespace

void DeclareIncomplete(OpRegistry& ops) {
  PairOp(ops, "Igamma", "a: T", "x: T", kFloatT)
      .Out("z: T")
      .Grad([](GradContext& g) { return LowerGammaGradient(g, g.Dy(0)); })
      .Doc("The integral of t^(a - 1) e^-t from 0 to x, over Gamma(a), with broadcasting; NaN for negative operands.");
  PairOp(ops, "Igammac", "a: T", "x: T", kFloatT)
      .Out("z: T")
      .Grad([](GradContext& g) { return LowerGammaGradient(g, g.Neg(g.Dy(0))); })
      .Doc("1 - Igamma(a, x), exact for large x, with broadcasting.");
  PairOp(ops, "IgammaGradA", "a: T", "x: T", kWideT)
      .Out("z: T")
      .NoGradient(op::kUndefinedGradient)
      .Doc("The derivative of Igamma(a, x) by a, with broadcasting.");
  PairOp(ops, "RandomGammaGrad", "alpha: T", "sample: T", kWideT)
      .Out("output: T")
      .NoGradient(op::kUndefinedGradient)
      .Doc("The derivative by alpha of a sample of the gamma distribution with shape alpha, with broadcasting.");
  ops.Declare("Betainc")
      .In("a: T")
      .In("b: T")
      .In("x: T")
      .Out("z: T")
      .Attr(kWideT)
      .Shape(BetaShape)
      .Grad(BetaGradient)
      .Doc("The integral of t^(a - 1) (1 - t)^(b - 1) from 0 to x, over that to 1; each operand may be a scalar.");
}

}  // namespace weir::ops
