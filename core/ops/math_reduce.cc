// Reductions along axes, positions of extrema, and cumulative sums and products.
#include <algorithm>
#include <limits>

#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/known_ints.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::AttrList;
using op::Grad;
using op::GradContext;
using op::One;
using op::OpBuilder;
using op::OpRegistry;
using op::SameAs;
using op::ShapeContext;
using op::Value;

/// Flags of the reduced axes among `rank` axes; InvalidArgument for an axis out of range.
Result<std::vector<bool>> ReducedAxes(const std::vector<int64_t>& axes, int rank) {
  std::vector<bool> reduced(rank, false);
  for (int64_t axis : axes) {
    if (axis < -rank || axis >= rank) {
      return InvalidArgument("Invalid reduction dimension {} for input with {} dimensions.", axis, rank);
    }
    reduced[axis < 0 ? axis + rank : axis] = true;
  }
  return reduced;
}

Status ReductionShape(ShapeContext& c) {
  WEIR_TRY(ToRankAtMost(c.input(1), 1).status());
  WEIR_ASSIGN(bool keep_dims, c.attrs().Bool("keep_dims"));
  const PartialShape& input = c.input(0);
  const std::optional<std::vector<int64_t>> axes = c.ints(1);
  if (!axes || !input.has_rank()) {
    if (keep_dims && input.has_rank()) c.set_output(0, PartialShape::OfRank(input.rank()));
    return Status();
  }
  WEIR_ASSIGN(std::vector<bool> reduced, ReducedAxes(*axes, input.rank()));
  std::vector<int64_t> dims;
  for (int i = 0; i < input.rank(); ++i) {
    if (!reduced[i]) {
      dims.push_back(input.dim(i));
    } else if (keep_dims) {
      dims.push_back(1);
    }
  }
  c.set_output(0, PartialShape::Of(dims));
  return Status();
}

Status ArgExtremumShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(1, 0).status());
  const PartialShape& input = c.input(0);
  if (!input.has_rank()) return Status();
  const int rank = input.rank();
  if (rank <= 1) {
    c.set_output(0, PartialShape::OfRank(0));
    return Status();
  }
  const std::optional<std::vector<int64_t>> axis = c.ints(1);
  if (!axis || axis->size() != 1) {
    c.set_output(0, PartialShape::OfRank(rank - 1));
    return Status();
  }
  const int64_t asked = axis->front();
  if (asked < -rank || asked >= rank) {
    return InvalidArgument(
        "Dimension ({}) must be in the range [{}, {}), where {} is the number of dimensions in the input.", asked,
        -rank, rank, rank);
  }
  const int reduced = static_cast<int>(asked < 0 ? asked + rank : asked);
  WEIR_ASSIGN(PartialShape output, Join(Span(input, 0, reduced), Span(input, reduced + 1)));
  c.set_output(0, std::move(output));
  return Status();
}

/// The reduction's axes if they are constant.
std::optional<std::vector<int64_t>> ConstantAxes(GradContext& g) {
  const Tensor* axes = g.ConstantOf(g.X(1));
  if (axes == nullptr) return std::nullopt;
  auto widen = [](auto elements) { return std::vector<int64_t>(elements.begin(), elements.end()); };
  return axes->dtype() == DType::kInt32 ? widen(axes->as<int32_t>()) : widen(axes->as<int64_t>());
}

/// Static knowledge of a reduction: the input's extents (-1 unknown) and the reduced axes.
struct KnownReduction {
  PartialShape input;
  std::vector<bool> reduced;

  bool all() const {
    return std::ranges::all_of(reduced, [](bool axis) { return axis; });
  }
  /// Number of input elements per output element; -1 if unknown.
  int64_t count() const {
    int64_t product = 1;
    for (int i = 0; i < input.rank(); ++i) {
      if (!reduced[i]) continue;
      if (input.dim(i) < 0 || __builtin_mul_overflow(product, input.dim(i), &product)) return -1;
    }
    return product;
  }
};
std::optional<KnownReduction> Known(GradContext& g) {
  PartialShape input = g.ShapeOf(g.X(0));
  const std::optional<std::vector<int64_t>> axes = ConstantAxes(g);
  if (!axes || !input.has_rank()) return std::nullopt;
  Result<std::vector<bool>> reduced = ReducedAxes(*axes, input.rank());
  if (!reduced.ok()) return std::nullopt;
  return KnownReduction{std::move(input), std::move(*reduced)};
}

