// Elementwise functions of two broadcast arguments, and AddN.
#include <fmt/format.h>

#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/known_ints.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Broadcast;
using op::Grad;
using op::GradContext;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;
using op::Value;

/// z = f(x, y) with NumPy broadcasting.
OpBuilder Binary(OpRegistry& ops, std::string_view name, std::string_view type_attr) {
  return ops.Declare(name).In("x: T").In("y: T").Out("z: T").Attr(type_attr).Shape(Broadcast(0, 1)).Elementwise();
}

/// Unbroadcast, which TensorFlow leaves out of some gradients where the operands and dz have one known shape.
std::vector<Grad> OfOperands(GradContext& g, Value dx, Value dy) {
  const PartialShape shape = g.ShapeOf(g.X(0));
  const bool one = shape.fully_defined() && shape == g.ShapeOf(g.X(1)) && shape == g.ShapeOf(g.Dy(0));
  return one ? std::vector<Grad>{dx, dy} : g.Unbroadcast(dx, dy);
}

std::vector<Grad> AddGradient(GradContext& g) { return OfOperands(g, g.Dy(0), g.Dy(0)); }

/// TensorFlow's gradient of a product of one shape is short for these two types only.
std::vector<Grad> MulGradient(GradContext& g) {
  const DType type = BaseType(g.TypeOf(g.Dy(0)));
  const Value dx = g.Mul(g.Dy(0), g.Conj(g.X(1)));
  const Value dy = g.Mul(g.Conj(g.X(0)), g.Dy(0));
  return type == DType::kFloat || type == DType::kInt32 ? OfOperands(g, dx, dy) : g.Unbroadcast(dx, dy);
}

/// Gradients of the quotient x / y of op `divide`: dy / y and dy * (-x / y) / y.
std::vector<Grad> QuotientGradient(GradContext& g, std::string_view divide) {
  const Value x = g.Conj(g.X(0)), y = g.Conj(g.X(1)), dz = g.Dy(0);
  const Value dx = g.Apply(divide, {dz, y});
  const Value slope = g.Apply(divide, {g.Apply(divide, {g.Neg(x), y}), y});
  return g.Unbroadcast(dx, g.Mul(dz, slope));
}

/// Gradients of Maximum and Minimum: dz goes to x where `chooses_x` holds, else to y; a tie goes to x.
std::vector<Grad> ChoiceGradient(GradContext& g, std::string_view chooses_x) {
  const Value dz = g.Dy(0);
  const Value zeros = g.Apply("ZerosLike", {dz});
  const Value from_x = g.Apply(chooses_x, {g.X(0), g.X(1)});
  const Value dx = g.Apply("SelectV2", {from_x, dz, zeros});
  return g.Unbroadcast(dx, g.Apply("SelectV2", {from_x, zeros, dz}));
}

/// y * x^(y-1) and z * log(x). The latter is 0 where log(x) is not real, so that x = 0 gives no false singularity.
std::vector<Grad> PowGradient(GradContext& g) {
  const Value x = g.Conj(g.X(0)), y = g.Conj(g.X(1)), dz = g.Dy(0);
  const Value below = g.Sub(y, g.ConstLike(y, 1));
  const Value scaled = g.Mul(dz, y);
  const Value dx = g.Mul(scaled, g.Apply("Pow", {x, below}));
  const Value has_log = g.Apply(IsComplex(BaseType(g.TypeOf(x))) ? "NotEqual" : "Greater", {x, g.ConstLike(x, 0)});
  const Value safe_x = g.Apply("Select", {has_log, x, g.Apply("OnesLike", {x})});
  const Value log_x = g.Apply("Select", {has_log, g.Apply("Log", {safe_x}), g.Apply("ZerosLike", {x})});
  const Value dz_z = g.Mul(dz, g.Conj(g.Y(0)));
  return g.Unbroadcast(dx, g.Mul(dz_z, log_x));
}

Status AddNShape(ShapeContext& c) {
  PartialShape merged = c.input(c.num_inputs() - 1);
  for (int i = c.num_inputs() - 2; i >= 0; --i) {
    Result<PartialShape> with_next = c.input(i).Merge(merged);
    if (!with_next.ok()) {
      return with_next.status().Append(fmt::format("\n\tFrom merging shape {} with other shapes.", i));
    }
    merged = std::move(*with_next);
  }
  c.set_output(0, std::move(merged));
  return Status();
}

void DeclareSums(OpRegistry& ops) {
  Binary(ops, "Add",
         "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}")
      .KnownInts(KnownElementwise<AddInts>)
      .Doc("x + y with broadcasting; strings are joined, integers wrap around.")
      .Grad(AddGradient);
  Binary(ops, "AddV2", kArithmeticT)
      .Commutative()
      .Aggregate()
      .KnownInts(KnownElementwise<AddInts>)
      .Doc("x + y with broadcasting; integers wrap around.")
      .Grad(AddGradient);
  Binary(ops, "Sub", kArithmeticT)
      .KnownInts(KnownElementwise<SubtractInts>)
      .Doc("x - y with broadcasting; integers wrap around.")
      .Grad([](GradContext& g) { return OfOperands(g, g.Dy(0), g.Neg(g.Dy(0))); });
  ops.Declare("AddN")
      .In("inputs: N * T")
      .Out("sum: T")
      .Attr("N: int >= 1")
      .Attr("T: {numbertype, variant}")
      .Commutative()
      .Aggregate()
      .Doc("The sum of N tensors of one shape, without broadcasting.")
      .Shape(AddNShape)
      .Elementwise()
      .Grad([](GradContext& g) { return std::vector<Grad>(g.num_inputs(), g.DyAsIs(0)); });
}

