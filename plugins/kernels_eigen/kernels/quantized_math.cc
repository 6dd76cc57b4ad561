// Arithmetic on quantised integers: other ranges, convolutions, products, windows.
#include <string_view>

#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/kernels/quantize.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/quantized_families.h"
#include "sdk/cpp/windows.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Env;
using sdk::HostIntegers;
using sdk::Prep;
using sdk::View;

/// InvalidArgument unless inputs from `first` on have one element.
int32_t ExpectNumbers(const Prep& prep, uint32_t first) {
  for (uint32_t i = first; i < prep.inputs(); ++i) {
    const weir_shape& shape = prep.shape(i);
    if (HasNoElements(shape) || sdk::SizeOf(shape) != 1) {
      return prep.error().InvalidArgument("the ends of ranges must be scalars, but input ", i, " has shape ", shape);
    }
  }
  return WEIR_OK;
}

struct UsedRange {
  int32_t Prepare(Prep& prep) { return ExpectNumbers(prep, 1); }
  template <class T>
  int32_t Run(Env& env, View<const T> x, View<const float> low, View<const float> high, View<float> out_low,
              View<float> out_high) const {
    if (!(low[0] <= high[0])) {
      return env.error().InvalidArgument("input_min must be <= input_max, got ", low[0], " and ", high[0]);
    }
    T least = std::numeric_limits<T>::max(), most = std::numeric_limits<T>::lowest();
    for (int64_t i = 0, n = x.size(); i < n; ++i) {
      least = std::min(least, x[i]);
      most = std::max(most, x[i]);
    }
    out_low[0] = std::min(0.0f, NumberOf<T>(least, low[0], high[0]));
    out_high[0] = NumberOf<T>(most, low[0], high[0]);
    return WEIR_OK;
  }
};

/// Integers of 32 bits as integers of 8 bits in another range.
struct Requantize {
  int32_t Prepare(Prep& prep) { return ExpectNumbers(prep, 1); }

  template <class T, class U>
  int32_t Run(Env& env, View<const T> x, View<const float> low, View<const float> high, View<const float> new_low,
              View<const float> new_high, View<U> y, View<float> out_low, View<float> out_high) const {
    if (!(new_low[0] <= 0)) {
      return env.error().InvalidArgument("requested_output_min must be <= 0, but got ", new_low[0]);
    }
    if (!(new_high[0] >= new_low[0])) {
      return env.error().InvalidArgument("requested_output_max must be >= requested_output_min, but got ", new_high[0],
                                         " and ", new_low[0]);
    }
    out_low[0] = new_low[0];
    out_high[0] = new_high[0];
    const int64_t n = x.size();
    if constexpr (std::is_same_v<U, uint8_t>) {
      const FixedPoint form(low[0], high[0], new_low[0], new_high[0]);
      for (int64_t i = 0; i < n; ++i) y[i] = form(x[i]);
    } else {
      const float step = static_cast<float>(static_cast<double>(high[0] - low[0]) / (kIntegers<T> - 1));
      const float first = high[0] == low[0] ? low[0] : std::round(low[0] / step) * step;
      const float scale = new_high[0] == new_low[0]
                              ? 0
                              : static_cast<float>((kIntegers<U> - 1) / static_cast<double>(new_high[0] - new_low[0]));
      const auto shift = static_cast<float>(std::round(new_low[0] * scale) - kLeast<U>);
      for (int64_t i = 0; i < n; ++i) {
        const float number = (static_cast<float>(x[i]) - static_cast<float>(kLeast<T>)) * step + first;
        y[i] = ToInteger<U>(std::round(number * scale) - shift);
      }
    }
    return WEIR_OK;
  }

 private:
  /// TensorFlow's conversion to 8 bits, in 16 binary places.
  struct FixedPoint {
    int64_t scale = 0, offset = 0;

    FixedPoint(float low, float high, float new_low, float new_high) {
      constexpr double kOne = 65536;
      const float range = high - low, new_range = new_high - new_low;
      if (new_range == 0) return;
      const float middle = (low + high) / 2, per_number = 255.0f / new_range;
      scale = ToInteger<int64_t>(255.0 * kOne * range / new_range);
      const auto from = ToInteger<int64_t>(static_cast<double>(middle * per_number) * kOne);
      const auto to = ToInteger<int64_t>(kOne * (static_cast<double>(new_low) * 255.0) / new_range);
      offset = static_cast<int64_t>(static_cast<uint64_t>(from) - static_cast<uint64_t>(to) + 32768u);
    }
    uint8_t operator()(int32_t x) const {
      const auto product = static_cast<int64_t>(static_cast<uint64_t>(int64_t{x}) * static_cast<uint64_t>(scale));
      const auto sum = static_cast<int64_t>(static_cast<uint64_t>(product >> 32) + static_cast<uint64_t>(offset));
      return static_cast<uint8_t>(std::clamp<int64_t>(sum >> 16, 0, 255));
    }
  };
};

