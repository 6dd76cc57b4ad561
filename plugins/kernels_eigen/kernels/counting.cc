// Bincount, DenseBincount, HistogramFixedWidth, Bucketize and CompareAndBitpack.
#include <algorithm>
#include <cmath>

#include "plugins/functors/counting_plans.h"
#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Env;
using sdk::HostIntegers;
using sdk::View;

struct Bincount : functors::BincountPlan {
  template <class T>
  int32_t Run(Env& env, View<const int32_t> values, HostIntegers, View<const T> weights, View<T> counts) const {
    std::fill_n(counts.data(), bins, T(0));
    for (int64_t i = 0, n = values.size(); i < n; ++i) {
      const int64_t at = values[i];
      if (at < 0) return env.error().InvalidArgument("Input arr must be non-negative!");
      if (at < bins) counts[at] = Sum(counts[at], weighted ? weights[i] : T(1));
    }
    return WEIR_OK;
  }
};

struct DenseBincount : functors::DenseBincountPlan {
  template <class T, class I>
  int32_t Run(Env& env, View<const I> values, HostIntegers, View<const T> weights, View<T> counts) const {
    std::fill_n(counts.data(), counts.size(), T(0));
    if (row == 0) return WEIR_OK;
    for (int64_t i = 0; i < rows * row; ++i) {
      const int64_t at = values[i];
      if (at < 0 && matrix) {
        return env.error().InvalidArgument("Input 'in' must be non-negative! Negative input value found: ", at);
      }
      if (at < 0) return env.error().InvalidArgument("Input arr must be non-negative!");
      if (at >= bins) continue;
      T& count = counts[i / row * bins + at];
      count = binary ? T(1) : Sum(count, weighted ? weights[i] : T(1));
    }
    return WEIR_OK;
  }
};

struct Histogram : functors::HistogramPlan {
  template <class T, class O>
  int32_t Run(Env& env, View<const T> values, View<const T> range, HostIntegers, View<O> counts) const {
    const T low = range[0], high = range[1];
    if (!(low < high)) {
      return env.error().InvalidArgument("value_range should satisfy value_range[0] < value_range[1], but got '[", low,
                                         ", ", high, "]'");
    }
    std::fill_n(counts.data(), bins, O(0));
    const double from = static_cast<double>(low);
    const double step = (static_cast<double>(high) - from) / static_cast<double>(bins);
    for (int64_t i = 0, n = values.size(); i < n; ++i) {
      const double x = static_cast<double>(values[i]);
      if (x != x) return env.error().InvalidArgument("Histogram values must not contain NaN");
      const double place = (x - from) / step;  // NaN if the range has no end
      const int64_t at = place >= static_cast<double>(bins) ? bins - 1 : place > 0 ? static_cast<int64_t>(place) : 0;
      ++counts[at];
    }
    return WEIR_OK;
  }
};

struct Bucketize : functors::BucketizePlan {
  template <class T>
  void Run(View<const T> input, View<int32_t> output) const {
    for (int64_t i = 0, n = input.size(); i < n; ++i) {
      const auto place = std::upper_bound(boundaries.begin(), boundaries.end(), input[i], [](T x, float boundary) {
        return static_cast<std::common_type_t<T, float>>(x) < boundary;
      });
      output[i] = static_cast<int32_t>(place - boundaries.begin());
    }
  }
};

struct CompareAndBitpack : functors::CompareAndBitpackPlan {
  template <class T>
  void Run(View<const T> input, View<const T> threshold, View<uint8_t> output) const {
    using C = sdk::Compute<T>;
    const C limit = static_cast<C>(threshold[0]);
    // Truth values are packed as they are, whatever the threshold is, as in TensorFlow.
    const auto set = [limit](C x) { return std::is_same_v<T, sdk::boolean> ? static_cast<bool>(x) : x > limit; };
    for (int64_t i = 0, n = output.size(); i < n; ++i) {
      unsigned bits = 0;
      for (int64_t k = 0; k < 8; ++k) bits = bits << 1 | (set(static_cast<C>(input[i * 8 + k])) ? 1u : 0u);
      output[i] = static_cast<uint8_t>(bits);
    }
  }
};

}  // namespace

void AddCounting(sdk::KernelTable& k) {
#if defined(WEIR_KERNEL_DTYPES_SHORT)
  constexpr auto kPacked = kFloat + kIndex + kBool;
#else
  constexpr auto kPacked = sdk::Types<sdk::half>() + kFloat + kSigned + kBool;
#endif
  constexpr auto kCounted = kFloat + kIndex;
  k.Add<Bincount>("Bincount", kCounted).Class(WEIR_CLASS_GATHER);
  k.Add<DenseBincount>("DenseBincount", kCounted, sdk::Attr("Tidx", kIndex)).Class(WEIR_CLASS_GATHER);
  k.Add<Histogram>("HistogramFixedWidth", kCounted, sdk::Attr("dtype", kIndex)).Class(WEIR_CLASS_GATHER);
  k.Add<Bucketize>("Bucketize", kCounted).Class(WEIR_CLASS_GATHER);
  k.Add<CompareAndBitpack>("CompareAndBitpack", kPacked).Class(WEIR_CLASS_ELEMENTWISE);
}

}  // namespace weir::kernels_eigen