void DeclareProducts(OpRegistry& ops) {
  Binary(ops, "Mul", kArithmeticT)
      .Commutative()
      .KnownInts(KnownElementwise<MultiplyInts>)
      .Doc("x * y with broadcasting; integers wrap around.")
      .Grad(MulGradient);
  Binary(ops, "SquaredDifference", "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}")
      .Commutative()
      .Doc("conj(x - y) * (x - y) with broadcasting.")
      .Grad([](GradContext& g) {
        const Value twice = g.Mul(g.ConstLike(g.Dy(0), 2), g.Dy(0));
        const Value dx = g.Mul(twice, g.Sub(g.X(0), g.X(1)));
        return OfOperands(g, dx, g.Neg(dx));
      });
  Binary(ops, "Pow", kSignedT)
      .Doc("x^y with broadcasting; integer powers wrap around and a negative integer exponent is InvalidArgument.")
      .Grad(PowGradient);
}

void DeclareQuotients(OpRegistry& ops) {
  const char* kFlat = "piecewise constant: the derivative is zero wherever there is one";
  Binary(ops, "Div", kArithmeticT)
      .Doc("x / y with broadcasting; integers truncate towards zero and a zero divisor is InvalidArgument.")
      .Grad([](GradContext& g) { return QuotientGradient(g, "RealDiv"); });
  Binary(ops, "RealDiv", kArithmeticT)
      .Doc("x / y with broadcasting, in IEEE arithmetic: x / 0 is infinite or NaN.")
      .Grad([](GradContext& g) { return QuotientGradient(g, "RealDiv"); });
  Binary(ops, "DivNoNan", kInexactT)
      .Doc("x / y with broadcasting, 0 where y is 0 whatever x is.")
      .Grad([](GradContext& g) { return QuotientGradient(g, "DivNoNan"); });
  Binary(ops, "MulNoNan", kInexactT)
      .Doc("x * y with broadcasting, 0 where y is 0 whatever x is.")
      .Grad([](GradContext& g) {
        return g.Unbroadcast(g.Apply("MulNoNan", {g.Dy(0), g.X(1)}), g.Apply("MulNoNan", {g.X(0), g.Dy(0)}));
      });
  Binary(ops, "FloorDiv", kArithmeticT)
      .KnownInts(KnownElementwise<FloorQuotient>)
      .Doc("floor(x / y) with broadcasting, also for negative integers; a zero integer divisor is InvalidArgument.")
      .NoGradient(kFlat);
  Binary(ops, "FloorMod",
         "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, float, double}")
      .KnownInts(KnownElementwise<FloorRemainder>)
      .Doc("x - floor(x / y) * y with broadcasting: the sign of y; a zero integer divisor is InvalidArgument.")
      .Grad([](GradContext& g) {
        const Value quotient = g.Apply("FloorDiv", {g.X(0), g.X(1)});
        return g.Unbroadcast(g.Dy(0), g.Mul(g.Dy(0), g.Neg(quotient)));
      });
  Binary(ops, "TruncateDiv", kArithmeticT)
      .Doc("x / y towards zero, with broadcasting; a zero integer divisor is InvalidArgument.")
      .NoGradient(kFlat);
  const char* kRemainder =
      "The remainder of x / y towards zero, with broadcasting; a zero integer divisor is InvalidArgument.";
  Binary(ops, "Mod", "T: {int32, int64, half, half, bfloat16, float, double}")
      .Doc(kRemainder)
      .NoGradient(op::kUndefinedGradient);
  Binary(ops, "TruncateMod", "T: {int32, int64, bfloat16, half, float, double}")
      .Doc(kRemainder)
      .NoGradient(op::kUndefinedGradient);
}

void DeclareAngles(OpRegistry& ops) {
  ops.Declare("Atan2")
      .In("y: T")
      .In("x: T")
      .Out("z: T")
      .Attr(kFloatT)
      .Shape(Broadcast(0, 1))
      .Doc("The angle in (-pi, pi] of the point (x, y), with broadcasting.")
      .Grad([](GradContext& g) {
        const Value y = g.X(0), x = g.X(1);
        const Value squares = g.Add(g.Apply("Square", {y}), g.Apply("Square", {x}));
        const Value scaled = g.Div(g.Dy(0), squares);
        return g.Unbroadcast(g.Mul(x, scaled), g.Mul(g.Neg(y), scaled));
      });
  ops.Declare("NextAfter")
      .In("x1: T")
      .In("x2: T")
      .Out("output: T")
      .Attr("T: {double, float} = DT_FLOAT")
      .Shape(Broadcast(0, 1))
      .Doc("The next representable number after x1 in the direction of x2, with broadcasting.")
      .Grad([](GradContext& g) { return g.Unbroadcast(g.Dy(0), g.Apply("ZerosLike", {g.Dy(0)})); });
}

}  // namespace

void DeclareMathBinary(OpRegistry& ops) {
  DeclareSums(ops);
  DeclareProducts(ops);
  DeclareQuotients(ops);
  DeclareAngles(ops);
  Binary(ops, "Maximum", kRealNumberT)
      .KnownInts(KnownElementwise<LargerInt>)
      .Doc("The larger of x and y with broadcasting; NaN where either is NaN.")
      .Grad([](GradContext& g) { return ChoiceGradient(g, "GreaterEqual"); });
  Binary(ops, "Minimum", kRealNumberT)
      .KnownInts(KnownElementwise<SmallerInt>)
      .Doc("The smaller of x and y with broadcasting; NaN where either is NaN.")
      .Grad([](GradContext& g) { return ChoiceGradient(g, "LessEqual"); });
}

}  // namespace weir::ops
