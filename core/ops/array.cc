// Ops that create or rearrange whole arrays: fills, ranges, permutations, repetition, padding.
#include <cmath>

#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/grad_shapes.h"
#include "core/ops/known_ints.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Category;
using op::Grad;
using op::GradContext;
using op::OpBuilder;
using op::OpRegistry;
using op::SameAs;
using op::ShapeContext;
using op::Value;

Status FillShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 1).status());
  WEIR_TRY(c.WithRank(1, 0).status());
  if (const std::optional<std::vector<int64_t>> dims = c.ints(0)) {
    for (const int64_t dim : *dims) {
      if (dim < 0) return InvalidArgument("Fill dimensions must be >= 0");
    }
  }
  WEIR_ASSIGN(PartialShape shape, c.shape_from(0));
  c.set_output(0, std::move(shape));
  return Status();
}

/// Number of steps of `delta` from `start` to `limit`, computed in type T like the kernels.
template <class T>
Result<int64_t> RangeSize(const ShapeContext& c) {
  WEIR_ASSIGN(const T start, c.value(0)->scalar<T>());
  WEIR_ASSIGN(const T limit, c.value(1)->scalar<T>());
  WEIR_ASSIGN(const T delta, c.value(2)->scalar<T>());
  if (delta > 0 && start > limit) {
    return InvalidArgument("Requires start <= limit when delta > 0: {}/{}", start, limit);
  }
  if (delta < 0 && start < limit) {
    return InvalidArgument("Requires start >= limit when delta < 0: {}/{}", start, limit);
  }
  if (delta == 0) return InvalidArgument("Requires delta != 0");
  if constexpr (std::is_integral_v<T>) {
    const uint64_t from = static_cast<uint64_t>(static_cast<int64_t>(start));
    const uint64_t to = static_cast<uint64_t>(static_cast<int64_t>(limit));
    const uint64_t step = static_cast<uint64_t>(static_cast<int64_t>(delta));
    const uint64_t way = delta > 0 ? to - from : from - to;
    const uint64_t stride = delta > 0 ? step : uint64_t{0} - step;
    const uint64_t size = way / stride + (way % stride != 0 ? 1 : 0);
    if (size <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return static_cast<int64_t>(size);
  } else {
    const double size = std::ceil(std::abs((limit - start) / delta));
    if (size < 9.2e18) return static_cast<int64_t>(size);
  }
  return InvalidArgument("Requires ((limit - start) / delta) <= {}", std::numeric_limits<int64_t>::max());
}

Status RangeShape(ShapeContext& c) {
  static constexpr const char* kNames[] = {"start", "limit", "delta"};
  bool known = true;
  for (int i = 0; i < 3; ++i) {
    WEIR_TRY(c.WithRank(i, 0).status().Append(fmt::format("\n\t for '{}'", kNames[i])));
    known = c.value(i) != nullptr && known;
  }
  Result<int64_t> size = int64_t{-1};
  if (known) {
    switch (c.input_type(0)) {
      case DType::kFloat:
        size = RangeSize<float>(c);
        break;
      case DType::kDouble:
        size = RangeSize<double>(c);
        break;
      case DType::kInt32:
        size = RangeSize<int32_t>(c);
        break;
      case DType::kInt64:
        size = RangeSize<int64_t>(c);
        break;
      default:
        break;
    }
  }
  WEIR_ASSIGN(const int64_t extent, std::move(size));
  c.set_output(0, VectorOf(extent));
  return Status();
}

/// InvalidArgument unless `perm` names every axis of `rank` once.
Status CheckPermutation(const std::vector<int64_t>& perm, int rank) {
  WEIR_TRY(ExpectDim(static_cast<int64_t>(perm.size()), rank));
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (const int64_t axis : perm) {
    if (axis < 0 || axis >= rank) return InvalidArgument("perm dim {} is out of range of input rank {}", axis, rank);
    seen[static_cast<size_t>(axis)] = true;
  }
  for (int axis = 0; axis < rank; ++axis) {
    if (!seen[static_cast<size_t>(axis)]) {
      std::string listed;
      for (const int64_t p : perm) listed += (listed.empty() ? "" : ",") + std::to_string(p);
      return InvalidArgument("{} is missing from {{{}}}.", axis, listed);
    }
  }
  return Status();
}

Status TransposeShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape perm_shape, c.WithRank(1, 1));
  const std::optional<std::vector<int64_t>> perm = c.ints(1);
  const int64_t length = perm_shape.dim(0);
  if (c.input(0).has_rank()) WEIR_TRY(ExpectDim(length, c.input(0).rank()));
  if (length > kMaxRank) return InvalidArgument("perm has {} elements, the largest rank is {}", length, kMaxRank);
  const int rank = c.input(0).has_rank() ? c.input(0).rank() : static_cast<int>(length);
  if (!perm || rank < 0) {
    c.set_output(0, MaybeRank(rank));
    return Status();
  }
  WEIR_TRY(CheckPermutation(*perm, rank));
  PartialShape out = PartialShape::OfRank(rank);
  if (c.input(0).has_rank()) {
    for (int i = 0; i < rank; ++i) out.set_dim(i, c.input(0).dim(static_cast<int>((*perm)[static_cast<size_t>(i)])));
  }
  c.set_output(0, std::move(out));
  return Status();
}

