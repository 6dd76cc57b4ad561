// Elementwise functions of one argument, and the ops of their gradients.
#include "core/base/errors.h"
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
using op::ShapeContext;
using op::Value;

OpBuilder Unary(OpRegistry& ops, std::string_view name, std::string_view type_attr) {
  return ops.Declare(name).In("x: T").Out("y: T").Attr(type_attr).Shape(SameAs(0)).Elementwise();
}

/// The shape of y. dy must have as many elements, in any shape.
Status PairShape(ShapeContext& c) {
  const int64_t y = c.input(0).elements(), dy = c.input(1).elements();
  if (y >= 0 && dy >= 0 && y != dy) {
    return InvalidArgument("The two arguments to a cwise op must have same number of elements, got {} and {}", y, dy);
  }
  c.set_output(0, c.input(0));
  return Status();
}

/// The gradient op of a function whose derivative is expressed by its result y.
OpBuilder GradOfResult(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name).In("y: T").In("dy: T").Out("z: T").Attr(kInexactT).Shape(PairShape).Elementwise();
}

std::vector<Grad> ReciprocalGradient(GradContext& g) { return One(g.Apply("ReciprocalGrad", {g.Y(0), g.Dy(0)})); }

void DeclareSigns(OpRegistry& ops) {
  Unary(ops, "Neg", kSignedT).Doc("-x, element by element; integers wrap around.").Grad([](GradContext& g) {
    return One(g.Neg(g.Dy(0)));
  });
  Unary(ops, "Abs", "T: {bfloat16, half, float, double, int8, int16, int32, int64}")
      .Doc("|x|, element by element; NaN stays NaN, the lowest integer stays itself.")
      .Grad([](GradContext& g) { return One(g.Mul(g.Dy(0), g.Apply("Sign", {g.X(0)}))); });
  Unary(ops, "Sign", kSignedT)
      .Doc("-1, 0 or 1 as x is negative, zero or positive; x / |x| (0 for 0) for complex x; NaN for NaN.")
      .Grad([](GradContext& g) { return One(g.Apply("ZerosLike", {g.X(0)})); });
  ops.Declare("Conj")
      .In("input: T")
      .Out("output: T")
      .Attr("T: {complex64, complex128, variant} = DT_COMPLEX64")
      .Shape(SameAs(0))
      .Doc("The complex conjugate a - ib of a + ib, element by element.")
      .Grad([](GradContext& g) { return One(g.Conj(g.Dy(0))); });
}

DType PartOf(DType complex) { return BaseType(complex) == DType::kComplex128 ? DType::kDouble : DType::kFloat; }

/// re + i im of real tensors.
Value ComplexOf(GradContext& g, Value re, Value im) {
  if (!re.exists()) return {};
  const bool wide = BaseType(g.TypeOf(re)) == DType::kDouble;
  return g.Apply("Complex", {re, im}, {{"Tout", wide ? DType::kComplex128 : DType::kComplex64}});
}

/// The part of a complex tensor that the op "Real" or "Imag" gives.
Value Part(GradContext& g, std::string_view op, Value z) {
  return z.exists() ? g.Apply(op, {z}, {{"Tout", PartOf(g.TypeOf(z))}}) : Value();
}

OpBuilder OfComplex(OpRegistry& ops, std::string_view name, std::string_view in, std::string_view out) {
  return ops.Declare(name)
      .In(in)
      .Out(out)
      .Attr("T: {complex64, complex128} = DT_COMPLEX64")
      .Attr("Tout: {float, double} = DT_FLOAT")
      .Shape(SameAs(0));
}