/// The input's extents with the reduced ones set to 1, as an argument of Reshape: one extent may be -1 if no other is
/// 0. Nullopt if more are unknown.
std::optional<std::vector<int32_t>> KeptExtents(const KnownReduction& known) {
  std::vector<int32_t> kept(known.reduced.size(), 1);
  int unknown = 0, empty = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (known.reduced[i]) continue;
    const int64_t extent = known.input.dim(static_cast<int>(i));
    if (extent > std::numeric_limits<int32_t>::max()) return std::nullopt;
    kept[i] = static_cast<int32_t>(extent);
    unknown += extent < 0;
    empty += extent == 0;
  }
  if (unknown > 1 || (unknown == 1 && empty > 0)) return std::nullopt;
  return kept;
}

/// The reduction's axes as a non-negative int32 vector or scalar.
Value WrappedAxes(GradContext& g, Value axes, Value rank) {
  if (g.TypeOf(axes) != DType::kInt32) axes = g.Apply("Cast", {axes}, {{"DstT", DType::kInt32}});
  return g.Apply("FloorMod", {g.Add(axes, rank), rank});
}

/// The shape of the output with keep_dims, as an int32 vector for Reshape.
Value KeptShape(GradContext& g) {
  const std::optional<KnownReduction> known = Known(g);
  if (const auto extents = known ? KeptExtents(*known) : std::nullopt) return g.ConstInts(*extents);
  const Value input_shape = g.ShapeOp(g.X(0));
  const Value rank = g.Apply("Size", {input_shape});
  const Value axes = WrappedAxes(g, g.X(1), rank);
  const Value all_axes = g.Apply("Range", {g.ConstInt(0), rank, g.ConstInt(1)});
  const Value ones = g.Apply("OnesLike", {axes});
  return g.ApplyList("DynamicStitch", {all_axes, axes, input_shape, ones}, {{"N", 2}});
}

/// Reshapes `v`, which has the output's shape, to have extents of 1 at the reduced axes.
Result<Value> WithKeptAxes(GradContext& g, Value v) {
  WEIR_ASSIGN(bool keep_dims, g.attrs().Bool("keep_dims"));
  return keep_dims ? v : g.Reshape(v, KeptShape(g));
}

/// Broadcasts dy along the reduced axes.
Result<Value> SpreadOverInput(GradContext& g) {
  WEIR_ASSIGN(Value dy, WithKeptAxes(g, g.Dy(0)));
  const std::optional<KnownReduction> known = Known(g);
  if (known && known->input.fully_defined() && known->count() <= std::numeric_limits<int32_t>::max()) {
    std::vector<int32_t> repeats(known->reduced.size(), 1);
    for (size_t i = 0; i < repeats.size(); ++i) {
      if (known->reduced[i]) repeats[i] = static_cast<int32_t>(known->input.dim(static_cast<int>(i)));
    }
    return g.Apply("Tile", {dy, g.ConstInts(repeats)});
  }
  return g.Apply(known && known->all() ? "Tile" : "BroadcastTo", {dy, g.ShapeOp(g.X(0))});
}

/// Number of input elements per output element, as a scalar of the type of `like`.
Value ReducedCount(GradContext& g, Value like) {
  const std::optional<KnownReduction> known = Known(g);
  if (known && known->count() >= 0) return g.ConstLike(like, static_cast<double>(known->count()));
  Value count;
  if (known && known->all()) {
    count = g.Apply("Size", {g.X(0)});
  } else {
    const Value shape = g.ShapeOp(g.X(0));
    const Value axes = g.Reshape(WrappedAxes(g, g.X(1), g.Apply("Size", {shape})), g.ConstInts({-1}));
    const Value extents = g.Apply("GatherV2", {shape, axes, g.ConstInt(0)});
    count = g.Apply("Prod", {extents, g.ConstInt(0)});
  }
  return g.Apply("Cast", {count}, {{"DstT", BaseType(g.TypeOf(like))}});
}

Result<std::vector<Grad>> SumGradient(GradContext& g) {
  WEIR_ASSIGN(Value dx, SpreadOverInput(g));
  return std::vector<Grad>{dx, Grad::None()};
}

Result<std::vector<Grad>> MeanGradient(GradContext& g) {
  WEIR_ASSIGN(Value spread, SpreadOverInput(g));
  return std::vector<Grad>{g.Div(spread, ReducedCount(g, spread)), Grad::None()};
}

/// Divided equally among all inputs that equal the extremum.
Result<std::vector<Grad>> ExtremumGradient(GradContext& g) {
  WEIR_ASSIGN(Value y, WithKeptAxes(g, g.Y(0)));
  WEIR_ASSIGN(Value dy, WithKeptAxes(g, g.Dy(0)));
  const Value chosen = g.Apply("Cast", {g.Apply("Equal", {y, g.X(0)})}, {{"DstT", g.TypeOf(dy)}});
  const Value ties = g.Apply("Sum", {chosen, g.X(1)}, {{"keep_dims", true}});
  return std::vector<Grad>{g.Mul(g.Div(chosen, ties), dy), Grad::None()};
}