Status VectorShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape shape, c.WithRank(0, 1));
  c.set_output(0, std::move(shape));
  return Status();
}

Status ReverseShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(1, 1).status());
  c.set_output(0, c.input(0));
  const int rank = c.input(0).rank();
  const std::optional<std::vector<int64_t>> axes = c.ints(1);
  if (!axes || rank < 0) return Status();
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (size_t i = 0; i < axes->size(); ++i) {
    const int64_t axis = (*axes)[i] < 0 ? (*axes)[i] + rank : (*axes)[i];
    if (axis < 0 || axis >= rank) {
      return InvalidArgument("'axis'[{}] = {} is out of valid range [0, {}", i, (*axes)[i], rank - 1);
    }
    if (seen[static_cast<size_t>(axis)]) return InvalidArgument("axis {} specified more than once.", axis);
    seen[static_cast<size_t>(axis)] = true;
  }
  return Status();
}

Status TileShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(1, 1).status());
  if (const std::optional<std::vector<int64_t>> times = c.ints(1)) {
    for (size_t i = 0; i < times->size(); ++i) {
      if ((*times)[i] < 0) return InvalidArgument("Expected multiples[{}] >= 0, but got {}", i, (*times)[i]);
    }
  }
  WEIR_ASSIGN(PartialShape multiples, c.shape_from(1));
  if (c.input(0).has_rank()) {
    WEIR_ASSIGN(multiples, ToRank(multiples, c.input(0).rank()));
  }
  if (!multiples.has_rank()) return Status();
  WEIR_ASSIGN(const PartialShape in, c.WithRank(0, multiples.rank()));
  std::vector<int64_t> dims;
  for (int i = 0; i < in.rank(); ++i) {
    WEIR_ASSIGN(dims.emplace_back(), MultiplyDims(in.dim(i), multiples.dim(i)));
  }
  WEIR_ASSIGN(PartialShape out, PartialShape::Make(dims));
  c.set_output(0, std::move(out));
  return Status();
}

/// Paddings added to the extents of input 0, or taken away from them.
enum class Padding { kAdded, kRemoved };

Status PaddedShape(ShapeContext& c, Padding padding) {
  WEIR_ASSIGN(const PartialShape table, c.WithRank(1, 2));
  WEIR_TRY(ExpectDim(table.dim(1), 2));
  PartialShape in = c.input(0);
  if (table.dim(0) > kMaxRank)
    return InvalidArgument("paddings of {} axes, the largest rank is {}", table.dim(0), kMaxRank);
  if (table.dim(0) >= 0) {
    WEIR_ASSIGN(in, c.WithRank(0, static_cast<int>(table.dim(0))));
  }
  const std::optional<std::vector<int64_t>> paddings = c.ints(1);
  if (!in.has_rank() || !paddings) {
    c.set_output(0, MaybeRank(in.rank()));
    return Status();
  }
  WEIR_TRY(ExpectDim(static_cast<int64_t>(paddings->size()), 2 * in.rank()));
  std::vector<int64_t> dims;
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t before = (*paddings)[static_cast<size_t>(2 * i)], after = (*paddings)[static_cast<size_t>(2 * i + 1)];
    if (before < 0 || after < 0) return InvalidArgument("Paddings must be non-negative: {} {}", before, after);
    WEIR_ASSIGN(const int64_t more, AddDims(before, after));
    if (padding == Padding::kAdded || in.dim(i) < 0) {
      WEIR_ASSIGN(dims.emplace_back(), AddDims(in.dim(i), more));
    } else if (more < in.dim(i)) {
      dims.push_back(in.dim(i) - more);
    } else {
      return InvalidArgument("Total paddings must be less than the input dimension size: {} was not less than {}", more,
                             in.dim(i));
    }
  }
  WEIR_ASSIGN(PartialShape out, PartialShape::Make(dims));
  c.set_output(0, std::move(out));
  return Status();
}

Status PadShape(ShapeContext& c) { return PaddedShape(c, Padding::kAdded); }