/// Outputs 1 and 2 are the range as it is.
void PassRange(View<const float> low, View<const float> high, View<float> out_low, View<float> out_high) {
  out_low[0] = low[0];
  out_high[0] = high[0];
}

/// Not below the integer of 0 and, if kSix, not above that of 6.
template <bool kSix>
struct QuantizedRelu {
  int32_t Prepare(Prep& prep) {
    prep.MayAlias(0, 0);
    return ExpectNumbers(prep, 1);
  }
  template <class T, class U>
  void Run(View<const T> x, View<const float> low, View<const float> high, View<U> y, View<float> out_low,
           View<float> out_high) const {
    const T first = NearestInteger<T>(0, low[0], high[0]);
    const T last = kSix ? std::max(first, NearestInteger<T>(6, low[0], high[0])) : std::numeric_limits<T>::max();
    for (int64_t i = 0, n = x.size(); i < n; ++i) y[i] = static_cast<U>(std::clamp(x[i], first, last));
    PassRange(low, high, out_low, out_high);
  }
};

struct QuantizedReshape {
  int32_t Prepare(Prep& prep) {
    prep.MayAlias(0, 0);
    return ExpectNumbers(prep, 2);
  }
  template <class T>
  void Run(View<const T> x, HostIntegers, View<const float> low, View<const float> high, View<T> y, View<float> out_low,
           View<float> out_high) const {
    if (x.data() != y.data()) std::copy_n(x.data(), x.size(), y.data());
    PassRange(low, high, out_low, out_high);
  }
};

/// The ranges of two factors: the integers of 0, and the range of sums of products.
template <class A, class B>
struct FactorRanges {
  uint32_t zero_a = 0, zero_b = 0;  // integers that wrap around
  float low = 0, high = 0;

  FactorRanges(View<const float> low_a, View<const float> high_a, View<const float> low_b, View<const float> high_b) {
    zero_a = static_cast<uint32_t>(UnlimitedInteger<A>(0, low_a[0], high_a[0]));
    zero_b = static_cast<uint32_t>(UnlimitedInteger<B>(0, low_b[0], high_b[0]));
    const float step = StepOf<A>(low_a[0], high_a[0]) * StepOf<B>(low_b[0], high_b[0]);
    low = step * static_cast<float>(kLeast<int32_t>);
    high = step * static_cast<float>(kMost<int32_t>);
  }
};

struct QuantizedConv2D {
  sdk::Windows windows;
  int64_t channels = 0, outputs = 0;

  int32_t Prepare(Prep& prep) {
    const weir_shape &input = prep.shape(0), &filter = prep.shape(1);
    const sdk::Error& error = prep.error();
    if (input.rank != 4) return error.InvalidArgument("input must be rank 4 but is rank ", input.rank);
    if (filter.rank != 4) return error.InvalidArgument("filter must be rank 4 but is rank ", filter.rank);
    if (input.dims[3] != filter.dims[2]) {
      return error.InvalidArgument("input and filter must have the same depth: ", input.dims[3], " vs ",
                                   filter.dims[2]);
    }
    if (const int32_t code = ExpectNumbers(prep, 2); code != WEIR_OK) return code;
    if (const int32_t code = windows.ReadFormat(prep, 2); code != WEIR_OK) return code;
    if (const int32_t code = windows.Plan(prep, input, {filter.dims, 2}); code != WEIR_OK) return code;
    channels = filter.dims[2];
    outputs = filter.dims[3];
    if (!windows.IsOutput(prep.output(0).shape, outputs)) {
      return error.InvalidArgument("the output has shape ", prep.output(0).shape, ", not that of the windows");
    }
    if (HasNoElements(prep.output(0).shape)) outputs = 0;
    if (outputs > 0) prep.Tiles(static_cast<uint64_t>(windows.batch * windows.axes[0].output));
    return WEIR_OK;
  }