/// x / (y / dy), whose order of operations makes the slope at 0 NaN, as in TensorFlow.
Result<std::vector<Grad>> EuclideanNormGradient(GradContext& g) {
  WEIR_ASSIGN(Value y, WithKeptAxes(g, g.Y(0)));
  WEIR_ASSIGN(Value dy, WithKeptAxes(g, g.Dy(0)));
  return std::vector<Grad>{g.Div(g.X(0), g.Div(y, dy)), Grad::None()};
}

/// dy times the product of all other inputs, computed as the product of exclusive cumulative products from both sides,
/// so that zeros in the input are not a problem. For this the reduced axes are moved to the front and merged.
Result<std::vector<Grad>> ProdGradient(GradContext& g) {
  WEIR_ASSIGN(Value dy, WithKeptAxes(g, g.Dy(0)));
  const Value x = g.X(0);
  const Value shape = g.ShapeOp(x);
  const Value spread = g.Apply("BroadcastTo", {dy, shape});

  const Value zero = g.ConstInt(0);
  const Value rank = g.Apply("Rank", {x});
  const Value reduced = WrappedAxes(g, g.Reshape(g.X(1), g.ConstInts({-1})), rank);
  const Value all_axes = g.Apply("Range", {zero, rank, g.ConstInt(1)});
  const Value others = g.Apply("ListDiff", {all_axes, reduced});
  const Value order = g.ApplyList("ConcatV2", {reduced, others, zero}, {{"N", 2}});
  const Value rows = g.Apply("Prod", {g.Apply("GatherV2", {shape, reduced, zero}), zero});
  const Value columns = g.Apply("Prod", {g.Apply("GatherV2", {shape, others, zero}), zero});
  const Value permuted = g.Apply("Transpose", {x, order});
  const Value matrix = g.Reshape(permuted, g.ApplyList("Pack", {rows, columns}, {{"N", 2}}));

  const Value left = g.Apply("Cumprod", {matrix, zero}, {{"exclusive", true}});
  const Value right = g.Apply("Cumprod", {matrix, zero}, {{"exclusive", true}, {"reverse", true}});
  const Value left_conj = g.Conj(left);
  const Value product = g.Mul(left_conj, g.Conj(right));
  const Value back = g.Reshape(product, g.ShapeOp(permuted));
  const Value of_others = g.Apply("Transpose", {back, g.Apply("InvertPermutation", {order})});
  return std::vector<Grad>{g.Reshape(g.Mul(spread, of_others), shape), Grad::None()};
}

/// The attributes of the gradient's cumulative sum: the same with the direction reversed.
Result<AttrList> Reversed(GradContext& g) {
  WEIR_ASSIGN(bool exclusive, g.attrs().Bool("exclusive"));
  WEIR_ASSIGN(bool reverse, g.attrs().Bool("reverse"));
  return AttrList{{"exclusive", exclusive}, {"reverse", !reverse}};
}

Result<std::vector<Grad>> CumsumGradient(GradContext& g) {
  WEIR_ASSIGN(AttrList reversed, Reversed(g));
  return std::vector<Grad>{g.Apply("Cumsum", {g.Dy(0), g.X(1)}, std::move(reversed)), Grad::None()};
}

/// The reverse cumulative sum of y * dy, divided by x; 0 where x is 0, as in TensorFlow.
Result<std::vector<Grad>> CumprodGradient(GradContext& g) {
  WEIR_ASSIGN(AttrList reversed, Reversed(g));
  const Value weighted = g.Mul(g.Y(0), g.Dy(0));
  const Value sum = g.Apply("Cumsum", {weighted, g.X(1)}, std::move(reversed));
  return std::vector<Grad>{g.Apply("DivNoNan", {sum, g.X(0)}), Grad::None()};
}

/// dx = e^x times the sum of dy / e^y over the later y, by logarithms of the positive and the negative dy.
Result<std::vector<Grad>> CumulativeLogsumexpGradient(GradContext& g) {
  WEIR_ASSIGN(const AttrList reversed, Reversed(g));
  const Value dy = g.Dy(0), zero = g.ConstLike(dy, 0);
  const Value least = g.ConstLike(dy, -std::numeric_limits<double>::infinity());
  const auto part = [&](std::string_view side, Value size) {
    const Value logarithm = g.Apply("SelectV2", {g.Apply(side, {dy, zero}), g.Apply("Log", {size}), least});
    const Value sum = g.Apply("CumulativeLogsumexp", {g.Sub(logarithm, g.Y(0)), g.X(1)}, reversed);
    return g.Apply("Exp", {g.Add(sum, g.X(0))});
  };
  return std::vector<Grad>{g.Sub(part("Greater", dy), part("Less", g.Neg(dy))), Grad::None()};
}

