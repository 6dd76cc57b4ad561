// Conversion of floating-point numbers to quantised integers and back.
#include "plugins/kernels_eigen/kernels/quantize.h"

#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/quantized_families.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Prep;
using sdk::View;

enum class QuantMode { kMinCombined, kMinFirst, kScaled };

QuantMode QuantModeOf(const sdk::Node& node) {
  const std::string_view name = node.String("mode", "MIN_COMBINED");
  return name == "SCALED" ? QuantMode::kScaled : name == "MIN_FIRST" ? QuantMode::kMinFirst : QuantMode::kMinCombined;
}

/// The slices of an array that have ranges of their own: [outer, slices, inner].
struct RangeSlices {
  int64_t outer = 1, slices = 1, inner = 1;

  /// Slices of input 0 by the attribute axis, whose ranges are inputs 1 and 2.
  int32_t Plan(const Prep& prep) {
    const sdk::Error& error = prep.error();
    const weir_shape& shape = prep.shape(0);
    const int64_t axis = prep.node().Int("axis", -1);
    if (axis < -1) return error.InvalidArgument("axis should be at least -1, got ", axis);
    if (axis >= static_cast<int64_t>(shape.rank)) {
      return error.InvalidArgument(
          "Axis must be less than input dimension; axis is on a zero-based index, so its value must always be less "
          "than number of input's dims, but given axis value was ",
          axis, " and input's dims was ", shape.rank);
    }
    if (axis >= 0) slices = shape.dims[axis];
    if (!HasNoElements(shape)) {
      for (uint32_t i = 0; i < shape.rank; ++i) {
        if (static_cast<int64_t>(i) != axis) (static_cast<int64_t>(i) < axis ? outer : inner) *= shape.dims[i];
      }
    } else {
      outer = 0;
    }
    for (uint32_t i = 1; i < 3; ++i) {
      const weir_shape& range = prep.shape(i);
      const char* name = i == 1 ? "min_range" : "max_range";
      if (axis < 0 && (HasNoElements(range) || sdk::SizeOf(range) != 1)) {
        return error.InvalidArgument("If axis is not specified, ", name,
                                     " must contain a single float element, but it has shape ", range);
      }
      if (axis >= 0 && (range.rank != 1 || range.dims[0] != slices)) {
        return error.InvalidArgument("If axis is specified, ", name,
                                     " must be a 1-D tensor whose size matches the axis dimension of the input and "
                                     "output tensors, but it has shape ",
                                     range, " and the dimension is ", slices);
      }
    }
    return WEIR_OK;
  }
  /// Calls body(slice, begin, end) with ranges of elements.
  template <class Body>
  void ForRuns(Body&& body) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t s = 0; s < slices; ++s) {
        const int64_t begin = (o * slices + s) * inner;
        body(s, begin, begin + inner);
      }
    }
  }
};

struct Quantize {
  RangeSlices slices;
  QuantMode mode = QuantMode::kMinCombined;
  bool to_even = false, narrow = false;
  float least_range = 0.01f;

  int32_t Prepare(Prep& prep) {
    mode = QuantModeOf(prep.node());
    const std::string_view round = prep.node().String("round_mode", "HALF_AWAY_FROM_ZERO");
    to_even = round == "HALF_TO_EVEN";
    if (to_even && mode != QuantMode::kScaled) {
      return prep.error().InvalidArgument("Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '",
                                          prep.node().String("mode", "MIN_COMBINED"), "'.");
    }
    if (mode == QuantMode::kMinFirst && prep.node().Int("axis", -1) != -1) {
      return prep.error().InvalidArgument("MIN_FIRST mode is not implemented for Quantize with axis != -1.");
    }
    narrow = prep.node().Bool("narrow_range", false);
    least_range = static_cast<float>(prep.node().Float("ensure_minimum_range", 0.01));
    return slices.Plan(prep);
  }

  /// The numbers of one range, as integers, which is widened to hold 0 and not to be a point.
  struct Range {
    float low = 0, high = 0, scale = 0;
  };

  template <class T>
  Range RangeOf(float low, float high) const {
    Range range;
    range.low = std::min(0.0f, low);
    const float least = std::max(1.0f, std::max(std::fabs(low), std::fabs(high))) * least_range;
    range.high = std::max(0.0f, std::max(high, range.low + least));
    switch (mode) {
      case QuantMode::kMinCombined:
        range.scale = static_cast<float>((kMost<T> - kLeast<T>) / static_cast<double>(range.high - range.low));
        break;
      case QuantMode::kMinFirst:
        range.scale = range.high == range.low
                          ? 0
                          : static_cast<float>((kIntegers<T> - 1) / static_cast<double>(range.high - range.low));
        break;
      case QuantMode::kScaled: {
        const auto first = static_cast<float>(kLeast<T> + (narrow ? 1 : 0)), last = static_cast<float>(kMost<T>);
        constexpr float kNone = std::numeric_limits<float>::max();
        const float below = first * range.low > 0 ? first / range.low : kNone;
        const float above = last * range.high > 0 ? last / range.high : kNone;
        range.scale = std::min(below, above);
        range.low = first / range.scale;
        range.high = last / range.scale;
        break;
      }
    }
    return range;
  }

