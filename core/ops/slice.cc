// Parts of arrays: Slice, StridedSlice with its masks, and StridedSlice's gradient.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

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

using op::AttrList;
using op::Category;
using op::Grad;
using op::GradContext;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;
using op::Value;

/// Integers that may be unknown.
using Integers = std::vector<std::optional<int64_t>>;

/// The known elements of integer vector input i; a -1 in an inferred shape is unknown.
Result<Integers> KnownElements(const ShapeContext& c, int i, int count) {
  Integers elements(static_cast<size_t>(count));
  if (const std::optional<std::vector<int64_t>> exact = c.ints(i)) {
    WEIR_TRY(ExpectDim(static_cast<int64_t>(exact->size()), count));
    std::ranges::copy(*exact, elements.begin());
    return elements;
  }
  WEIR_ASSIGN(const PartialShape known, c.shape_from(i));
  for (int k = 0; k < known.rank() && k < count; ++k) {
    if (known.dim(k) >= 0) elements[static_cast<size_t>(k)] = known.dim(k);
  }
  return elements;
}

/// Extent i of a slice of `whole` elements (-1 unknown); size -1 means the rest. As in TensorFlow the kernel checks the
/// bounds, because a graph may contain slices that never run.
Result<int64_t> SliceExtent(int i, int64_t whole, std::optional<int64_t> begin, std::optional<int64_t> size) {
  if (size && *size < -1) return InvalidArgument("Invalid value in tensor used for shape: {}", *size);
  if (begin && *begin < 0) return InvalidArgument("Expected begin[{}] to be non-negative, but got {}", i, *begin);
  if (!size) return int64_t{-1};
  return *size == -1 ? SubtractDims(whole, begin.value_or(-1)) : *size;
}

Status SliceShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape operand, c.WithRank(1, 1));
  WEIR_TRY(c.WithRank(2, 1).status());
  WEIR_ASSIGN(operand, operand.Merge(c.input(2)));
  const int64_t count = operand.dim(0);
  if (count > kMaxRank) return InvalidArgument("begin has {} elements, the largest rank is {}", count, kMaxRank);
  PartialShape in = c.input(0);
  if (count >= 0) {
    WEIR_ASSIGN(in, c.WithRank(0, static_cast<int>(count)));
  }
  if (!in.has_rank()) return Status();
  WEIR_ASSIGN(const Integers begin, KnownElements(c, 1, in.rank()));
  WEIR_ASSIGN(const Integers size, KnownElements(c, 2, in.rank()));
  std::vector<int64_t> dims;
  for (int i = 0; i < in.rank(); ++i) {
    const size_t at = static_cast<size_t>(i);
    WEIR_ASSIGN(dims.emplace_back(), SliceExtent(i, in.dim(i), begin[at], size[at]));
  }
  WEIR_ASSIGN(PartialShape out, PartialShape::Make(dims));
  c.set_output(0, std::move(out));
  return Status();
}

/// The slice of one input axis. `begin` and `end` are nullopt if masked or unknown.
struct AxisSpec {
  std::optional<int64_t> begin, end;
  int64_t stride = 1;
  bool open_begin = false, open_end = false;
  bool shrink = false;
};

/// An output axis that is a new axis of extent 1, rather than an axis of the input.
constexpr int kNewAxis = -1;

struct DenseSpec {
  std::vector<AxisSpec> axes;  // one per input axis
  std::vector<int> answer;     // the remaining input axes in order, and kNewAxis
};

struct Masks {
  int64_t begin = 0, end = 0, ellipsis = 0, new_axis = 0, shrink = 0;
};

bool HasBit(int64_t mask, size_t i) { return i < 64 && ((static_cast<uint64_t>(mask) >> i) & 1) != 0; }

Result<int64_t> ReadMask(const op::AttrView& attrs, std::string_view name) {
  WEIR_ASSIGN(const int64_t mask, attrs.Int(name));
  if (mask == static_cast<int32_t>(mask)) return mask;
  return InvalidArgument("Attr {} has value {} out of range for an int32", name, mask);
}

