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
}

}  // namespace weir::ops
