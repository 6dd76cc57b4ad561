// Windows of pooling: their geometry from a node's attributes or inputs, and walks over them.
#ifndef WEIR_PLUGINS_FUNCTORS_POOL_H_
#define WEIR_PLUGINS_FUNCTORS_POOL_H_

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <vector>

#include "plugins/functors/operands.h"
#include "sdk/cpp/windows.h"

namespace weir::functors {

inline constexpr int64_t kPoolTileWork = 32 * 1024;  // elements read in a tile, at least

/// What a kernel takes of TensorFlow's windows.
struct PoolForm {
  uint32_t spatial = 2;
  bool depth = false;  // windows may span channels
  std::string_view depth_refusal = "Pooling is not yet supported on the depth dimension.";
  int steps_at = -1;  // input with the window's extents, before that of the strides; -1: attributes
};

/// Pooling of `outer` arrays [planes, rows, columns, inner], where `inner` channels are beside each other. Images with
/// leading channels are arrays of one channel each. Two-dimensional images have one plane.
struct PoolPlan {
  bool channels_first = false;
  int64_t batch = 0, channels = 0;
  int64_t outer = 0, inner = 0;
  int64_t depth_window = 1;  // channels in a window; 1 unless all other extents of the window are 1
  std::array<sdk::WindowAxis, 3> axes;
  std::array<int64_t, 3> in_steps{}, out_steps{};  // elements per step along an axis
  int64_t in_size = 0, out_size = 0;               // elements of one outer array
  bool empty = false;                              // the output has no elements

  /// Plans for images of that shape. InvalidArgument with TensorFlow's texts for steps and paddings that it refuses.
  int32_t Make(const sdk::Prep& prep, const weir_shape& images, const PoolForm& form) {
    sdk::Windows windows;
    if (const int32_t code = windows.ReadFormat(prep, form.spatial); code != WEIR_OK) return code;
    channels_first = windows.channels_first;
    std::vector<int64_t> extents, strides;
    if (const int32_t code = ReadSteps(prep, form, &extents, &strides); code != WEIR_OK) return code;
    batch = images.dims[0];
    channels = images.dims[windows.channel_axis()];
    const sdk::Error& error = prep.error();
    if (const int32_t code = PlanDepth(error, windows, form, extents, strides); code != WEIR_OK) return code;
    const std::string_view padding = prep.node().String("padding");
    const std::span<const int64_t> sides = prep.node().Ints("explicit_paddings");
    if (const int32_t code = CheckSides(error, windows, padding, sides, extents); code != WEIR_OK) return code;
    const uint32_t lead = 3 - form.spatial;
    for (uint32_t i = 0; i < lead; ++i) axes[i] = {1, 1, 1};
    for (uint32_t i = 0; i < form.spatial; ++i) {
      const uint32_t at = windows.axis(i);
      sdk::WindowAxis& axis = axes[lead + i];
      axis = {images.dims[at], extents[at]};
      axis.stride = strides[at];
      const bool given = padding == "EXPLICIT";
      const int64_t before = given ? sides[2 * at] : 0, after = given ? sides[2 * at + 1] : 0;
      if (const int32_t code = axis.Plan(error, padding == "SAME", before, after); code != WEIR_OK) return code;
      if (axis.output == 0 && axis.input > 0) {
        return error.InvalidArgument("Computed output size would be negative: 0 [input_size: ", axis.input,
                                     ", effective_filter_size: ", axis.window, ", stride: ", axis.stride, "]");
      }
    }
    Measure();
    return WEIR_OK;
  }

  /// The shape of what pooling gives.
  std::vector<int64_t> Output(uint32_t spatial) const { return Shape(spatial, channels / depth_window, true); }
  std::vector<int64_t> Input(uint32_t spatial) const { return Shape(spatial, channels, false); }

  /// Rows of outputs, [outer, planes, rows].
  int64_t OutputRows() const { return empty ? 0 : outer * axes[0].output * axes[1].output; }

  /// Calls body(array, plane, row) for rows of outputs [begin, end).
  template <class Body>
  void ForOutputRows(int64_t begin, int64_t end, Body body) const {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i % axes[1].output, rest = i / axes[1].output;
      body(rest / axes[0].output, rest % axes[0].output, row);
    }
  }