OpBuilder Reduction(OpRegistry& ops, std::string_view name, std::string_view type_attr) {
  return ops.Declare(name)
      .In("input: T")
      .In("reduction_indices: Tidx")
      .Out("output: T")
      .Attr("keep_dims: bool = false")
      .Attr(type_attr)
      .Attr(kIndexT)
      .Shape(ReductionShape);
}

OpBuilder BooleanReduction(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name)
      .In("input: bool")
      .In("reduction_indices: Tidx")
      .Out("output: bool")
      .Attr("keep_dims: bool = false")
      .Attr(kIndexT)
      .SameIfEmpty(1)
      .Shape(ReductionShape)
      .NoGradient("booleans carry no gradient");
}

OpBuilder ArgExtremum(OpRegistry& ops, std::string_view name, std::string_view index_attr,
                      std::string_view output_attr) {
  return ops.Declare(name)
      .In("input: T")
      .In("dimension: Tidx")
      .Out("output: output_type")
      .Attr("T: {realnumbertype, quantizedtype, bool}")
      .Attr(index_attr)
      .Attr(output_attr)
      .Shape(ArgExtremumShape)
      .NoGradient("positions are integers, which carry no gradient");
}

OpBuilder Running(OpRegistry& ops, std::string_view name, std::string_view type_attr = kNumberT) {
  return ops.Declare(name)
      .In("x: T")
      .In("axis: Tidx")
      .Out("out: T")
      .Attr("exclusive: bool = false")
      .Attr("reverse: bool = false")
      .Attr(type_attr)
      .Attr(kIndexT)
      .Shape(SameAs(0));
}

}  // namespace

void DeclareReduction(OpRegistry& ops) {
  Reduction(ops, "Sum", kNumberT)
      .SameIfEmpty(1)
      .KnownInts(KnownTotal<AddInts, 0>)
      .Doc("The sum along the given axes; 0 for none.")
      .Grad(SumGradient);
  Reduction(ops, "Mean", kNumberT)
      .SameIfEmpty(1)
      .Doc("The mean along the given axes; NaN for none in floating types.")
      .Grad(MeanGradient);
  Reduction(ops, "Prod", kNumberT)
      .SameIfEmpty(1)
      .KnownInts(KnownTotal<MultiplyInts, 1>)
      .Doc("The product along the given axes; 1 for none.")
      .Grad(ProdGradient);
  Reduction(ops, "EuclideanNorm", kNumberT)
      .Doc("The root of the sum of |x|^2 along the given axes; 0 for none.")
      .Grad(EuclideanNormGradient);
  const char* kOrdered = "T: {realnumbertype, quantizedtype}";
  Reduction(ops, "Max", kOrdered)
      .SameIfEmpty(1)
      .Doc("The largest element along the given axes; the lowest value (-infinity) for none, NaN where one is.")
      .Grad(ExtremumGradient);
  Reduction(ops, "Min", kOrdered)
      .SameIfEmpty(1)
      .Doc("The smallest element along the given axes; the highest value (infinity) for none, NaN where one is.")
      .Grad(ExtremumGradient);
  BooleanReduction(ops, "All").Doc("Whether all elements along the given axes are true; true for none.");
  BooleanReduction(ops, "Any").Doc("Whether some element along the given axes is true; false for none.");
  ArgExtremum(ops, "ArgMax", "Tidx: {int16, int32, int64} = DT_INT32",
              "output_type: {int16, uint16, int32, int64} = DT_INT64")
      .Doc("The position of the largest element along one axis, the first of equals; the axis must not be empty.");
  ArgExtremum(ops, "ArgMin", kIndexT, "output_type: {int32, int64} = DT_INT64")
      .Doc("The position of the smallest element along one axis, the first of equals; the axis must not be empty.");
  Running(ops, "Cumsum")
      .Doc("Element i is the sum of x[0..i] along the axis (x[0..i-1] if exclusive), from the end if reverse.")
      .Grad(CumsumGradient);
  Running(ops, "Cumprod")
      .Doc("Element i is the product of x[0..i] along the axis (x[0..i-1] if exclusive), from the end if reverse.")
      .Grad(CumprodGradient);
  Running(ops, "CumulativeLogsumexp", kFloatT)
      .Doc(
          "Element i is log(sum of e^x) of x[0..i] along the axis (x[0..i-1] if exclusive; -infinity for none), from "
          "the end if reverse.")
      .Grad(CumulativeLogsumexpGradient);
}

}  // namespace weir::ops