  template <class T>
  T One(const Range& range, float x) const {
    if (mode == QuantMode::kMinFirst) {
      const float first = std::round(range.low * range.scale);
      const auto shift = static_cast<float>(first - kLeast<T>);
      // The largest float that is an int32; larger ones saturate there, as TensorFlow's do.
      constexpr float kLargest = sizeof(T) == 4 ? 2147483520.0f : static_cast<float>(kMost<T>);
      return ToInteger<T>(std::min(std::round(x * range.scale) - shift, kLargest));
    }
    const float limited = std::max(std::min(x, range.high), range.low);
    if (mode == QuantMode::kScaled) {
      const float scaled = limited * range.scale;
      return ToInteger<T>(to_even ? std::nearbyint(scaled) : std::round(scaled));
    }
    const float scaled = (limited - range.low) * range.scale;
    if constexpr (std::is_signed_v<T>) return ToInteger<T>(std::round(scaled - static_cast<float>(kIntegers<T> / 2)));
    return ToInteger<T>(std::trunc(scaled + 0.5f));
  }

  template <class T>
  void Run(View<const float> x, View<const float> low, View<const float> high, View<T> y, View<float> out_low,
           View<float> out_high) const {
    for (int64_t s = 0; s < slices.slices; ++s) {
      const Range range = RangeOf<T>(low[s], high[s]);
      out_low[s] = range.low;
      out_high[s] = range.high;
    }
    slices.ForRuns([&](int64_t s, int64_t begin, int64_t end) {
      const Range range = RangeOf<T>(low[s], high[s]);
      for (int64_t i = begin; i < end; ++i) y[i] = One<T>(range, x[i]);
    });
  }
};

struct Dequantize {
  RangeSlices slices;
  QuantMode mode = QuantMode::kMinCombined;
  bool narrow = false;

  int32_t Prepare(Prep& prep) {
    mode = QuantModeOf(prep.node());
    narrow = prep.node().Bool("narrow_range", false);
    if (mode == QuantMode::kMinFirst && prep.node().Int("axis", -1) != -1) {
      return prep.error().InvalidArgument("MIN_FIRST mode is not implemented for Dequantize with axis != -1.");
    }
    if (mode != QuantMode::kMinCombined && prep.node().DType("dtype", WEIR_FLOAT32) == WEIR_BFLOAT16) {
      return prep.error().InvalidArgument("When output type is bfloat16, Mode string must be 'MIN_COMBINED', is '",
                                          prep.node().String("mode"), "'");
    }
    return slices.Plan(prep);
  }

  template <class T, class F>
  void Run(View<const T> x, View<const float> low, View<const float> high, View<F> y) const {
    slices.ForRuns([&](int64_t s, int64_t begin, int64_t end) {
      const Line line = LineOf<T>(low[s], high[s]);
      for (int64_t i = begin; i < end; ++i) y[i] = F((static_cast<float>(x[i]) + line.shift) * line.step + line.first);
    });
  }

 private:
  /// The number of integer x is (x + shift) * step + first.
  struct Line {
    float shift = 0, step = 0, first = 0;
  };

  template <class T>
  Line LineOf(float low, float high) const {
    Line line;
    switch (mode) {
      case QuantMode::kMinCombined:
        line.shift = std::is_signed_v<T> ? static_cast<float>(kIntegers<T> / 2) : 0;
        line.step = (high - low) / (static_cast<float>(kMost<T>) - static_cast<float>(kLeast<T>));
        line.first = low;
        break;
      case QuantMode::kMinFirst:
        // The least integer is subtracted after the product: sums with it would round small integers away.
        line.step = static_cast<float>(static_cast<double>(high - low) / (kIntegers<T> - 1));
        line.first = high == low ? low : std::round(low / line.step) * line.step;
        line.first -= static_cast<float>(kLeast<T>) * line.step;
        break;
      case QuantMode::kScaled: {
        const auto first = static_cast<float>(kLeast<T> + (narrow ? 1 : 0)), last = static_cast<float>(kMost<T>);
        line.step = std::is_signed_v<T> ? std::max(low / first, high / last) : high / last;
        break;
      }
    }
    return line;
  }
};

}  // namespace

void AddQuantize(sdk::KernelTable& k) {
  k.Add<Quantize>("QuantizeV2", sdk::Attr("T", kEveryQuantized)).Class(WEIR_CLASS_ELEMENTWISE, 6);
  k.Add<Dequantize>("Dequantize", sdk::Attr("T", kEveryQuantized),
                    sdk::Attr("dtype", sdk::Types<sdk::bfloat16, float>()))
      .Class(WEIR_CLASS_ELEMENTWISE, 3);
}

}  // namespace weir::kernels_eigen
