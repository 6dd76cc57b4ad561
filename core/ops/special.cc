// Special functions: error functions, gamma functions, and products with a logarithm or a quotient that are 0 at 0.
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Broadcast;
using op::Grad;
using op::GradContext;
using op::One;
using op::OpBuilder;
using op::OpRegistry;
using op::SameAs;
using op::Value;

constexpr double kTwoOverRootPi = 1.1283791670955126;
constexpr double kHalfRootPi = 0.8862269254527580;
constexpr double kHalfPi = 1.5707963267948966;
constexpr double kRootTwoPi = 2.5066282746310002;

OpBuilder Unary(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name).In("x: T").Out("y: T").Attr(kFloatT).Shape(SameAs(0));
}

/// dy * scale * e^-(x^2).
std::vector<Grad> BellGradient(GradContext& g, double scale) {
  const Value bell = g.Apply("Exp", {g.Neg(g.Apply("Square", {g.X(0)}))});
  return One(g.Mul(g.Mul(g.Dy(0), g.ConstLike(g.Dy(0), scale)), bell));
}

void DeclareErrorFunctions(OpRegistry& ops) {
  Unary(ops, "Erf").Doc("2 / sqrt(pi) times the integral of e^-(t^2) from 0 to x.").Grad([](GradContext& g) {
    return BellGradient(g, kTwoOverRootPi);
  });
  Unary(ops, "Erfc").Doc("1 - Erf(x), exact for large x.").Grad([](GradContext& g) {
    return BellGradient(g, -kTwoOverRootPi);
  });
  Unary(ops, "Erfinv").Doc("The number whose Erf is x; infinite at -1 and 1, NaN beyond.").Grad([](GradContext& g) {
    const Value scaled = g.Mul(g.Dy(0), g.ConstLike(g.Dy(0), kHalfRootPi));
    return One(g.Mul(scaled, g.Apply("Exp", {g.Apply("Square", {g.Y(0)})})));
  });
  Unary(ops, "Ndtri")
      .Doc("The quantile of the standard normal distribution at x; infinite at 0 and 1, NaN beyond.")
      .Grad([](GradContext& g) {
        const Value scaled = g.Mul(g.Dy(0), g.ConstLike(g.Dy(0), kRootTwoPi));
        const Value half = g.Div(g.Apply("Square", {g.Y(0)}), g.ConstLike(g.Y(0), 2));
        return One(g.Mul(scaled, g.Apply("Exp", {half})));
      });
}

void DeclareGammaFunctions(OpRegistry& ops) {
  Unary(ops, "Lgamma").Doc("log(|Gamma(x)|); infinite at 0 and the negative integers.").Grad([](GradContext& g) {
    return One(g.Mul(g.Dy(0), g.Apply("Digamma", {g.X(0)})));
  });
  Unary(ops, "Digamma").Doc("The derivative of Lgamma; NaN at the negative integers.").Grad([](GradContext& g) {
    return One(g.Mul(g.Dy(0), g.Apply("Polygamma", {g.ConstLike(g.X(0), 1), g.X(0)})));
  });
  ops.Declare("Polygamma")
      .In("a: T")
      .In("x: T")
      .Out("z: T")
      .Attr("T: {float, double}")
      .Shape(Broadcast(0, 1))
      .Doc("The a-th derivative of Digamma at x, with broadcasting; NaN where a is no whole number or below 0.")
      .Grad([](GradContext& g) {
        const Value next = g.Add(g.X(0), g.ConstLike(g.X(0), 1));
        const Value slope = g.Mul(g.Apply("Polygamma", {next, g.X(1)}), g.Dy(0));
        return std::vector<Grad>{Grad::None(), g.Unbroadcast(slope, slope)[1]};
      });
  ops.Declare("Zeta")
      .In("x: T")
      .In("q: T")
      .Out("z: T")
      .Attr("T: {float, double}")
      .Shape(Broadcast(0, 1))
      .Doc("The sum of (q + n)^-x for n = 0, 1, …, with broadcasting; infinite at x = 1, NaN below.")
      .Grad([](GradContext& g) {
        const Value next = g.Apply("Zeta", {g.Add(g.X(0), g.ConstLike(g.X(0), 1)), g.X(1)});
        const Value slope = g.Mul(g.Mul(g.Neg(g.X(0)), next), g.Dy(0));
        return std::vector<Grad>{Grad::None(), g.Unbroadcast(slope, slope)[1]};
      });
}

