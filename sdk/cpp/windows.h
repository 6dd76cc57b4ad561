// Geometry of sliding windows over images, for kernels of convolutions and pooling on every device.
#ifndef WEIR_SDK_CPP_WINDOWS_H_
#define WEIR_SDK_CPP_WINDOWS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "sdk/cpp/prepare.h"

namespace weir::sdk {

/// A range of places.
struct Places {
  int64_t first = 0, end = 0;
  bool empty() const { return first >= end; }
};

/// One spatial axis. Tap t of output place o reads input place o * stride - before + t * dilation, which is padding if
/// it is outside [0, input).
struct WindowAxis {
  int64_t input = 0, window = 0, output = 0;
  int64_t stride = 1, dilation = 1;
  int64_t before = 0, after = 0;

  /// The input place of tap 0; may be negative.
  int64_t Start(int64_t place) const { return place * stride - before; }
  /// The taps of the output place that read the input; found by division, since a window may be much larger than it.
  Places Taps(int64_t place) const {
    const int64_t start = Start(place);
    const int64_t first = start < 0 ? (-start - 1) / dilation + 1 : 0;
    const int64_t end = start < input ? (input - 1 - start) / dilation + 1 : 0;
    return {std::min(first, window), std::min(end, window)};
  }
  /// The output places in which the tap reads the input.
  Places Outputs(int64_t tap) const {
    const int64_t shift = tap * dilation - before;  // input place in output place 0
    const int64_t first = shift < 0 ? (-shift - 1) / stride + 1 : 0;
    const int64_t end = shift < input ? (input - 1 - shift) / stride + 1 : 0;
    return {std::min(first, output), std::min(end, output)};
  }
  /// True if no window touches padding.
  bool Inside() const {
    return output == 0 || window == 0 || (before == 0 && Start(output - 1) + (window - 1) * dilation < input);
  }

  /// Fills in `output`, `before` and `after` from input, window, stride and dilation: padding for SAME if `same`, else
  /// the given non-negative ones. InvalidArgument with TensorFlow's texts if no window fits; every place of a tap of a
  /// planned axis is representable.
  int32_t Plan(const Error& error, bool same, int64_t padding_before, int64_t padding_after) {
    if (stride <= 0) return error.InvalidArgument("Stride must be > 0, but got ", stride);
    if (dilation < 1) return error.InvalidArgument("Dilation rate must be >= 1, but got ", dilation);
    before = padding_before;
    after = padding_after;
    int64_t reach = 0, padded = 0;  // of a window; of the input
    bool fits = !__builtin_mul_overflow(std::max<int64_t>(window, 1) - 1, dilation, &reach);
    fits = fits && !__builtin_add_overflow(reach, window > 0 ? 1 : 0, &reach);
    fits = fits && !__builtin_add_overflow(input, before, &padded) && !__builtin_add_overflow(padded, after, &padded);
    if (same) {
      output = input / stride + (input % stride != 0 ? 1 : 0);
      int64_t end = 0;  // of the window at the last place
      fits = fits && !__builtin_add_overflow(std::max<int64_t>(output - 1, 0) * stride, reach, &end);
      const int64_t needed = !fits || output == 0 ? 0 : std::max<int64_t>(0, end - input);
      before = needed / 2;
      after = needed - before;
    }
    if (!fits) {
      return error.InvalidArgument("a window of ", window, " with dilation ", dilation, " and paddings ",
                                   padding_before, " and ", padding_after, " is too large for an input of ", input);
    }
    if (same) return WEIR_OK;
    if (padded < reach) {
      return error.InvalidArgument("Computed output size would be negative: ", (padded - reach) / stride + 1,
                                   " [input_size: ", input, ", effective_filter_size: ", reach, ", stride: ", stride,
                                   "]");
    }
    output = (padded - reach) / stride + 1;
    return WEIR_OK;
  }
};

/// Most spatial axes of images.
inline constexpr uint32_t kMostWindowAxes = 3;

/// The names of the attributes that steer windows. Empty names mean that the op has no such attribute.
struct WindowAttrs {
  std::string_view strides = "strides";
  std::string_view dilations = "dilations";
};

/// Windows over images [batch, spatial…, channels], or [batch, channels, spatial…] if channels_first.
struct Windows {
  bool channels_first = false;
  uint32_t spatial = 0;
  int64_t batch = 0, channels = 0;
  std::array<WindowAxis, kMostWindowAxes> axes;

  uint32_t channel_axis() const { return channels_first ? 1 : spatial + 1; }
  /// Axis of a shape or attribute that belongs to spatial axis i.
  uint32_t axis(uint32_t i) const { return i + (channels_first ? 2 : 1); }
  /// Places of one image: products of the spatial extents.
  int64_t InputPlaces() const {
    return Product([](const WindowAxis& a) { return a.input; });
  }
  int64_t OutputPlaces() const {
    return Product([](const WindowAxis& a) { return a.output; });
  }
  int64_t Taps() const {
    return Product([](const WindowAxis& a) { return a.window; });
  }
  bool Inside() const {
    return std::all_of(axes.begin(), axes.begin() + spatial, [](const WindowAxis& a) { return a.Inside(); });
  }