Status LinSpaceShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) WEIR_TRY(c.WithRank(i, 0).status());
  const std::optional<std::vector<int64_t>> num = c.ints(2);
  if (num && (*num)[0] <= 0) return InvalidArgument("Requires num > 0: {}", (*num)[0]);
  c.set_output(0, VectorOf(num ? (*num)[0] : -1));
  return Status();
}

Result<std::vector<Grad>> FillGradient(GradContext& g) {
  const Value axes = g.Apply("Range", {g.ConstInt(0), g.Apply("Rank", {g.Dy(0)}), g.ConstInt(1)});
  return std::vector<Grad>{Grad::None(), g.Apply("Sum", {g.Dy(0), axes})};
}

std::vector<Grad> PermutedBack(GradContext& g, std::string_view op) {
  return {g.Apply(op, {g.Dy(0), g.Apply("InvertPermutation", {g.X(1)})}), Grad::None()};
}

/// Splits every extent of dy into repetition and original extent, and sums the repetitions.
Result<std::vector<Grad>> TileGradient(GradContext& g) {
  const Value shape = ShapeAs(g, g.X(0), g.TypeOf(g.X(1)));
  const Value pairs = g.Apply("Pack", {g.X(1), shape}, {{"N", int64_t{2}}, {"axis", int64_t{1}}});
  const Value split = g.Reshape(pairs, g.ConstInts({-1}));
  const Value axes = g.Apply("Range", {g.ConstInt(0), g.Apply("Size", {split}), g.ConstInt(2)});
  return std::vector<Grad>{g.Apply("Sum", {g.Reshape(g.Dy(0), split), axes}), Grad::None()};
}

Result<std::vector<Grad>> PadGradient(GradContext& g) {
  const Value column = g.Apply("Slice", {g.X(1), g.ConstInts({0, 0}), g.ConstInts({-1, 1})});
  const Value begin = g.Reshape(column, g.ConstInts({-1}));
  const Value size = ShapeAs(g, g.X(0), g.TypeOf(g.X(1)));
  std::vector<Grad> grads(static_cast<size_t>(g.num_inputs()));
  grads[0] = g.Apply("Slice", {g.Dy(0), begin, size});
  return grads;
}

/// MirrorPad and MirrorPadGrad are each other's gradients.
std::vector<Grad> MirrorGradient(GradContext& g, std::string_view op) {
  const Result<std::string> mode = g.attrs().String("mode");
  if (!mode.ok()) return {Grad::None(), Grad::None()};
  return {g.Apply(op, {g.Dy(0), g.X(1)}, {{"mode", *mode}}), Grad::None()};
}

void DeclareFills(OpRegistry& ops) {
  ops.Declare("Fill")
      .Is(Category::kArray)
      .In("dims: index_type")
      .In("value: T")
      .Out("output: T")
      .Attr(kAnyT)
      .Attr("index_type: {int32, int64} = DT_INT32")
      .MovesElements()
      .Shape(FillShape)
      .Grad(FillGradient)
      .Doc("A tensor of shape `dims` whose elements all are the scalar `value`.");
  ops.Declare("ZerosLike")
      .Is(Category::kArray)
      .In("x: T")
      .Out("y: T")
      .Attr(kAnyT)
      .MovesElements()
      .Shape(SameAs(0))
      .NoGradient("it does not depend on the values of its input")
      .Doc("Zeros (false, empty strings) in the shape of x.");
  ops.Declare("OnesLike")
      .Is(Category::kArray)
      .In("x: T")
      .Out("y: T")
      .Attr(
          "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, complex64, "
          "complex128, bool}")
      .Shape(SameAs(0))
      .NoGradient("it does not depend on the values of its input")
      .Doc("Ones (true) in the shape of x.");
  ops.Declare("Range")
      .Is(Category::kArray)
      .In("start: Tidx")
      .In("limit: Tidx")
      .In("delta: Tidx")
      .Out("output: Tidx")
      .Attr("Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32} = DT_INT32")
      .KnownInts(KnownRange)
      .Shape(RangeShape)
      .NoGradient("its length is discrete")
      .Doc("start, start + delta, start + 2 delta, … as long as `limit` is not reached.");
  ops.Declare("LinSpace")
      .Is(Category::kArray)
      .In("start: T")
      .In("stop: T")
      .In("num: Tidx")
      .Out("output: T")
      .Attr(kFloatT)
      .Attr(kIndexT)
      .Shape(LinSpaceShape)
      .NoGradient("TensorFlow declares that it has none")
      .Doc("`num` numbers at equal distances from `start` to `stop`, both included; `start` if it is one.");
}