/// A function of one argument whose derivative is `slope` times dy.
void Function(OpRegistry& ops, std::string_view name, std::string_view doc, Value (*slope)(GradContext& g)) {
  Unary(ops, name).Doc(doc).Grad([slope](GradContext& g) { return One(g.Mul(g.Dy(0), slope(g))); });
}

Value OfX(GradContext& g, std::string_view op) { return g.Apply(op, {g.X(0)}); }
Value SignOfX(GradContext& g) { return OfX(g, "Sign"); }

/// `elsewhere`, but `there` where x is `place`.
Value Except(GradContext& g, double place, double there, Value elsewhere) {
  const Value at = g.Apply("Equal", {g.X(0), g.ConstLike(g.X(0), place)});
  return g.Apply("SelectV2", {at, g.ConstLike(g.X(0), there), elsewhere});
}

void DeclareModifiedBessel(OpRegistry& ops) {
  Function(ops, "BesselI0", "The modified Bessel function of the first kind of order 0.",
           [](GradContext& g) { return OfX(g, "BesselI1"); });
  Function(ops, "BesselI0e", "e^-|x| times BesselI0, which does not overflow.",
           [](GradContext& g) { return g.Sub(OfX(g, "BesselI1e"), g.Mul(SignOfX(g), g.Y(0))); });
  Function(ops, "BesselI1", "The modified Bessel function of the first kind of order 1.",
           [](GradContext& g) { return Except(g, 0, 0.5, g.Sub(OfX(g, "BesselI0"), g.Div(g.Y(0), g.X(0)))); });
  Function(ops, "BesselI1e", "e^-|x| times BesselI1, which does not overflow.", [](GradContext& g) {
    const Value shrink = g.Mul(g.Y(0), g.Add(SignOfX(g), g.Apply("Reciprocal", {g.X(0)})));
    return Except(g, 0, 0.5, g.Sub(OfX(g, "BesselI0e"), shrink));
  });
  Function(ops, "BesselK0", "The modified Bessel function of the second kind of order 0; infinite for x <= 0.",
           [](GradContext& g) { return g.Neg(OfX(g, "BesselK1")); });
  Function(ops, "BesselK0e", "e^x times BesselK0, which does not vanish.",
           [](GradContext& g) { return g.Sub(g.Y(0), OfX(g, "BesselK1e")); });
  Function(ops, "BesselK1", "The modified Bessel function of the second kind of order 1; infinite for x <= 0.",
           [](GradContext& g) { return g.Sub(g.Neg(OfX(g, "BesselK0")), g.Div(g.Y(0), g.X(0))); });
  Function(ops, "BesselK1e", "e^x times BesselK1, which does not vanish.", [](GradContext& g) {
    const Value share = g.Sub(g.ConstLike(g.X(0), 1), g.Apply("Reciprocal", {g.X(0)}));
    return g.Sub(g.Mul(g.Y(0), share), OfX(g, "BesselK0e"));
  });
}

void DeclareBessel(OpRegistry& ops) {
  Function(ops, "BesselJ0", "The Bessel function of the first kind of order 0.",
           [](GradContext& g) { return g.Neg(OfX(g, "BesselJ1")); });
  Function(ops, "BesselJ1", "The Bessel function of the first kind of order 1.",
           [](GradContext& g) { return Except(g, 0, 0.5, g.Sub(OfX(g, "BesselJ0"), g.Div(g.Y(0), g.X(0)))); });
  Function(ops, "BesselY0", "The Bessel function of the second kind of order 0; infinite for x <= 0.",
           [](GradContext& g) { return g.Neg(OfX(g, "BesselY1")); });
  Function(ops, "BesselY1", "The Bessel function of the second kind of order 1; infinite for x <= 0.",
           [](GradContext& g) { return g.Sub(OfX(g, "BesselY0"), g.Div(g.Y(0), g.X(0))); });
}