  /// The taps of one output place, by axis.
  struct Box {
    sdk::Places planes, rows, columns;
    int64_t count() const {
      if (planes.empty() || rows.empty() || columns.empty()) return 0;
      return (planes.end - planes.first) * (rows.end - rows.first) * (columns.end - columns.first);
    }
  };
  /// The input places that the window of an output place reads.
  Box Reads(int64_t plane, int64_t row, int64_t column) const {
    return {ReadsOf(axes[0], plane), ReadsOf(axes[1], row), ReadsOf(axes[2], column)};
  }
  /// The columns of that.
  sdk::Places ReadsColumns(int64_t column) const { return ReadsOf(axes[2], column); }
  /// The output places whose windows read an input place.
  Box ReadBy(int64_t plane, int64_t row, int64_t column) const {
    return {ReadByOf(axes[0], plane), ReadByOf(axes[1], row), ReadByOf(axes[2], column)};
  }

  /// True if `lanes` elements may be read at each place of the box and written at output `column` of a row: they end
  /// in the row.
  bool HasLanesBehind(const Box& box, int64_t column, int64_t lanes) const {
    return (box.columns.end - 1) * inner + lanes <= axes[2].input * inner &&
           column * inner + lanes <= axes[2].output * inner;
  }

  /// Calls body(at) with the position in an outer array of every place of the box, in order.
  template <class Body>
  static void ForBox(const Box& box, const std::array<int64_t, 3>& steps, Body body) {
    for (int64_t z = box.planes.first; z < box.planes.end; ++z) {
      for (int64_t y = box.rows.first; y < box.rows.end; ++y) {
        const int64_t line = z * steps[0] + y * steps[1];
        for (int64_t x = box.columns.first; x < box.columns.end; ++x) body(line + x * steps[2]);
      }
    }
  }

 private:
  static sdk::Places ReadsOf(const sdk::WindowAxis& axis, int64_t place) {
    const int64_t start = axis.Start(place);
    return {std::max<int64_t>(start, 0), std::min(start + axis.window, axis.input)};
  }
  static sdk::Places ReadByOf(const sdk::WindowAxis& axis, int64_t place) {
    const int64_t last = place + axis.before, first = last - axis.window + 1;
    return {first <= 0 ? 0 : (first - 1) / axis.stride + 1, std::min(last / axis.stride + 1, axis.output)};
  }

  int32_t ReadSteps(const sdk::Prep& prep, const PoolForm& form, std::vector<int64_t>* extents,
                    std::vector<int64_t>* strides) const {
    const sdk::Error& error = prep.error();
    const uint32_t rank = form.spatial + 2;
    const auto by_attribute = [&](std::string_view name) {
      const std::span<const int64_t> given = prep.node().Ints(name);
      return std::vector<int64_t>(given.begin(), given.end());
    };
    if (form.steps_at < 0) {
      *extents = by_attribute("ksize");
      *strides = by_attribute("strides");
    } else {
      const auto at = static_cast<uint32_t>(form.steps_at);
      int32_t code = Steering(prep, at, extents);
      if (code == WEIR_OK) code = Steering(prep, at + 1, strides);
      if (code != WEIR_OK) return code;
    }
    if (extents->size() != rank) {
      return error.InvalidArgument("Sliding window ksize field must specify ", rank, " dimensions");
    }
    if (strides->size() != rank) {
      return error.InvalidArgument("Sliding window stride field must specify ", rank, " dimensions");
    }
    for (uint32_t i = 0; i < rank; ++i) {
      const int64_t extent = (*extents)[i], stride = (*strides)[i];
      if (extent <= 0) return error.InvalidArgument("Sliding window ksize for dimension ", i, " was zero.");
      if (stride <= 0) return error.InvalidArgument("Stride must be > 0, but got ", stride);
      constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
      if (extent > kMost || stride > kMost) {
        return error.InvalidArgument("Attr ", extent > kMost ? "ksize" : "strides", " has value ",
                                     std::max(extent, stride), " out of range for an int32");
      }
    }
    if ((*extents)[0] != 1 || (*strides)[0] != 1) {
      return error.InvalidArgument("Pooling is not yet supported on the batch dimension.");
    }
    return WEIR_OK;
  }

