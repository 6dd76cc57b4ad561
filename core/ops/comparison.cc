// Comparisons, boolean logic, selection by a condition, and type conversion.
#include <algorithm>

#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/known_ints.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Broadcast;
using op::BroadcastShapes;
using op::Grad;
using op::GradContext;
using op::OpBuilder;
using op::OpRegistry;
using op::SameAs;
using op::ShapeContext;
using op::Value;

constexpr std::string_view kBoolean = "booleans carry no gradient";

/// True if every pair of extents broadcasts for all values of unknown extents.
bool SurelyBroadcast(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank()) return false;
  for (int i = 1; i <= std::min(a.rank(), b.rank()); ++i) {
    const int64_t x = a.dim(a.rank() - i), y = b.dim(b.rank() - i);
    if (x != 1 && y != 1 && (x < 0 || x != y)) return false;
  }
  return true;
}

/// Broadcasting. If incompatible_shape_error is false, incompatible shapes give one boolean instead of an error.
Status EqualityShape(ShapeContext& c) {
  WEIR_ASSIGN(bool strict, c.attrs().Bool("incompatible_shape_error"));
  const PartialShape &x = c.input(0), &y = c.input(1);
  Result<PartialShape> shape = BroadcastShapes(x, y);
  if (!strict && !shape.ok()) {
    c.set_output(0, PartialShape::OfRank(0));
  } else if (strict || SurelyBroadcast(x, y)) {
    WEIR_TRY(shape.status());
    c.set_output(0, std::move(*shape));
  }
  return Status();
}

/// The condition is a scalar, has the shape of both branches, or is a vector that selects rows.
Status SelectShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape data, c.input(1).Merge(c.input(2)));
  const PartialShape& condition = c.input(0);
  if (condition.has_rank() && data.has_rank() && condition.rank() > 0) {
    if (condition.rank() == 1 && data.rank() > 0) {
      WEIR_ASSIGN(PartialShape rows, condition.Merge(VectorOf(data.dim(0))));
      data.set_dim(0, rows.dim(0));
    } else {
      WEIR_ASSIGN(data, data.Merge(condition));
    }
  }
  c.set_output(0, std::move(data));
  return Status();
}

Status SelectV2Shape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape branches, BroadcastShapes(c.input(1), c.input(2)));
  WEIR_ASSIGN(PartialShape shape, BroadcastShapes(c.input(0), branches));
  c.set_output(0, std::move(shape));
  return Status();
}

Status WhereShape(ShapeContext& c) {
  c.set_output(0, PartialShape::Of({-1, c.input(0).rank()}));
  return Status();
}

std::vector<Grad> SelectGradient(GradContext& g) {
  const Value zeros = g.Apply("ZerosLike", {g.X(1)});
  const Value dt = g.Apply("Select", {g.X(0), g.Dy(0), zeros});
  return {Grad::None(), dt, g.Apply("Select", {g.X(0), zeros, g.Dy(0)})};
}

/// Sums `grad`, which has the output's shape, to the shape of input `branch`.
Value SumToBranch(GradContext& g, Value grad, int branch) {
  const Value shape = g.ShapeOp(g.X(branch));
  const Value output_shape = g.ShapeOp(g.Y(0));
  const Value axes = g.Apply("BroadcastGradientArgs", {shape, output_shape});
  return g.Reshape(g.Apply("Sum", {grad, axes}, {{"keep_dims", true}}), shape);
}

std::vector<Grad> SelectV2Gradient(GradContext& g) {
  const Value zero = g.ConstLike(g.Dy(0), 0);
  const Value dt = g.Apply("SelectV2", {g.X(0), g.Dy(0), zero});
  const Value de = g.Apply("SelectV2", {g.X(0), zero, g.Dy(0)});
  const Value dt_summed = SumToBranch(g, dt, 1);
  return {Grad::None(), dt_summed, SumToBranch(g, de, 2)};
}

/// The gradient goes to a limit where it was taken, else to t.
std::vector<Grad> ClipGradient(GradContext& g) {
  const Value dy = g.Dy(0), zeros = g.Apply("ZerosLike", {dy});
  const Value below = g.Apply("Less", {g.X(0), g.X(1)});
  const Value above = g.Apply("Greater", {g.X(0), g.X(2)});
  const Value dt = g.Apply("SelectV2", {g.Apply("LogicalOr", {below, above}), zeros, dy});
  const Value dlow = SumToBranch(g, g.Apply("SelectV2", {below, dy, zeros}), 1);
  return {dt, dlow, SumToBranch(g, g.Apply("SelectV2", {above, dy, zeros}), 2)};
}

/// Casts the gradient to the source's type if both types are floating or complex; otherwise there is none.
std::vector<Grad> CastGradient(GradContext& g) {
  constexpr DTypeSet kInexact = Bit(DType::kHalf) | Bit(DType::kFloat) | Bit(DType::kDouble) | Bit(DType::kBfloat16) |
                                Bit(DType::kComplex64) | Bit(DType::kComplex128);
  const DType from = BaseType(g.TypeOf(g.X(0))), to = BaseType(g.TypeOf(g.Y(0)));
  if (!Contains(kInexact, from) || !Contains(kInexact, to)) return {Grad::None()};
  return {g.Apply("Cast", {g.Dy(0)}, {{"DstT", from}})};
}