Result<Masks> ReadMasks(const op::AttrView& attrs) {
  Masks m;
  WEIR_ASSIGN(m.begin, ReadMask(attrs, "begin_mask"));
  WEIR_ASSIGN(m.end, ReadMask(attrs, "end_mask"));
  WEIR_ASSIGN(m.ellipsis, ReadMask(attrs, "ellipsis_mask"));
  WEIR_ASSIGN(m.new_axis, ReadMask(attrs, "new_axis_mask"));
  WEIR_ASSIGN(m.shrink, ReadMask(attrs, "shrink_axis_mask"));
  if (std::popcount(static_cast<uint32_t>(m.ellipsis)) > 1) {
    return InvalidArgument("Multiple ellipses in slice spec not allowed");
  }
  return m;
}

/// The known operands of a StridedSlice: strides are always known, bounds possibly.
struct Operands {
  Integers begin, end;
  std::vector<int64_t> strides;
};

/// Expands the given entries to the axes of an input of `rank`: the ellipsis and missing trailing entries are full
/// axes.
Result<DenseSpec> LayOut(const Operands& given, const Masks& masks, int rank) {
  const size_t count = given.strides.size();
  size_t ellipsis = count;
  size_t new_after_ellipsis = 0;
  for (size_t i = 0; i < count; ++i) {
    if (HasBit(masks.ellipsis, i)) {
      ellipsis = i;
    } else if (ellipsis != count && HasBit(masks.new_axis, i)) {
      ++new_after_ellipsis;
    }
  }
  DenseSpec dense;
  const auto take_full_until = [&dense](size_t axes) {
    while (dense.axes.size() < axes) {
      dense.answer.push_back(static_cast<int>(dense.axes.size()));
      AxisSpec full;
      full.open_begin = full.open_end = true;
      dense.axes.push_back(full);
    }
  };
  const size_t whole = static_cast<size_t>(rank);
  for (size_t i = 0; i < count; ++i) {
    if (i == ellipsis) {
      const size_t left = count - i - 1 - new_after_ellipsis;
      take_full_until(whole > left ? whole - left : 0);
    } else if (HasBit(masks.new_axis, i)) {
      dense.answer.push_back(kNewAxis);
    } else if (dense.axes.size() == whole) {
      return InvalidArgument("Index out of range using input dim {}; input has only {} dims", whole, whole);
    } else {
      AxisSpec axis{given.begin[i],         given.end[i],         given.strides[i],
                    HasBit(masks.begin, i), HasBit(masks.end, i), HasBit(masks.shrink, i)};
      if (!axis.shrink) dense.answer.push_back(static_cast<int>(dense.axes.size()));
      dense.axes.push_back(axis);
    }
  }
  take_full_until(whole);
  return dense;
}

/// Number of elements selected from an axis of `extent` (-1 unknown); 1 for a shrinking entry; -1 if unknown.
Result<int64_t> SelectedCount(const AxisSpec& axis, int index, int64_t extent) {
  if (axis.stride == 0) return InvalidArgument("strides[{}] must be non-zero", index);
  if (axis.shrink && axis.stride < 0) return InvalidArgument("only stride 1 allowed on non-range indexing.");
  if (extent < 0) return int64_t{axis.shrink ? 1 : -1};
  if (axis.shrink) {
    if (axis.begin && (*axis.begin < -extent || *axis.begin >= extent)) {
      return InvalidArgument("slice index {} of dimension {} out of bounds.",
                             *axis.begin < 0 ? *axis.begin + extent : *axis.begin, index);
    }
    return int64_t{1};
  }
  const int64_t low = axis.stride > 0 ? 0 : -1, high = axis.stride > 0 ? extent : extent - 1;
  const auto canonical = [&](std::optional<int64_t> bound) {
    return std::clamp(*bound < 0 ? *bound + extent : *bound, low, high);
  };
  if ((!axis.open_begin && !axis.begin) || (!axis.open_end && !axis.end)) return int64_t{-1};
  const int64_t first = axis.open_begin ? (axis.stride > 0 ? low : high) : canonical(axis.begin);
  const int64_t last = axis.open_end ? (axis.stride > 0 ? high : low) : canonical(axis.end);
  const int64_t interval = last - first;
  if (interval == 0 || (interval < 0) != (axis.stride < 0)) return int64_t{0};
  return interval / axis.stride + (interval % axis.stride != 0 ? 1 : 0);
}

