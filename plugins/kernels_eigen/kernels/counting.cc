// Bincount, DenseBincount, HistogramFixedWidth, Bucketize and CompareAndBitpack.
#include <algorithm>
#include <cmath>

#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Env;
using sdk::HostIntegers;
using sdk::Integers;
using sdk::Prep;
using sdk::View;

/// Reads the number of bins from operand i.
int32_t ReadBins(const Prep& prep, uint32_t i, int64_t* bins) {
  if (prep.shape(i).rank != 0) {
    return prep.error().InvalidArgument("Shape must be rank 0 but is rank ", prep.shape(i).rank);
  }
  if (const int32_t code = Steering(prep, i, "size", bins); code != WEIR_OK) return code;
  if (*bins < 0) return prep.error().InvalidArgument("size (", *bins, ") must be non-negative");
  return WEIR_OK;
}

struct Bincount {
  int64_t bins = 0;
  bool weighted = false;

  int32_t Prepare(Prep& prep) {
    if (const int32_t code = ReadBins(prep, 1, &bins); code != WEIR_OK) return code;
    weighted = prep.size(2) != 0;
    if (weighted && prep.size(2) != prep.size(0)) {
      return prep.error().InvalidArgument("Input indices and weights must have the same size.");
    }
    return ExpectOutput(prep, 0, {bins});
  }
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

/// Counts of a whole array of rank 0 or 1, or of each row of a matrix.
struct DenseBincount {
  int64_t bins = 0, rows = 1, row = 0;
  bool weighted = false, binary = false, matrix = false;

  int32_t Prepare(Prep& prep) {
    binary = prep.node().Bool("binary_output");
    const weir_shape &in = prep.shape(0), &weights = prep.shape(2);
    if (in.rank > 2) return prep.error().InvalidArgument("Shape must be at most rank 2 but is rank ", in.rank);
    if (const int32_t code = ReadBins(prep, 1, &bins); code != WEIR_OK) return code;
    weighted = sdk::SizeOf(weights) != 0;
    if (!sdk::SameShape(weights, in) && sdk::SizeOf(weights) != 0) {
      return prep.error().InvalidArgument(
          "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts as all weights "
          "equal to 1. Received ",
          weights);
    }
    matrix = in.rank == 2;
    rows = matrix ? in.dims[0] : 1;
    row = matrix ? in.dims[1] : sdk::SizeOf(in);
    std::vector<int64_t> out = {bins};
    if (matrix) out.insert(out.begin(), rows);
    return ExpectOutput(prep, 0, out);
  }
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

struct Histogram {
  int64_t bins = 0;

  int32_t Prepare(Prep& prep) {
    const weir_shape& range = prep.shape(1);
    if (range.rank != 1) return prep.error().InvalidArgument("value_range should be a vector.");
    if (range.dims[0] != 2) return prep.error().InvalidArgument("value_range should be a vector of 2 elements.");
    if (prep.shape(2).rank != 0) return prep.error().InvalidArgument("nbins should be a scalar.");
    if (const int32_t code = Steering(prep, 2, "nbins", &bins); code != WEIR_OK) return code;
    if (bins <= 0) return prep.error().InvalidArgument("nbins should be a positive number, but got '", bins, "'");
    return ExpectOutput(prep, 0, {bins});
  }
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

struct Bucketize {
  std::vector<float> boundaries;

  int32_t Prepare(Prep& prep) {
    weir_attr given{};
    given.struct_size = sizeof given;
    const int32_t code = sdk::HostTable()->attr(prep.node().get(), sdk::Str("boundaries"), &given);
    if (code != WEIR_OK || given.type != (WEIR_VALUE_FLOAT | WEIR_VALUE_LIST)) given.count = 0;
    for (uint64_t i = 0; i < given.count; ++i) boundaries.push_back(static_cast<float>(given.floats[i]));
    if (!std::is_sorted(boundaries.begin(), boundaries.end())) {
      return prep.error().InvalidArgument("Expected sorted boundaries");
    }
    return WEIR_OK;
  }
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

/// Eight comparisons make a byte, the first one its highest bit.
struct CompareAndBitpack {
  int32_t Prepare(Prep& prep) {
    const weir_shape& in = prep.shape(0);
    if (in.rank < 1) return prep.error().InvalidArgument("Input should be at least a vector, but saw a scalar.");
    if (prep.shape(1).rank != 0) {
      return prep.error().InvalidArgument("Compare must be a scalar, but saw tensor: ", prep.shape(1));
    }
    if (in.dims[in.rank - 1] % 8 != 0) {
      return prep.error().InvalidArgument("Inner dimension of input should be divisible by ", 8,
                                          ", but saw shape: ", in);
    }
    return WEIR_OK;
  }
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