OpBuilder Comparison(OpRegistry& ops, std::string_view name, std::string_view type_attr) {
  return ops.Declare(name).In("x: T").In("y: T").Out("z: bool").Attr(type_attr).Elementwise().NoGradient(kBoolean);
}

OpBuilder Equality(OpRegistry& ops, std::string_view name) {
  return Comparison(ops, name, kAnyT).Attr("incompatible_shape_error: bool = true").Commutative().Shape(EqualityShape);
}

OpBuilder Ordering(OpRegistry& ops, std::string_view name) {
  return Comparison(ops, name, kRealNumberT).Shape(Broadcast(0, 1));
}

OpBuilder Predicate(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name).In("x: T").Out("y: bool").Attr(kFloatT).Shape(SameAs(0)).Elementwise().NoGradient(kBoolean);
}

OpBuilder Connective(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name)
      .In("x: bool")
      .In("y: bool")
      .Out("z: bool")
      .Commutative()
      .Shape(Broadcast(0, 1))
      .Elementwise()
      .NoGradient(kBoolean);
}

void DeclareChoices(OpRegistry& ops) {
  ops.Declare("Select")
      .In("condition: bool")
      .In("t: T")
      .In("e: T")
      .Out("output: T")
      .Attr(kAnyT)
      .MovesElements()
      .Doc(
          "t where the condition holds, else e; a vector condition chooses whole rows, a scalar one all. No "
          "broadcasting.")
      .Shape(SelectShape)
      .Grad(SelectGradient);
  ops.Declare("SelectV2")
      .In("condition: bool")
      .In("t: T")
      .In("e: T")
      .Out("output: T")
      .Attr(kAnyT)
      .MovesElements()
      .Doc("t where the condition holds, else e, all three broadcast against each other.")
      .Shape(SelectV2Shape)
      .Elementwise()
      .Grad(SelectV2Gradient);
  ops.Declare("ClipByValue")
      .In("t: T")
      .In("clip_value_min: T")
      .In("clip_value_max: T")
      .Out("output: T")
      .Attr(kNumberT)
      .Doc("max(min(t, clip_value_max), clip_value_min); each limit is a scalar or has t's shape.")
      .Shape(SameAs(0))
      .Elementwise()
      .Grad(ClipGradient);
  ops.Declare("Where")
      .In("input: T")
      .Out("index: int64")
      .Attr("T: {numbertype, bool} = DT_BOOL")
      .Doc("The coordinates of the nonzero elements in row-major order, one row each: [count, rank].")
      .Shape(WhereShape)
      .NoGradient("coordinates are integers, which carry no gradient");
  ops.Declare("Cast")
      .In("x: SrcT")
      .Out("y: DstT")
      .Attr("SrcT: type")
      .Attr("DstT: type")
      .Attr("Truncate: bool = false")
      .KnownInts(KnownSame)
      .Doc(
          "x converted element by element: floating to integer truncates, to bool is x != 0, complex to real drops "
          "the imaginary part; Truncate cuts the mantissa instead of rounding it.")
      .Shape(SameAs(0))
      .Elementwise()
      .Grad(CastGradient);
}

Status SameShapes(op::ShapeContext& c) {
  Result<PartialShape> both = c.input(0).Merge(c.input(1));
  if (!both.ok()) {
    return InvalidArgument("x and y must be of the same shape. x shape: {}. y shape: {}", c.input(0).ToString(),
                           c.input(1).ToString());
  }
  c.set_output(0, *std::move(both));
  return Status();
}

}  // namespace

void DeclareComparison(OpRegistry& ops) {
  ops.Declare("ApproximateEqual")
      .In("x: T")
      .In("y: T")
      .Out("z: bool")
      .Attr(kNumberT)
      .Attr("tolerance: float = 1e-05")
      .Commutative()
      .Shape(SameShapes)
      .NoGradient(kDiscrete)
      .Doc("|x - y| <= tolerance, element by element, without broadcasting.");
  Equality(ops, "Equal")
      .MovesElements()
      .Doc(
          "x == y with broadcasting; NaN equals nothing. Shapes that do not fit give one false if "
          "incompatible_shape_error is false.");
  Equality(ops, "NotEqual")
      .MovesElements()
      .Doc(
          "x != y with broadcasting; NaN differs from everything. Shapes that do not fit give one true if "
          "incompatible_shape_error is false.");
  Ordering(ops, "Less").Doc("x < y with broadcasting; false where either is NaN.");
  Ordering(ops, "LessEqual").Doc("x <= y with broadcasting; false where either is NaN.");
  Ordering(ops, "Greater").Doc("x > y with broadcasting; false where either is NaN.");
  Ordering(ops, "GreaterEqual").Doc("x >= y with broadcasting; false where either is NaN.");
  Predicate(ops, "IsFinite").Doc("x is neither NaN nor infinite, element by element.");
  Predicate(ops, "IsNan").Doc("x is not a number, element by element.");
  Predicate(ops, "IsInf").Doc("x is infinite, element by element.");
  Connective(ops, "LogicalAnd").Doc("x and y with broadcasting.");
  Connective(ops, "LogicalOr").Doc("x or y with broadcasting.");
  ops.Declare("LogicalNot")
      .In("x: bool")
      .Out("y: bool")
      .Doc("not x, element by element.")
      .Shape(SameAs(0))
      .Elementwise()
      .NoGradient(kBoolean);
  DeclareChoices(ops);
}

}  // namespace weir::ops