/// The shape of a slice of `in` with begin, end and strides in inputs `first`, first + 1 and first + 2.
Result<PartialShape> StridedSliceOf(const ShapeContext& c, const PartialShape& in, int first) {
  WEIR_ASSIGN(PartialShape operand, c.WithRank(first, 1));
  WEIR_ASSIGN(operand, operand.Merge(c.input(first + 1)));
  WEIR_TRY(operand.Merge(c.input(first + 2)).status());
  const std::optional<std::vector<int64_t>> strides = c.ints(first + 2);
  WEIR_ASSIGN(const Masks masks, ReadMasks(c.attrs()));
  if (!strides || !in.has_rank()) return PartialShape();
  if (strides->size() > kMaxRank) return InvalidArgument("A slice spec of {} entries is too long", strides->size());
  const int count = static_cast<int>(strides->size());
  Operands given;
  given.strides = *strides;
  WEIR_ASSIGN(given.begin, KnownElements(c, first, count));
  WEIR_ASSIGN(given.end, KnownElements(c, first + 1, count));
  WEIR_ASSIGN(const DenseSpec dense, LayOut(given, masks, in.rank()));
  std::vector<int64_t> counts;
  for (int i = 0; i < in.rank(); ++i) {
    WEIR_ASSIGN(counts.emplace_back(), SelectedCount(dense.axes[static_cast<size_t>(i)], i, in.dim(i)));
  }
  std::vector<int64_t> dims;
  for (const int axis : dense.answer) dims.push_back(axis == kNewAxis ? 1 : counts[static_cast<size_t>(axis)]);
  return PartialShape::Make(dims);
}

Status StridedSliceShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape out, StridedSliceOf(c, c.input(0), 1));
  c.set_output(0, std::move(out));
  return Status();
}

Status StridedSliceGradShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape whole, c.shape_from(0));
  WEIR_ASSIGN(const PartialShape slice, StridedSliceOf(c, whole, 1));
  if (!slice.CompatibleWith(c.input(4))) {
    return InvalidArgument("shape of dy was {} instead of {}", c.input(4).ToString(), slice.ToString());
  }
  c.set_output(0, std::move(whole));
  return Status();
}

/// Pads dy with zeros to the shape of the input.
Result<std::vector<Grad>> SliceGradient(GradContext& g) {
  const DType index = g.TypeOf(g.X(1));
  const Value rest = g.Sub(g.Sub(ShapeAs(g, g.X(0), index), ShapeAs(g, g.Y(0), index)), g.X(1));
  const Value paddings = g.Apply("Pack", {g.X(1), rest}, {{"N", int64_t{2}}, {"axis", int64_t{1}}});
  return std::vector<Grad>{g.Apply("Pad", {g.Dy(0), paddings}), Grad::None(), Grad::None()};
}

Result<AttrList> MaskAttrs(GradContext& g) {
  WEIR_ASSIGN(const Masks m, ReadMasks(g.attrs()));
  return AttrList{{"begin_mask", m.begin},
                  {"end_mask", m.end},
                  {"ellipsis_mask", m.ellipsis},
                  {"new_axis_mask", m.new_axis},
                  {"shrink_axis_mask", m.shrink}};
}

Result<std::vector<Grad>> StridedSliceGradient(GradContext& g) {
  WEIR_ASSIGN(AttrList masks, MaskAttrs(g));
  std::vector<Value> bounds = {g.X(1), g.X(2), g.X(3)};
  // StridedSliceGrad does not support int16 indices.
  if (g.TypeOf(bounds[0]) == DType::kInt16) {
    for (Value& bound : bounds) bound = AsInt32(g, bound);
  }
  const Value shape = ShapeAs(g, g.X(0), g.TypeOf(bounds[0]));
  std::vector<Grad> grads(4);
  grads[0] = g.Apply("StridedSliceGrad", {shape, bounds[0], bounds[1], bounds[2], g.Dy(0)}, std::move(masks));
  return grads;
}

Result<std::vector<Grad>> StridedSliceGradGradient(GradContext& g) {
  WEIR_ASSIGN(AttrList masks, MaskAttrs(g));
  std::vector<Grad> grads(5);
  grads[4] = g.Apply("StridedSlice", {g.Dy(0), g.X(1), g.X(2), g.X(3)}, std::move(masks));
  return grads;
}