  /// Reads data_format, whose default has channels last. Before Plan, for kernels that need axes to find windows.
  int32_t ReadFormat(const Prep& prep, uint32_t spatial_axes) {
    spatial = spatial_axes;
    const std::string_view format = prep.node().String("data_format", "NHWC");
    channels_first = format == "NCHW" || format == "NCDHW";
    if (format != "NCHW_VECT_C") return WEIR_OK;
    return prep.error().InvalidArgument("data_format NCHW_VECT_C, packed int8 of GPUs, is not supported");
  }

  /// Reads the steering attributes, and plans windows with these spatial extents over images of shape `images`, which
  /// have the rank spatial + 2. InvalidArgument with TensorFlow's texts for strides, dilations and paddings that it
  /// refuses, and for windows that do not fit.
  int32_t Plan(const Prep& prep, const weir_shape& images, std::span<const int64_t> windows, WindowAttrs attrs = {}) {
    batch = images.dims[0];
    channels = images.dims[channel_axis()];
    const Error& error = prep.error();
    std::span<const int64_t> strides, dilations;
    if (const int32_t code = ReadSteps(prep, attrs, &strides, &dilations); code != WEIR_OK) return code;
    const std::string_view padding = prep.node().String("padding");
    const std::span<const int64_t> sides = prep.node().Ints("explicit_paddings");
    if (const int32_t code = CheckSides(error, padding, sides); code != WEIR_OK) return code;
    for (uint32_t i = 0; i < spatial; ++i) {
      const uint32_t at = axis(i);
      WindowAxis& a = axes[i];
      a = {images.dims[at], windows[i]};
      a.stride = strides.empty() ? 1 : strides[at];
      a.dilation = dilations.empty() ? 1 : dilations[at];
      const bool given = padding == "EXPLICIT";
      const int64_t before = given ? sides[2 * at] : 0, after = given ? sides[2 * at + 1] : 0;
      if (const int32_t code = a.Plan(error, padding == "SAME", before, after); code != WEIR_OK) return code;
    }
    return WEIR_OK;
  }

  /// True if `shape` is that of the output with this many channels.
  bool IsOutput(const weir_shape& shape, int64_t output_channels) const {
    if (shape.rank != spatial + 2 || shape.dims[0] != batch || shape.dims[channel_axis()] != output_channels) {
      return false;
    }
    for (uint32_t i = 0; i < spatial; ++i) {
      if (shape.dims[axis(i)] != axes[i].output) return false;
    }
    return true;
  }

 private:
  template <class Extent>
  int64_t Product(Extent extent) const {
    int64_t n = 1;
    for (uint32_t i = 0; i < spatial; ++i) n *= extent(axes[i]);
    return n;
  }

  int32_t ReadSteps(const Prep& prep, const WindowAttrs& attrs, std::span<const int64_t>* strides,
                    std::span<const int64_t>* dilations) const {
    const Error& error = prep.error();
    const uint32_t rank = spatial + 2;
    if (!attrs.strides.empty()) {
      *strides = prep.node().Ints(attrs.strides);
      if (strides->size() != rank) {
        return error.InvalidArgument("Sliding window strides field must specify ", rank, " dimensions");
      }
      if ((*strides)[0] != 1 || (*strides)[channel_axis()] != 1) {
        return error.InvalidArgument(
            "Current implementation does not yet support strides in the batch and depth dimensions.");
      }
    }
    if (!attrs.dilations.empty()) {
      *dilations = prep.node().Ints(attrs.dilations);
      if (!dilations->empty() && dilations->size() != rank) {
        return error.InvalidArgument("Sliding window dilations field must specify ", rank, " dimensions");
      }
      if (!dilations->empty() && ((*dilations)[0] != 1 || (*dilations)[channel_axis()] != 1)) {
        return error.InvalidArgument(
            "Current implementation does not yet support dilations in the batch and depth dimensions.");
      }
    }
    return WEIR_OK;
  }

  int32_t CheckSides(const Error& error, std::string_view padding, std::span<const int64_t> sides) const {
    if (padding != "EXPLICIT") {
      if (sides.empty()) return WEIR_OK;
      return error.InvalidArgument(
          "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT");
    }
    const uint32_t wanted = 2 * (spatial + 2);
    if (sides.size() != wanted) {
      return error.InvalidArgument("explicit_paddings attribute must contain ", wanted,
                                   " values, but got: ", sides.size());
    }
    for (const int64_t side : sides) {
      if (side < 0) return error.InvalidArgument("All elements of explicit_paddings must be nonnegative");
    }
    const uint32_t c = 2 * channel_axis();
    if (sides[0] == 0 && sides[1] == 0 && sides[c] == 0 && sides[c + 1] == 0) return WEIR_OK;
    return error.InvalidArgument("Nonzero explicit padding in the batch or depth dimensions is not supported");
  }
};

}  // namespace weir::sdk

#endif  // WEIR_SDK_CPP_WINDOWS_H_
