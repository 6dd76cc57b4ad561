// Morphological dilation, and patches of images and volumes as channels.
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/grad_shapes.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"
#include "core/ops/windows.h"

namespace weir::ops {
namespace {

using op::AttrList;
using op::Category;
using op::Grad;
using op::GradContext;
using op::MergeDim;
using op::One;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;
using op::Value;

/// The number of places of a window whose taps are `rate` apart. Unlike WindowedExtent, a window that exceeds the input
/// by less than a stride has no place instead of being an error.
Result<int64_t> PatchExtent(int64_t input, int64_t window, int64_t rate, int64_t stride, WindowPadding padding) {
  if (stride <= 0) return InvalidArgument("Stride must be > 0, but got {}", stride);
  if (rate < 1) return InvalidArgument("Dilation rate must be >= 1, but got {}", rate);
  if (input < 0 || (window < 0 && padding != WindowPadding::kSame)) return int64_t{-1};
  if (padding == WindowPadding::kSame) return WindowedExtent(input, window, {stride, 1}, padding);
  int64_t reach = 0;
  if (__builtin_mul_overflow(window - 1, rate, &reach) || __builtin_add_overflow(reach, 1, &reach)) {
    return InvalidArgument("a window of {} with rate {} is too large", window, rate);
  }
  reach = window == 0 ? 0 : reach;
  const int64_t rest = input - reach;
  const int64_t places = rest >= 0 ? rest / stride + 1 : (rest + stride) / stride;
  if (places >= 0) return places;
  return InvalidArgument(
      "Computed output size would be negative: {} [input_size: {}, effective_filter_size: {}, "
      "stride: {}]",
      places, input, reach, stride);
}

/// [batch, places…, channels], for windows with these spatial extents.
Result<PartialShape> PatchedShape(const ShapeContext& c, const PartialShape& images, std::span<const int64_t> windows,
                                  std::string_view op, int64_t channels) {
  const ImageAxes axes{.channels_first = false, .spatial = images.rank() - 2};
  WEIR_ASSIGN(const std::vector<int64_t> strides, PerAxis(c.attrs(), "strides", axes, op, "stride"));
  std::vector<int64_t> rates(strides.size(), 1);
  if (c.attrs().Has("rates")) {
    WEIR_ASSIGN(rates, PerAxis(c.attrs(), "rates", axes, op, "rates"));
  }
  WEIR_ASSIGN(const WindowPaddings paddings, WindowPaddings::Of(c.attrs(), axes));
  std::vector<int64_t> extents;
  for (int i = 0; i < axes.spatial; ++i) {
    const auto at = static_cast<size_t>(axes.at(i));
    WEIR_ASSIGN(extents.emplace_back(), PatchExtent(images.dim(axes.at(i)), windows[static_cast<size_t>(i)], rates[at],
                                                    strides[at], paddings.kind));
  }
  return axes.Shape(images.dim(0), extents, channels);
}

Status Dilation2DShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape input, c.WithRank(0, 4));
  WEIR_ASSIGN(const PartialShape filter, c.WithRank(1, 3));
  WEIR_ASSIGN(const int64_t channels, MergeDim(input.dim(3), filter.dim(2)));
  WEIR_ASSIGN(PartialShape output, PatchedShape(c, input, filter.dims().subspan(0, 2), "Dilation2D", channels));
  c.set_output(0, std::move(output));
  return Status();
}

/// One patch becomes the channels of one place.
op::ShapeFn PatchesShape(const char* name, int spatial) {
  return [name, spatial](ShapeContext& c) {
    const ImageAxes axes{.channels_first = false, .spatial = spatial};
    WEIR_ASSIGN(const PartialShape images, c.WithRank(0, axes.rank()));
    WEIR_ASSIGN(const std::vector<int64_t> sizes, PerAxis(c.attrs(), "ksizes", axes, name, "ksizes"));
    int64_t channels = images.dim(axes.channels());
    for (int i = 0; i < spatial; ++i) {
      const int64_t size = sizes[static_cast<size_t>(axes.at(i))];
      if (size <= 0) return OutOfRange("ksizes is out of range.");
      WEIR_ASSIGN(channels, MultiplyDims(channels, size));
    }
    WEIR_ASSIGN(PartialShape patches,
                PatchedShape(c, images, std::span(sizes).subspan(1, static_cast<size_t>(spatial)), name, channels));
    c.set_output(0, std::move(patches));
    return Status();
  };
}

AttrList WindowAttrs(GradContext& g, std::initializer_list<const char*> names) {
  AttrList attrs;
  for (const char* name : names) {
    if (const op::AttrValue* value = g.attrs().Find(name)) attrs.emplace_back(name, *value);
  }
  return attrs;
}

