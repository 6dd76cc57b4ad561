// Shape checks of convolutions and of their gradients, for kernels on every device.
#ifndef WEIR_SDK_CPP_CONVOLUTIONS_H_
#define WEIR_SDK_CPP_CONVOLUTIONS_H_

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "sdk/cpp/windows.h"

namespace weir::sdk {

/// y = x * w in two or three dimensions, and its gradients. x: images with `in` channels, y: images with `out`
/// channels, w: [spatial…, in / groups, out]; of a depthwise convolution [height, width, in, out / in], with a group
/// per channel. The outputs of group g are the channels [g * out / groups, (g + 1) * out / groups).
struct Convolution {
  Windows windows;
  int64_t in = 0, out = 0, groups = 1;
  /// True if x, w or y has no elements. Products of extents may overflow then.
  bool empty = false;

  int64_t group_in() const { return in / groups; }
  int64_t group_out() const { return out / groups; }
  /// Rows of the filter as a matrix with a column per output channel of a group.
  int64_t Rows() const { return windows.Taps() * group_in(); }
  /// Not for empty ones.
  double Flops() const {
    return 2.0 * static_cast<double>(windows.batch) * static_cast<double>(windows.OutputPlaces()) *
           static_cast<double>(windows.Taps()) * static_cast<double>(group_in()) * static_cast<double>(out);
  }

  /// The operation of a node: y from x and w, dx from the shape of x, w and dy, or dw from x, the shape of w and dy.
  enum class Direction { kForward, kByInput, kByFilter };

  /// Checks all shapes; InvalidArgument with TensorFlow's texts.
  int32_t Plan(const Prep& prep, Direction direction, uint32_t spatial, bool depthwise) {
    const Error& error = prep.error();
    const uint32_t rank = spatial + 2;
    if (const int32_t code = windows.ReadFormat(prep, spatial); code != WEIR_OK) return code;
    const bool forward = direction == Direction::kForward;
    const weir_shape& x = direction == Direction::kByInput ? prep.output(0).shape : prep.shape(0);
    const weir_shape& w = direction == Direction::kByFilter ? prep.output(0).shape : prep.shape(1);
    const weir_shape& y = forward ? prep.output(0).shape : prep.shape(2);
    if (const int32_t code = CheckSizes(prep, direction, rank); code != WEIR_OK) return code;
    if (x.rank != rank) return error.InvalidArgument("convolution input must be ", rank, "-dimensional: ", x);
    if (w.rank != rank) return error.InvalidArgument("convolution filter must be ", rank, "-dimensional: ", w);
    if (!forward && y.rank != rank) {
      return error.InvalidArgument("out_backprop must be ", rank, "-dimensional: ", y);
    }
    if (const int32_t code = CheckChannels(error, x, w, depthwise); code != WEIR_OK) return code;
    if (const int32_t code = windows.Plan(prep, x, {w.dims, spatial}); code != WEIR_OK) return code;
    for (const weir_shape* shape : {&x, &w}) {
      empty = empty || std::find(shape->dims, shape->dims + rank, 0) != shape->dims + rank;
    }
    for (uint32_t i = 0; i < spatial; ++i) empty = empty || windows.axes[i].output == 0;
    if (windows.IsOutput(y, out)) return WEIR_OK;
    return forward ? error.Fail(WEIR_INTERNAL, "the output has shape ", y, ", which does not fit input ", x,
                                " and filter ", w)
                   : Mismatch(error, y);
  }

 private:
  /// The operand that holds a shape of the wrong length, which the shape function refuses.
  static int32_t CheckSizes(const Prep& prep, Direction direction, uint32_t rank) {
    if (direction == Direction::kForward || prep.output(0).shape.rank == rank) return WEIR_OK;
    const uint32_t i = direction == Direction::kByInput ? 0 : 1;
    const weir_shape& sizes = prep.shape(i);
    const std::string_view name = i == 0 ? "input_sizes" : "filter_sizes";
    if (sizes.rank != 1) return prep.error().InvalidArgument(name, " input must be 1-dim, not ", sizes.rank);
    return prep.error().InvalidArgument(prep.node().op(), " requires ", name, " to contain ", rank,
                                        " values, but got: ", sizes.dims[0]);
  }

  int32_t CheckChannels(const Error& error, const weir_shape& x, const weir_shape& w, bool depthwise) {
    in = x.dims[windows.channel_axis()];
    const int64_t filter_in = w.dims[windows.spatial], filter_out = w.dims[windows.spatial + 1];
    out = filter_out;
    groups = 1;
    if (depthwise) {
      groups = std::max<int64_t>(in, 1);
      if (filter_in != in) {
        return error.InvalidArgument("input and filter must have the same depth: ", in, " vs ", filter_in);
      }
      if (__builtin_mul_overflow(in, filter_out, &out)) {
        return error.InvalidArgument("a depth of ", in, " times ", filter_out, " is too large");
      }
      return WEIR_OK;
    }
    for (uint32_t i = 0; i < windows.spatial; ++i) {
      if (w.dims[i] == 0) {
        return error.InvalidArgument("filter must not have zero elements (i.e. all dimensions must be non-zero)");
      }
    }
    if (filter_in == 0) return error.InvalidArgument("Depth of filter must not be 0");
    if (in % filter_in != 0) {
      return error.InvalidArgument("input depth must be evenly divisible by filter depth: ", in, " vs ", filter_in);
    }
    groups = in / filter_in;
    if (groups == 0) return error.InvalidArgument("Number of groups must not be 0");
    if (out % groups == 0) return WEIR_OK;
    return error.InvalidArgument("output depth must be evenly divisible by number of groups: ", out, " vs ", groups);
  }

  /// y is the gradient of an output with another shape.
  int32_t Mismatch(const Error& error, const weir_shape& y) const {
    if (y.dims[0] != windows.batch) {
      return error.InvalidArgument("input and out_backprop must have the same batch size. Input batch: ", windows.batch,
                                   ", outbackprop batch: ", y.dims[0]);
    }
    if (y.dims[windows.channel_axis()] != out) {
      return error.InvalidArgument("filter and out_backprop must have the same out_depth: ", out, " vs ",
                                   y.dims[windows.channel_axis()]);
    }
    uint32_t i = 0;
    while (i + 1 < windows.spatial && y.dims[windows.axis(i)] == windows.axes[i].output) ++i;
    const WindowAxis& a = windows.axes[i];
    return error.InvalidArgument("Size of out_backprop doesn't match computed: actual = ", y.dims[windows.axis(i)],
                                 ", computed = ", a.output, " spatial_dim: ", windows.axis(i), " input: ", a.input,
                                 " filter: ", a.window, " output: ", y.dims[windows.axis(i)], " stride: ", a.stride,
                                 " dilation: ", a.dilation);
  }
};

}  // namespace weir::sdk

#endif  // WEIR_SDK_CPP_CONVOLUTIONS_H_