void DeclarePermutations(OpRegistry& ops) {
  ops.Declare("Transpose")
      .Is(Category::kArray)
      .In("x: T")
      .In("perm: Tperm")
      .Out("y: T")
      .Attr(kAnyT)
      .Attr("Tperm: {int32, int64} = DT_INT32")
      .MovesElements()
      .Shape(TransposeShape)
      .Grad([](GradContext& g) { return PermutedBack(g, "Transpose"); })
      .Doc("x with its axes in another order: axis i of y is axis perm[i] of x.");
  ops.Declare("ConjugateTranspose")
      .Is(Category::kArray)
      .In("x: T")
      .In("perm: Tperm")
      .Out("y: T")
      .Attr(kAnyT)
      .Attr("Tperm: {int32, int64} = DT_INT32")
      .Shape(TransposeShape)
      .Grad([](GradContext& g) { return PermutedBack(g, "ConjugateTranspose"); })
      .Doc("As Transpose; of complex types the conjugates of the elements.");
  ops.Declare("InvertPermutation")
      .Is(Category::kArray)
      .In("x: T")
      .Out("y: T")
      .Attr("T: {int32, int64} = DT_INT32")
      .Shape(VectorShape)
      .NoGradient("its input is discrete")
      .Doc("The permutation that undoes x: y[x[i]] = i.");
  ops.Declare("ReverseV2")
      .Is(Category::kArray)
      .In("tensor: T")
      .In("axis: Tidx")
      .Out("output: T")
      .Attr(kIndexT)
      .Attr(
          "T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, half, float, double, "
          "complex64, complex128, string}")
      .MovesElements()
      .Shape(ReverseShape)
      .Grad([](GradContext& g) -> Result<std::vector<Grad>> {
        return std::vector<Grad>{g.Apply("ReverseV2", {g.Dy(0), g.X(1)}), Grad::None()};
      })
      .Doc("`tensor` with the given axes running backwards; negative axes count from the end.");
}

void DeclareRepetitions(OpRegistry& ops) {
  ops.Declare("Tile")
      .Is(Category::kArray)
      .In("input: T")
      .In("multiples: Tmultiples")
      .Out("output: T")
      .Attr(kAnyT)
      .Attr("Tmultiples: {int32, int64} = DT_INT32")
      .MovesElements()
      .Shape(TileShape)
      .Grad(TileGradient)
      .Doc("`input` repeated multiples[i] times along axis i.");
  ops.Declare("Pad")
      .Is(Category::kArray)
      .In("input: T")
      .In("paddings: Tpaddings")
      .Out("output: T")
      .Attr(kAnyT)
      .Attr("Tpaddings: {int32, int64} = DT_INT32")
      .MovesElements()
      .Shape(PadShape)
      .Grad(PadGradient)
      .Doc("`input` with paddings[i, 0] zeros before and paddings[i, 1] zeros after it along axis i.");
  ops.Declare("PadV2")
      .Is(Category::kArray)
      .In("input: T")
      .In("paddings: Tpaddings")
      .In("constant_values: T")
      .Out("output: T")
      .Attr(kAnyT)
      .Attr("Tpaddings: {int32, int64} = DT_INT32")
      .MovesElements()
      .Shape(PadShape)
      .Grad(PadGradient)
      .Doc("As Pad, with a scalar in place of zeros.");
  ops.Declare("MirrorPad")
      .Is(Category::kArray)
      .In("input: T")
      .In("paddings: Tpaddings")
      .Out("output: T")
      .Attr(kAnyT)
      .Attr("Tpaddings: {int32, int64} = DT_INT32")
      .Attr("mode: {'REFLECT', 'SYMMETRIC'}")
      .MovesElements()
      .Shape(PadShape)
      .Grad([](GradContext& g) { return MirrorGradient(g, "MirrorPadGrad"); })
      .Doc("As Pad, with the input mirrored at its ends in place of zeros; SYMMETRIC repeats the end itself.");
  ops.Declare("MirrorPadGrad")
      .Is(Category::kArray)
      .In("input: T")
      .In("paddings: Tpaddings")
      .Out("output: T")
      .Attr(kAnyT)
      .Attr("Tpaddings: {int32, int64} = DT_INT32")
      .Attr("mode: {'REFLECT', 'SYMMETRIC'}")
      .Shape([](ShapeContext& c) { return PaddedShape(c, Padding::kRemoved); })
      .Grad([](GradContext& g) { return MirrorGradient(g, "MirrorPad"); })
      .Doc("The gradient of MirrorPad: each element of the padding is added to the one that it mirrors.");
}

}  // namespace

void DeclareArray(OpRegistry& ops) {
  DeclareFills(ops);
  DeclarePermutations(ops);
  DeclareRepetitions(ops);
}

}  // namespace weir::ops
