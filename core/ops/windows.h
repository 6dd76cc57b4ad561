// Sliding windows of convolutions and pooling in shape functions: layouts, paddings, output extents. Extents are -1
// where unknown; errors have TensorFlow's texts.
#ifndef WEIR_CORE_OPS_WINDOWS_H_
#define WEIR_CORE_OPS_WINDOWS_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/op/attrs.h"
#include "core/tensor/shape.h"

namespace weir::ops {

/// The axes of images: [batch, spatial…, channels], or [batch, channels, spatial…] if channels_first.
struct ImageAxes {
  bool channels_first = false;
  int spatial = 2;

  int rank() const { return spatial + 2; }
  int channels() const { return channels_first ? 1 : spatial + 1; }
  /// Spatial axis i.
  int at(int i) const { return i + (channels_first ? 2 : 1); }
  /// A shape of these axes.
  PartialShape Shape(int64_t batch, const std::vector<int64_t>& extents, int64_t channel_count) const;
};

/// From the attribute data_format; without it, channels are last. InvalidArgument for a format that is not one of
/// images with `spatial` axes, and for NCHW_VECT_C.
Result<ImageAxes> ImageAxesOf(const op::AttrView& attrs, int spatial);

enum class WindowPadding { kSame, kValid, kExplicit };

/// The attributes padding and explicit_paddings. InvalidArgument if explicit paddings have the wrong length, are
/// negative, pad batch or channels, or are given without EXPLICIT.
struct WindowPaddings {
  WindowPadding kind = WindowPadding::kValid;
  /// Explicit paddings of the spatial axes, before and after; zeros for other kinds.
  std::vector<std::array<int64_t, 2>> sides;

  static Result<WindowPaddings> Of(const op::AttrView& attrs, const ImageAxes& axes);
};

/// The number of places that a window takes along an axis. `stride` and `dilation` are known; InvalidArgument if they
/// are not positive, or if the window does not fit.
struct WindowStep {
  int64_t stride = 1;
  int64_t dilation = 1;
};
Result<int64_t> WindowedExtent(int64_t input, int64_t window, WindowStep step, WindowPadding padding,
                               std::array<int64_t, 2> sides = {0, 0});

/// The output extents of all spatial axes of `images`, which has the rank of `axes`. `windows`: spatial extents (-1
/// unknown). `strides` and `dilations` have an element per axis of the images; empty dilations are ones.
Result<std::vector<int64_t>> WindowedExtents(const ImageAxes& axes, const PartialShape& images,
                                             const std::vector<int64_t>& windows, const std::vector<int64_t>& strides,
                                             const std::vector<int64_t>& dilations, const WindowPaddings& paddings);

/// The list attribute `name`. InvalidArgument unless it has an element per axis: "Conv2D requires the stride attribute
/// to contain 4 values, but got: 3", with `what` for the words between "requires the" and "attribute".
Result<std::vector<int64_t>> PerAxis(const op::AttrView& attrs, std::string_view name, const ImageAxes& axes,
                                     std::string_view op, std::string_view what);

}  // namespace weir::ops

#endif  // WEIR_CORE_OPS_WINDOWS_H_