void DeclareComplexParts(OpRegistry& ops) {
  ops.Declare("Complex")
      .In("real: T")
      .In("imag: T")
      .Out("out: Tout")
      .Attr("T: {float, double} = DT_FLOAT")
      .Attr("Tout: {complex64, complex128} = DT_COMPLEX64")
      .Shape(Broadcast(0, 1))
      .Doc("real + i imag, with broadcasting.")
      .Grad([](GradContext& g) { return g.Unbroadcast(Part(g, "Real", g.Dy(0)), Part(g, "Imag", g.Dy(0))); });
  OfComplex(ops, "Real", "input: T", "output: Tout")
      .Doc("The real part a of a + ib, element by element.")
      .Grad([](GradContext& g) { return One(ComplexOf(g, g.Dy(0), g.ConstLike(g.Dy(0), 0))); });
  OfComplex(ops, "Imag", "input: T", "output: Tout")
      .Doc("The imaginary part b of a + ib, element by element.")
      .Grad([](GradContext& g) { return One(ComplexOf(g, g.ConstLike(g.Dy(0), 0), g.Dy(0))); });
  OfComplex(ops, "ComplexAbs", "x: T", "y: Tout")
      .Doc("The length sqrt(a^2 + b^2) of a + ib, element by element, without overflow in between.")
      .Grad([](GradContext& g) {
        const Value y = g.Y(0), dy = g.Dy(0);
        const Value along = g.Mul(ComplexOf(g, dy, g.Apply("ZerosLike", {dy})), g.X(0));
        return One(g.Apply("DivNoNan", {along, ComplexOf(g, y, g.Apply("ZerosLike", {y}))}));
      });
  OfComplex(ops, "Angle", "input: T", "output: Tout")
      .Doc(
          "The angle atan2(b, a) of a + ib in [-pi, pi], element by element; of a negative real number by the sign of "
          "b.")
      .Grad([](GradContext& g) {
        const Value x = g.X(0);
        const Value inverse = g.Apply("Reciprocal", {ComplexOf(g, Part(g, "Imag", x), Part(g, "Real", x))});
        return One(g.Mul(g.Neg(ComplexOf(g, g.Dy(0), g.ConstLike(g.Dy(0), 0))), inverse));
      });
}

void DeclareRounding(OpRegistry& ops) {
  const char* kFlat = "piecewise constant: the derivative is zero wherever there is one";
  Unary(ops, "Floor", kFloatT).Doc("The largest whole number not above x.").NoGradient(kFlat);
  Unary(ops, "Ceil", kFloatT).Doc("The smallest whole number not below x.").NoGradient(kFlat);
  Unary(ops, "Rint", kFloatT).Doc("The whole number nearest to x, halves to the even one.").NoGradient(kFlat);
  Unary(ops, "Round", kSignedT)
      .Doc("The whole number nearest to x, halves to the even one; real and imaginary part each; integers unchanged.")
      .NoGradient(kFlat);
}

void DeclarePowers(OpRegistry& ops) {
  const char* kReciprocalDoc = "1 / x, element by element; infinite at 0.";
  Unary(ops, "Reciprocal", kSignedT).Doc(kReciprocalDoc).Grad(ReciprocalGradient);
  Unary(ops, "Inv", kSignedT).Doc(kReciprocalDoc).Grad(ReciprocalGradient);
  Unary(ops, "Square", kArithmeticT).Doc("x * x, element by element; integers wrap around.").Grad([](GradContext& g) {
    const Value x = g.Conj(g.X(0));
    const Value twice = g.Mul(x, g.ConstLike(x, 2));
    return One(g.Mul(g.Dy(0), twice));
  });
  Unary(ops, "Sqrt", kInexactT).Doc("The square root of x; NaN below 0 for real types.").Grad([](GradContext& g) {
    return One(g.Apply("SqrtGrad", {g.Y(0), g.Dy(0)}));
  });
  Unary(ops, "Rsqrt", kInexactT)
      .Doc("1 / sqrt(x), element by element; infinite at 0, NaN below 0 for real types.")
      .Grad([](GradContext& g) {
        return One(g.Apply("RsqrtGrad", {g.Y(0), g.Dy(0)}));
      });
}

/// dy / (1 - x^2) or dy / (1 + x^2), or with the root of the divisor.
enum class Root { kNo, kYes };
Value OverOneAndSquare(GradContext& g, std::string_view op, Root root) {
  const Value x = g.Conj(g.X(0));
  const Value divisor = g.Apply(op, {g.ConstLike(x, 1), g.Apply("Square", {x})});
  return g.Mul(g.Dy(0), g.Apply("Reciprocal", {root == Root::kYes ? g.Apply("Sqrt", {divisor}) : divisor}));
}