Result<std::vector<Grad>> Dilation2DGradient(GradContext& g) {
  std::vector<Grad> grads;
  for (const char* by : {"Dilation2DBackpropInput", "Dilation2DBackpropFilter"}) {
    grads.push_back(g.Apply(by, {g.X(0), g.X(1), g.Dy(0)}, WindowAttrs(g, {"strides", "rates", "padding"})));
  }
  return grads;
}

/// Patches of the pixels' numbers (from 1; 0 is padding) tell where each element of dy came from; the elements of one
/// pixel are added. With [pixel, batch, channels] as segments, the images and channels need no numbers of their own.
Result<std::vector<Grad>> ImagePatchesGradient(GradContext& g) {
  constexpr DType kIndex = DType::kInt64;
  const Value shape = ShapeAs(g, g.X(0), kIndex), one = IndexScalar(g, kIndex, 1);
  const auto extent = [&](int32_t axis) { return g.Apply("GatherV2", {shape, g.ConstInt(axis), g.ConstInt(0)}); };
  const auto list = [&](const std::vector<Value>& values) {
    return g.ApplyList("Pack", values, {{"N", static_cast<int64_t>(values.size())}});
  };
  const Value batch = extent(0), rows = extent(1), columns = extent(2), channels = extent(3);
  const Value end = g.Add(g.Mul(rows, columns), one);
  const Value image = g.Reshape(g.Apply("Range", {one, end, one}), list({one, rows, columns, one}));
  const Value patches =
      g.Apply("ExtractImagePatches", {image}, WindowAttrs(g, {"ksizes", "strides", "rates", "padding"}));
  const Value sources = g.Reshape(patches, g.ConstInts({-1}));
  const Value count = g.Apply("Size", {sources}, {{"out_type", kIndex}});
  const Value order = g.ConstInts({1, 0, 2});
  const Value by_source = g.Apply("Transpose", {g.Reshape(g.Dy(0), list({batch, count, channels})), order});
  const Value sums = g.Apply("UnsortedSegmentSum", {by_source, sources, end});
  const Value without_padding = g.Apply("Slice", {sums, g.ConstInts({1, 0, 0}), g.ConstInts({-1, -1, -1})});
  return One(g.Reshape(g.Apply("Transpose", {without_padding, order}), shape));
}

void DeclareDilation(OpRegistry& ops) {
  const auto declare = [&ops](std::string_view name) {
    return ops.Declare(name)
        .Is(Category::kNeural)
        .In("input: T")
        .In("filter: T")
        .Attr(kRealNumberT)
        .Attr("strides: list(int) >= 4")
        .Attr("rates: list(int) >= 4")
        .Attr("padding: {'SAME', 'VALID'}");
  };
  declare("Dilation2D")
      .Out("output: T")
      .Shape(Dilation2DShape)
      .Grad(Dilation2DGradient)
      .Doc(
          "The maxima of windows of the input [batch, height, width, channels] plus the filter [height, width, "
          "channels]. Padding never is the maximum.");
  declare("Dilation2DBackpropInput")
      .In("out_backprop: T")
      .Out("in_backprop: T")
      .Shape(op::SameAs(0))
      .NoGradient(op::kUndefinedGradient)
      .Doc("The gradient of Dilation2D by its input: out_backprop at the place of each window's first maximum.");
  declare("Dilation2DBackpropFilter")
      .In("out_backprop: T")
      .Out("filter_backprop: T")
      .Shape(op::SameAs(1))
      .NoGradient(op::kUndefinedGradient)
      .Doc("The gradient of Dilation2D by its filter: out_backprop at the tap of each window's first maximum.");
}

void DeclarePatches(OpRegistry& ops) {
  ops.Declare("ExtractImagePatches")
      .Is(Category::kArray)
      .In("images: T")
      .Out("patches: T")
      .Attr("ksizes: list(int) >= 4")
      .Attr("strides: list(int) >= 4")
      .Attr("rates: list(int) >= 4")
      .Attr(
          "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
          "complex128, bool}")
      .Attr("padding: {'SAME', 'VALID'}")
      .MovesElements()
      .Shape(PatchesShape("ExtractImagePatches", 2))
      .Grad(ImagePatchesGradient)
      .Doc("Each window of the images [batch, height, width, channels] as the channels of one place, row by row.");
  ops.Declare("ExtractVolumePatches")
      .Is(Category::kArray)
      .In("input: T")
      .Out("patches: T")
      .Attr("ksizes: list(int) >= 5")
      .Attr("strides: list(int) >= 5")
      .Attr(kRealNumberT)
      .Attr("padding: {'SAME', 'VALID'}")
      .MovesElements()
      .Shape(PatchesShape("ExtractVolumePatches", 3))
      .NoGradient(op::kUndefinedGradient)
      .Doc("Each window of the volumes [batch, depth, height, width, channels] as the channels of one place.");
}

}  // namespace

void DeclarePatchOps(OpRegistry& ops) {
  DeclareDilation(ops);
  DeclarePatches(ops);
}

}  // namespace weir::ops