OpBuilder Strided(OpRegistry& ops, std::string_view name, std::string_view index_attr) {
  return ops.Declare(name)
      .Is(Category::kArray)
      .Out("output: T")
      .Attr(kAnyT)
      .Attr(index_attr)
      .Attr("begin_mask: int = 0")
      .Attr("end_mask: int = 0")
      .Attr("ellipsis_mask: int = 0")
      .Attr("new_axis_mask: int = 0")
      .Attr("shrink_axis_mask: int = 0");
}

Result<std::vector<Grad>> SliceUpdateGradient(GradContext& g) {
  WEIR_ASSIGN(AttrList masks, MaskAttrs(g));
  std::vector<Grad> grads(5);
  grads[0] =
      g.Apply("TensorStridedSliceUpdate", {g.Dy(0), g.X(1), g.X(2), g.X(3), g.Apply("ZerosLike", {g.X(4)})}, masks);
  const Value part = g.Apply("StridedSlice", {g.Dy(0), g.X(1), g.X(2), g.X(3)}, std::move(masks));
  const Value axes = g.ApplyAll("BroadcastGradientArgs", {g.ShapeOp(g.X(4)), g.ShapeOp(part)})[0];
  grads[4] = g.Reshape(g.Apply("Sum", {part, axes}), g.ShapeOp(g.X(4)));
  return grads;
}

void DeclareSliceAssignments(OpRegistry& ops) {
  const auto assign = [&](std::string_view name, std::string_view target) {
    OpBuilder declared = ops.Declare(name);
    declared.Is(Category::kState).In(target).In("begin: Index").In("end: Index").In("strides: Index").In("value: T");
    for (const char* mask : {"begin", "end", "ellipsis", "new_axis", "shrink_axis"}) {
      declared.Attr(fmt::format("{}_mask: int = 0", mask));
    }
    return declared.Attr(kAnyT).Attr("Index: {int32, int64}").MovesElements();
  };
  assign("StridedSliceAssign", "ref: Ref(T)")
      .Out("output_ref: Ref(T)")
      .Shape(op::SameAs(0))
      .NoGradient(kUpdate)
      .Doc("Makes `value`, broadcast, the elements of the variable that StridedSlice would read.");
  assign("ResourceStridedSliceAssign", "ref: resource")
      .Stateful()
      .Shape(op::NoOutputs())
      .NoGradient(kUpdate)
      .Doc("Makes `value`, broadcast, the elements of the variable that StridedSlice would read.");
  assign("TensorStridedSliceUpdate", "input: T")
      .Is(Category::kArray)
      .Out("output: T")
      .Shape(op::SameAs(0))
      .Grad(SliceUpdateGradient)
      .Doc("`input` with `value`, broadcast, in place of the elements that StridedSlice would read.");
}

}  // namespace

void DeclareSlice(OpRegistry& ops) {
  DeclareSliceAssignments(ops);
  ops.Declare("Slice")
      .In("input: T")
      .In("begin: Index")
      .In("size: Index")
      .Out("output: T")
      .Attr(kAnyT)
      .Attr("Index: {int32, int64}")
      .Is(Category::kArray)
      .MovesElements()
      .KnownInts(KnownSlice)
      .Shape(SliceShape)
      .Grad(SliceGradient)
      .Doc("size[i] elements from begin[i] on along each axis i; a size of -1 takes the rest.");
  Strided(ops, "StridedSlice", "Index: {int16, int32, int64}")
      .In("input: T")
      .In("begin: Index")
      .In("end: Index")
      .In("strides: Index")
      .MovesElements()
      .KnownInts(KnownStridedSlice)
      .Shape(StridedSliceShape)
      .Grad(StridedSliceGradient)
      .Doc(
          "input[begin:end:strides] as NumPy slices; bits of the masks open bounds, stand for an ellipsis, add or drop "
          "an axis.");
  Strided(ops, "StridedSliceGrad", "Index: {int32, int64}")
      .In("shape: Index")
      .In("begin: Index")
      .In("end: Index")
      .In("strides: Index")
      .In("dy: T")
      .Shape(StridedSliceGradShape)
      .Grad(StridedSliceGradGradient)
      .Doc("Zeros of `shape` with dy where StridedSlice of the same operands would read.");
}

}  // namespace weir::ops
