#include "core/ops/windows.h"

#include <string>

#include "core/base/errors.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {

PartialShape ImageAxes::Shape(int64_t batch, const std::vector<int64_t>& extents, int64_t channel_count) const {
  PartialShape shape = PartialShape::OfRank(rank());
  shape.set_dim(0, batch);
  shape.set_dim(channels(), channel_count);
  for (int i = 0; i < spatial; ++i) shape.set_dim(at(i), extents[static_cast<size_t>(i)]);
  return shape;
}

Result<ImageAxes> ImageAxesOf(const op::AttrView& attrs, int spatial) {
  ImageAxes axes;
  axes.spatial = spatial;
  if (!attrs.Has("data_format")) return axes;
  WEIR_ASSIGN(const std::string format, attrs.String("data_format"));
  const std::string_view last = spatial == 3 ? "NDHWC" : "NHWC", first = spatial == 3 ? "NCDHW" : "NCHW";
  axes.channels_first = format == first;
  if (format == first || format == last) return axes;
  if (format == "NCHW_VECT_C") {
    return InvalidArgument("data_format NCHW_VECT_C, packed int8 of GPUs, is not supported; wanted {} or {}", last,
                           first);
  }
  return InvalidArgument("Invalid data format string: {}", format);
}

Result<WindowPaddings> WindowPaddings::Of(const op::AttrView& attrs, const ImageAxes& axes) {
  WindowPaddings made;
  made.sides.resize(static_cast<size_t>(axes.spatial), {0, 0});
  WEIR_ASSIGN(const std::string padding, attrs.String("padding"));
  std::vector<int64_t> given;
  if (attrs.Has("explicit_paddings")) {
    WEIR_ASSIGN(given, attrs.Ints("explicit_paddings"));
  }
  made.kind = padding == "SAME"    ? WindowPadding::kSame
              : padding == "VALID" ? WindowPadding::kValid
                                   : WindowPadding::kExplicit;
  if (made.kind != WindowPadding::kExplicit) {
    if (given.empty()) return made;
    return InvalidArgument("explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT");
  }
  const auto wanted = static_cast<size_t>(2 * axes.rank());
  if (given.size() != wanted) {
    return InvalidArgument("explicit_paddings attribute must contain {} values, but got: {}", wanted, given.size());
  }
  for (const int64_t side : given) {
    if (side < 0) return InvalidArgument("All elements of explicit_paddings must be nonnegative");
  }
  const auto channels = static_cast<size_t>(2 * axes.channels());
  if (given[0] != 0 || given[1] != 0 || given[channels] != 0 || given[channels + 1] != 0) {
    return InvalidArgument("Nonzero explicit padding in the batch or depth dimensions is not supported");
  }
  for (int i = 0; i < axes.spatial; ++i) {
    const auto at = static_cast<size_t>(2 * axes.at(i));
    made.sides[static_cast<size_t>(i)] = {given[at], given[at + 1]};
  }
  return made;
}

Result<int64_t> WindowedExtent(int64_t input, int64_t window, WindowStep step, WindowPadding padding,
                               std::array<int64_t, 2> sides) {
  if (step.stride <= 0) return InvalidArgument("Stride must be > 0, but got {}", step.stride);
  if (step.dilation < 1) return InvalidArgument("Dilation rate must be >= 1, but got {}", step.dilation);
  if (padding == WindowPadding::kSame) {
    if (input < 0) return int64_t{-1};
    return input / step.stride + (input % step.stride != 0 ? 1 : 0);
  }
  if (padding == WindowPadding::kExplicit) {
    WEIR_ASSIGN(input, AddDims(input, sides[0]));
    WEIR_ASSIGN(input, AddDims(input, sides[1]));
  }
  if (step.dilation > 1) {
    WEIR_ASSIGN(window, SubtractDims(window, 1));
    WEIR_ASSIGN(window, MultiplyDims(window, step.dilation));
    WEIR_ASSIGN(window, AddDims(window, 1));
  }
  WEIR_ASSIGN(const int64_t rest, SubtractDims(input, window));
  if (rest < 0) return int64_t{-1};
  WEIR_ASSIGN(const int64_t places, AddDims(rest, step.stride));
  return places / step.stride;
}

Result<std::vector<int64_t>> WindowedExtents(const ImageAxes& axes, const PartialShape& images,
                                             const std::vector<int64_t>& windows, const std::vector<int64_t>& strides,
                                             const std::vector<int64_t>& dilations, const WindowPaddings& paddings) {
  std::vector<int64_t> extents;
  for (int i = 0; i < axes.spatial; ++i) {
    const auto at = static_cast<size_t>(axes.at(i)), which = static_cast<size_t>(i);
    const WindowStep step{strides[at], dilations.empty() ? 1 : dilations[at]};
    WEIR_ASSIGN(extents.emplace_back(),
                WindowedExtent(images.dim(axes.at(i)), windows[which], step, paddings.kind, paddings.sides[which]));
  }
  return extents;
}

Result<std::vector<int64_t>> PerAxis(const op::AttrView& attrs, std::string_view name, const ImageAxes& axes,
                                     std::string_view op, std::string_view what) {
  WEIR_ASSIGN(std::vector<int64_t> values, attrs.Ints(name));
  if (values.size() == static_cast<size_t>(axes.rank())) return values;
  return InvalidArgument("{} requires the {} attribute to contain {} values, but got: {}", op, what, axes.rank(),
                         values.size());
}

}  // namespace weir::ops