  template <class A, class B, class S>
  void Run(Env& env, View<const A> x, View<const B> filter, View<const float> low_a, View<const float> high_a,
           View<const float> low_b, View<const float> high_b, View<S> y, View<float> out_low,
           View<float> out_high) const {
    const FactorRanges<A, B> ranges(low_a, high_a, low_b, high_b);
    const int64_t lines = outputs == 0 ? 0 : windows.batch * windows.axes[0].output;
    const auto [begin, end] = env.Range(lines);
    if (begin == 0) {
      out_low[0] = ranges.low;
      out_high[0] = ranges.high;
    }
    for (int64_t line = begin; line < end; ++line) {
      const int64_t image = line / windows.axes[0].output, row = line % windows.axes[0].output;
      for (int64_t column = 0; column < windows.axes[1].output; ++column) {
        Place(ranges, x.data() + image * windows.InputPlaces() * channels, filter.data(), row, column,
              y.data() + (line * windows.axes[1].output + column) * outputs);
      }
    }
  }

 private:
  template <class A, class B, class S>
  void Place(const FactorRanges<A, B>& ranges, const A* image, const B* filter, int64_t row, int64_t column,
             S* y) const {
    const sdk::WindowAxis &down = windows.axes[0], &across = windows.axes[1];
    std::fill_n(y, outputs, 0);
    const sdk::Places rows = down.Taps(row), columns = across.Taps(column);
    for (int64_t r = rows.first; r < rows.end; ++r) {
      for (int64_t c = columns.first; c < columns.end; ++c) {
        const int64_t place =
            (down.Start(row) + r * down.dilation) * across.input + across.Start(column) + c * across.dilation;
        const A* from = image + place * channels;
        const B* factors = filter + (r * across.window + c) * channels * outputs;
        for (int64_t in = 0; in < channels; ++in, factors += outputs) {
          const uint32_t value = static_cast<uint32_t>(from[in]) - ranges.zero_a;
          for (int64_t out = 0; out < outputs; ++out) {
            const uint32_t factor = static_cast<uint32_t>(factors[out]) - ranges.zero_b;
            y[out] = static_cast<S>(static_cast<uint32_t>(y[out]) + value * factor);
          }
        }
      }
    }
  }
};

struct QuantizedMatMul {
  bool transpose_a = false, transpose_b = false;
  int64_t rows = 0, inner = 0, columns = 0;

  int32_t Prepare(Prep& prep) {
    const weir_shape &a = prep.shape(0), &b = prep.shape(1);
    if (a.rank != 2) return prep.error().InvalidArgument("In[0] is not a matrix. Instead it has shape ", a);
    if (b.rank != 2) return prep.error().InvalidArgument("In[1] is not a matrix. Instead it has shape ", b);
    if (const int32_t code = ExpectNumbers(prep, 2); code != WEIR_OK) return code;
    transpose_a = prep.node().Bool("transpose_a");
    transpose_b = prep.node().Bool("transpose_b");
    rows = a.dims[transpose_a ? 1 : 0];
    inner = a.dims[transpose_a ? 0 : 1];
    columns = b.dims[transpose_b ? 0 : 1];
    if (b.dims[transpose_b ? 1 : 0] != inner) {
      return prep.error().InvalidArgument("Matrix size-incompatible: In[0]: ", a, ", In[1]: ", b);
    }
    if (rows == 0 || columns == 0) rows = columns = 0;
    return WEIR_OK;
  }

  template <class A, class B, class S>
  void Run(View<const A> a, View<const B> b, View<const float> low_a, View<const float> high_a, View<const float> low_b,
           View<const float> high_b, View<S> y, View<float> out_low, View<float> out_high) const {
    const FactorRanges<A, B> ranges(low_a, high_a, low_b, high_b);
    out_low[0] = ranges.low;
    out_high[0] = ranges.high;
    const int64_t step_a = transpose_a ? a.dim(1) : 1, step_b = transpose_b ? 1 : columns;
    for (int64_t r = 0; r < rows; ++r) {
      const A* row = a.data() + (transpose_a ? r : r * inner);
      for (int64_t c = 0; c < columns; ++c) {
        const B* column = b.data() + (transpose_b ? c * inner : c);
        uint32_t sum = 0;
        for (int64_t i = 0; i < inner; ++i) {
          sum += (static_cast<uint32_t>(row[i * step_a]) - ranges.zero_a) *
                 (static_cast<uint32_t>(column[i * step_b]) - ranges.zero_b);
        }
        y[r * columns + c] = static_cast<S>(sum);
      }
    }
  }
};

template <bool kMean>
struct QuantizedPool {
  sdk::Windows windows;
  bool empty = false;