  int32_t PlanDepth(const sdk::Error& error, const sdk::Windows& windows, const PoolForm& form,
                    std::vector<int64_t>& extents, std::vector<int64_t>& strides) {
    const uint32_t at = windows.channel_axis();
    if (extents[at] == 1 && strides[at] == 1) return WEIR_OK;
    if (!form.depth) return error.InvalidArgument(form.depth_refusal);
    for (uint32_t i = 0; i < form.spatial; ++i) {
      if (extents[windows.axis(i)] != 1 || strides[windows.axis(i)] != 1) {
        return error.InvalidArgument(
            "MaxPooling supports exactly one of pooling across depth or pooling across width/height.");
      }
    }
    if (channels % extents[at] != 0) {
      return error.InvalidArgument("Depthwise max pooling requires the depth window to evenly divide the input depth");
    }
    if (extents[at] != strides[at]) {
      return error.InvalidArgument("Depthwise max pooling requires the depth window to equal the depth stride");
    }
    if (channels_first) {
      return error.InvalidArgument("Depthwise max pooling requires data_format NHWC");
    }
    depth_window = extents[at];
    return WEIR_OK;
  }

  static int32_t CheckSides(const sdk::Error& error, const sdk::Windows& windows, std::string_view padding,
                            std::span<const int64_t> sides, const std::vector<int64_t>& extents) {
    if (padding != "EXPLICIT") {
      if (sides.empty()) return WEIR_OK;
      return error.InvalidArgument(
          "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT");
    }
    const uint32_t rank = windows.spatial + 2;
    if (sides.size() != 2 * rank) {
      return error.InvalidArgument("explicit_paddings attribute must contain ", 2 * rank,
                                   " values, but got: ", sides.size());
    }
    for (const int64_t side : sides) {
      if (side < 0) return error.InvalidArgument("All elements of explicit_paddings must be nonnegative");
    }
    const uint32_t c = 2 * windows.channel_axis();
    if (sides[0] != 0 || sides[1] != 0 || sides[c] != 0 || sides[c + 1] != 0) {
      return error.InvalidArgument("Nonzero explicit padding in the batch or depth dimensions is not supported");
    }
    constexpr std::string_view kNames[2][2] = {{"Top", "Bottom"}, {"Left", "Right"}};
    for (uint32_t i = 0; i < 2; ++i) {
      for (uint32_t side = 0; side < 2; ++side) {
        const int64_t given = sides[2 * windows.axis(i) + side], extent = extents[windows.axis(i)];
        if (given < extent) continue;
        return error.InvalidArgument(kNames[i][side], " padding ", given, " needs to be smaller than the window size ",
                                     extent);
      }
    }
    return WEIR_OK;
  }

  void Measure() {
    empty = batch == 0 || channels == 0;
    for (const sdk::WindowAxis& axis : axes) empty = empty || axis.output == 0;
    outer = channels_first ? (empty ? 0 : batch * channels) : batch;
    inner = channels_first ? 1 : channels;
    const auto measure = [&](auto extent, int64_t last, std::array<int64_t, 3>* steps) {
      const int64_t any = batch == 0 || channels == 0 ? 0 : 1;
      const std::vector<int64_t> all = StepsOf({any, extent(axes[0]), extent(axes[1]), extent(axes[2]), last});
      *steps = {all[1], all[2], all[3]};
      return all[0];
    };
    in_size = measure([](const sdk::WindowAxis& a) { return a.input; }, inner, &in_steps);
    out_size = measure([](const sdk::WindowAxis& a) { return a.output; }, inner / depth_window, &out_steps);
  }

  std::vector<int64_t> Shape(uint32_t spatial, int64_t channel_count, bool output) const {
    std::vector<int64_t> dims = {batch};
    if (channels_first) dims.push_back(channel_count);
    for (uint32_t i = 3 - spatial; i < 3; ++i) dims.push_back(output ? axes[i].output : axes[i].input);
    if (!channels_first) dims.push_back(channel_count);
    return dims;
  }
};

/// InvalidArgument "Expected grad shape to be [1,2,2,1], but got [1,2,3,1]" unless input i has that shape.
inline int32_t ExpectPooled(const sdk::Prep& prep, uint32_t i, std::string_view name,
                            const std::vector<int64_t>& dims) {
  const weir_shape wanted{static_cast<uint32_t>(dims.size()), 0, dims.data()};
  if (sdk::SameShape(prep.shape(i), wanted)) return WEIR_OK;
  return prep.error().InvalidArgument("Expected ", name, " shape to be ", wanted, ", but got ", prep.shape(i));
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_POOL_H_