void DeclareTrigonometry(OpRegistry& ops) {
  Unary(ops, "Sin", kInexactT).Doc("The sine of x in radians, element by element.").Grad([](GradContext& g) {
    return One(g.Mul(g.Dy(0), g.Apply("Cos", {g.Conj(g.X(0))})));
  });
  Unary(ops, "Cos", kInexactT).Doc("The cosine of x in radians, element by element.").Grad([](GradContext& g) {
    return One(g.Mul(g.Neg(g.Dy(0)), g.Apply("Sin", {g.Conj(g.X(0))})));
  });
  Unary(ops, "Tan", kInexactT).Doc("The tangent of x in radians, element by element.").Grad([](GradContext& g) {
    const Value secant = g.Apply("Reciprocal", {g.Apply("Cos", {g.Conj(g.X(0))})});
    return One(g.Mul(g.Apply("Square", {secant}), g.Dy(0)));
  });
  Unary(ops, "Asin", kInexactT)
      .Doc("The angle in [-pi/2, pi/2] whose sine is x; NaN beyond [-1, 1] for real types.")
      .Grad([](GradContext& g) { return One(OverOneAndSquare(g, "Sub", Root::kYes)); });
  Unary(ops, "Acos", kInexactT)
      .Doc("The angle in [0, pi] whose cosine is x; NaN beyond [-1, 1] for real types.")
      .Grad([](GradContext& g) { return One(g.Neg(OverOneAndSquare(g, "Sub", Root::kYes))); });
  Unary(ops, "Atan", kInexactT).Doc("The angle in [-pi/2, pi/2] whose tangent is x.").Grad([](GradContext& g) {
    return One(OverOneAndSquare(g, "AddV2", Root::kNo));
  });
}

void DeclareHyperbolics(OpRegistry& ops) {
  Unary(ops, "Sinh", kInexactT).Doc("(e^x - e^-x) / 2, element by element.").Grad([](GradContext& g) {
    return One(g.Mul(g.Dy(0), g.Apply("Cosh", {g.Conj(g.X(0))})));
  });
  Unary(ops, "Cosh", kInexactT).Doc("(e^x + e^-x) / 2, element by element.").Grad([](GradContext& g) {
    return One(g.Mul(g.Dy(0), g.Apply("Sinh", {g.Conj(g.X(0))})));
  });
  Unary(ops, "Asinh", kInexactT).Doc("The number whose Sinh is x.").Grad([](GradContext& g) {
    return One(g.Div(g.Dy(0), g.Apply("Cosh", {g.Conj(g.Y(0))})));
  });
  Unary(ops, "Acosh", kInexactT)
      .Doc("The number not below 0 whose Cosh is x; NaN below 1 for real types.")
      .Grad([](GradContext& g) { return One(g.Div(g.Dy(0), g.Apply("Sinh", {g.Conj(g.Y(0))}))); });
  Unary(ops, "Atanh", kInexactT)
      .Doc("The number whose Tanh is x; infinite at -1 and 1, NaN beyond for real types.")
      .Grad([](GradContext& g) { return One(OverOneAndSquare(g, "Sub", Root::kNo)); });
}