  int32_t Prepare(Prep& prep) {
    const weir_shape& input = prep.shape(0);
    const sdk::Error& error = prep.error();
    const std::span<const int64_t> window = prep.node().Ints("ksize");
    if (input.rank != 4) return error.InvalidArgument("tensor_in must be 4-dimensional");
    if (window.size() != 4) return error.InvalidArgument("Sliding window ksize field must specify 4 dimensions");
    if (window[0] != 1 || window[3] != 1) {
      return error.Unimplemented("Pooling is not yet supported on the batch dimension or the depth.");
    }
    for (const int64_t extent : window) {
      if (extent <= 0) return error.InvalidArgument("Sliding window ksize must be positive, got ", extent);
    }
    if (const int32_t code = ExpectNumbers(prep, 1); code != WEIR_OK) return code;
    if (const int32_t code = windows.ReadFormat(prep, 2); code != WEIR_OK) return code;
    if (const int32_t code = windows.Plan(prep, input, window.subspan(1, 2), {"strides", ""}); code != WEIR_OK) {
      return code;
    }
    if (!windows.IsOutput(prep.output(0).shape, input.dims[3])) {
      return error.InvalidArgument("the output has shape ", prep.output(0).shape, ", not that of the windows");
    }
    empty = HasNoElements(prep.output(0).shape);
    return WEIR_OK;
  }

  template <class T>
  void Run(View<const T> x, View<const float> low, View<const float> high, View<T> y, View<float> out_low,
           View<float> out_high) const {
    PassRange(low, high, out_low, out_high);
    if (empty) return;
    const sdk::WindowAxis &down = windows.axes[0], &across = windows.axes[1];
    const int64_t channels = windows.channels;
    int64_t at = 0;
    for (int64_t image = 0; image < windows.batch; ++image) {
      for (int64_t row = 0; row < down.output; ++row) {
        for (int64_t column = 0; column < across.output; ++column) {
          for (int64_t c = 0; c < channels; ++c, ++at) {
            y[at] = Fold(x.data() + image * windows.InputPlaces() * channels + c, row, column);
          }
        }
      }
    }
  }

 private:
  template <class T>
  T Fold(const T* x, int64_t row, int64_t column) const {
    const sdk::WindowAxis &down = windows.axes[0], &across = windows.axes[1];
    const sdk::Places rows = down.Taps(row), columns = across.Taps(column);
    T most = std::numeric_limits<T>::lowest();
    int64_t sum = 0, count = 0;
    for (int64_t r = rows.first; r < rows.end; ++r) {
      for (int64_t c = columns.first; c < columns.end; ++c, ++count) {
        const int64_t place = (down.Start(row) + r) * across.input + across.Start(column) + c;
        most = std::max(most, x[place * windows.channels]);
        sum += x[place * windows.channels];
      }
    }
    return kMean ? static_cast<T>(count == 0 ? 0 : sum / count) : most;
  }
};

}  // namespace

void AddQuantizedMath(sdk::KernelTable& k) {
  using sdk::Attr;
  k.Add<UsedRange>("RequantizationRange", Attr("Tinput", kQint32)).Class(WEIR_CLASS_REDUCE);
  k.Add<Requantize>("Requantize", Attr("Tinput", kQint32), Attr("out_type", kQuantized8))
      .Class(WEIR_CLASS_ELEMENTWISE, 4);
  const auto relu = [&](auto list) {
    k.Add<QuantizedRelu<false>>("QuantizedRelu", Attr("Tinput", list), Attr("out_type", list));
    k.Add<QuantizedRelu<true>>("QuantizedRelu6", Attr("Tinput", list), Attr("out_type", list));
  };
  relu(kQuint8);
  relu(kQint32);
  k.Add<QuantizedReshape>("QuantizedReshape", Attr("T", kEveryQuantized));
  k.Add<QuantizedConv2D>("QuantizedConv2D", Attr("Tinput", kQuint8), Attr("Tfilter", kQuantized8),
                         Attr("out_type", kQint32))
      .Class(WEIR_CLASS_CONV);
  k.Add<QuantizedMatMul>("QuantizedMatMul", Attr("T1", kQuint8), Attr("T2", kQuantized8), Attr("Toutput", kQint32))
      .Class(WEIR_CLASS_GEMM);
  k.Add<QuantizedPool<false>>("QuantizedMaxPool", Attr("T", kQuint8));
  k.Add<QuantizedPool<true>>("QuantizedAvgPool", Attr("T", kQuint8));
}

}  // namespace weir::kernels_eigen