/// pi / 2 x^2.
Value QuarterTurns(GradContext& g) { return g.Mul(g.ConstLike(g.X(0), kHalfPi), OfX(g, "Square")); }

void DeclareIntegrals(OpRegistry& ops) {
  Function(ops, "Dawsn", "e^-(x^2) times the integral of e^(t^2) from 0 to x.", [](GradContext& g) {
    return g.Sub(g.ConstLike(g.X(0), 1), g.Mul(g.ConstLike(g.X(0), 2), g.Mul(g.X(0), g.Y(0))));
  });
  Function(ops, "Expint", "The integral of e^t / t from -infinity to x; NaN below 0.",
           [](GradContext& g) { return g.Div(OfX(g, "Exp"), g.X(0)); });
  Function(ops, "FresnelCos", "The integral of cos(pi / 2 t^2) from 0 to x.",
           [](GradContext& g) { return g.Apply("Cos", {QuarterTurns(g)}); });
  Function(ops, "FresnelSin", "The integral of sin(pi / 2 t^2) from 0 to x.",
           [](GradContext& g) { return g.Apply("Sin", {QuarterTurns(g)}); });
  Function(ops, "Spence", "The integral of log(t) / (1 - t) from 1 to x; NaN below 0.", [](GradContext& g) {
    const Value slope = g.Div(OfX(g, "Log"), g.Sub(g.ConstLike(g.X(0), 1), g.X(0)));
    return Except(g, 1, -1, slope);
  });
}

/// z = x * f(y), 0 where x is 0 whatever y is. The derivative by y is Xdivy(x, `divisor` of y).
OpBuilder ZeroAtZero(OpRegistry& ops, std::string_view name, Value (*divisor)(GradContext& g)) {
  return ops.Declare(name)
      .In("x: T")
      .In("y: T")
      .Out("z: T")
      .Attr(kInexactT)
      .Shape(Broadcast(0, 1))
      .Grad([op = std::string(name), divisor](GradContext& g) {
        const Value x = g.X(0), y = g.X(1);
        const Value some = g.Apply("Cast", {g.Apply("NotEqual", {x, g.ConstLike(x, 0)})}, {{"DstT", g.TypeOf(x)}});
        const Value dx = g.Mul(g.Apply(op, {some, y}), g.Dy(0));
        return g.Unbroadcast(dx, g.Mul(g.Apply("Xdivy", {x, divisor(g)}), g.Dy(0)));
      });
}

void DeclareProductsThatAreZeroAtZero(OpRegistry& ops) {
  ZeroAtZero(ops, "Xlogy", [](GradContext& g) {
    return g.X(1);
  }).Doc("x * log(y) with broadcasting, 0 where x is 0 whatever y is.");
  ZeroAtZero(ops, "Xlog1py", [](GradContext& g) {
    return g.Add(g.X(1), g.ConstLike(g.X(1), 1));
  }).Doc("x * log(1 + y) with broadcasting, 0 where x is 0 whatever y is.");
  ZeroAtZero(ops, "Xdivy", [](GradContext& g) {
    return g.Neg(g.Apply("Square", {g.X(1)}));
  }).Doc("x / y with broadcasting, 0 where x is 0 whatever y is.");
}

}  // namespace

void DeclareSpecial(OpRegistry& ops) {
  DeclareErrorFunctions(ops);
  DeclareGammaFunctions(ops);
  DeclareProductsThatAreZeroAtZero(ops);
  DeclareModifiedBessel(ops);
  DeclareBessel(ops);
  DeclareIntegrals(ops);
}

}  // namespace weir::ops