void DeclareExponentials(OpRegistry& ops) {
  Unary(ops, "Exp", kInexactT).Doc("e^x, element by element.").Grad([](GradContext& g) {
    return One(g.Mul(g.Dy(0), g.Conj(g.Y(0))));
  });
  Unary(ops, "Expm1", kInexactT).Doc("e^x - 1, exact for x near 0.").Grad([](GradContext& g) {
    return One(g.Mul(g.Dy(0), g.Apply("Exp", {g.Conj(g.X(0))})));
  });
  Unary(ops, "Log", kInexactT)
      .Doc("The natural logarithm of x; -infinity at 0, NaN below 0 for real types.")
      .Grad([](GradContext& g) { return One(g.Mul(g.Dy(0), g.Apply("Reciprocal", {g.Conj(g.X(0))}))); });
  Unary(ops, "Log1p", kInexactT)
      .Doc("log(1 + x), exact for x near 0; -infinity at -1, NaN below -1 for real types.")
      .Grad([](GradContext& g) {
        const Value x = g.Conj(g.X(0));
        return One(g.Mul(g.Dy(0), g.Apply("Reciprocal", {g.Add(g.ConstLike(x, 1), x)})));
      });
  Unary(ops, "Tanh", kInexactT).Doc("(e^x - e^-x) / (e^x + e^-x), element by element.").Grad([](GradContext& g) {
    return One(g.Apply("TanhGrad", {g.Conj(g.Y(0)), g.Dy(0)}));
  });
  Unary(ops, "Sigmoid", kInexactT).Doc("1 / (1 + e^-x), element by element.").Grad([](GradContext& g) {
    return One(g.Apply("SigmoidGrad", {g.Conj(g.Y(0)), g.Dy(0)}));
  });
}

/// Second-order gradients: with a = y and b = dy of the op, the gradients of z(a, b) with respect to a and b.
void DeclareGradientsOfResults(OpRegistry& ops) {
  GradOfResult(ops, "TanhGrad").Doc("dy * (1 - y^2): the gradient of y = Tanh(x).").Grad([](GradContext& g) {
    const Value a = g.Conj(g.X(0)), b = g.Conj(g.X(1)), dz = g.Dy(0);
    const Value da = g.Mul(g.Mul(g.Mul(dz, g.ConstLike(dz, -2)), b), a);
    return std::vector<Grad>{da, g.Apply("TanhGrad", {a, dz})};
  });
  GradOfResult(ops, "SigmoidGrad").Doc("dy * y * (1 - y): the gradient of y = Sigmoid(x).").Grad([](GradContext& g) {
    const Value a = g.Conj(g.X(0)), b = g.Conj(g.X(1)), dz = g.Dy(0);
    const Value gb = g.Mul(dz, b);
    const Value da = g.Sub(gb, g.Mul(g.Mul(g.ConstLike(gb, 2), gb), a));
    return std::vector<Grad>{da, g.Apply("SigmoidGrad", {a, dz})};
  });
  GradOfResult(ops, "SqrtGrad").Doc("dy / (2 * conj(y)): the gradient of y = Sqrt(x).").Grad([](GradContext& g) {
    const Value ga = g.Div(g.Dy(0), g.X(0));
    const Value da = g.Mul(g.Neg(g.Conj(ga)), g.Y(0));
    return std::vector<Grad>{da, g.Mul(g.ConstLike(ga, 0.5), ga)};
  });
  GradOfResult(ops, "RsqrtGrad").Doc("-dy / 2 * conj(y)^3: the gradient of y = Rsqrt(x).").Grad([](GradContext& g) {
    const Value a = g.Conj(g.X(0)), dz = g.Dy(0), cg = g.Conj(dz);
    const Value scaled = g.Mul(g.Mul(g.ConstLike(cg, -1.5), cg), g.X(1));
    const Value da = g.Mul(scaled, g.Apply("Square", {a}));
    return std::vector<Grad>{da, g.Apply("RsqrtGrad", {a, dz})};
  });
  for (const char* name : {"InvGrad", "ReciprocalGrad"}) {
    GradOfResult(ops, name).Doc("-dy * conj(y)^2: the gradient of y = 1 / x.").Grad([](GradContext& g) {
      const Value a = g.Conj(g.X(0)), dz = g.Dy(0), cg = g.Conj(dz);
      const Value da = g.Mul(g.Mul(g.Mul(cg, g.ConstLike(cg, -2)), g.X(1)), a);
      return std::vector<Grad>{da, g.Apply("ReciprocalGrad", {a, dz})};
    });
  }
}

}  // namespace

void DeclareMathUnary(OpRegistry& ops) {
  DeclareSigns(ops);
  DeclareComplexParts(ops);
  DeclareRounding(ops);
  DeclarePowers(ops);
  DeclareExponentials(ops);
  DeclareTrigonometry(ops);
  DeclareHyperbolics(ops);
  DeclareGradientsOfResults(ops);
}

}  // namespace weir::ops
