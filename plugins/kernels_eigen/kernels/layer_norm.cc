// Layer normalisation over the last dimension, as one op that core/fuse makes of several.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "plugins/functors/layer_norm_plan.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/exponentials.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using Doubles = double __attribute__((vector_size(kVectorBytes)));

/// The sum of f(x[i]) for i < n, at most kSumBlock, in four vectors; f takes vectors too.
template <class T, class F>
[[gnu::always_inline]] inline double SumOf(const T* x, int64_t n, F&& f) {
  using Lanes = std::conditional_t<std::is_same_v<T, float>, Vector, Doubles>;
  constexpr auto kWidth = kVectorBytes / static_cast<int64_t>(sizeof(T));
  Lanes sums[4] = {};
  const auto add = [&](int stream, int64_t i) {
    Lanes lanes;
    std::memcpy(&lanes, x + i, sizeof lanes);
    sums[stream] += f(lanes);
  };
  int64_t i = 0;
  for (; i + 4 * kWidth <= n; i += 4 * kWidth) {
#pragma GCC unroll 4
    for (int stream = 0; stream < 4; ++stream) add(stream, i + stream * kWidth);
  }
  for (; i + kWidth <= n; i += kWidth) add(0, i);
  T rest = 0;
  for (; i < n; ++i) rest += f(x[i]);
  Lanes all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  if constexpr (std::is_same_v<T, float>) return static_cast<double>(SumOfLanes(all)) + static_cast<double>(rest);
  for (int64_t half = kWidth / 2; half > 0; half /= 2) {
    for (int64_t lane = 0; lane < half; ++lane) all[lane] += all[lane + half];
  }
  return static_cast<double>(all[0]) + static_cast<double>(rest);
}

struct Moments {
  double mean = 0, variance = 0;
};
/// Of x [n], n > 0. The variance is that of the differences from a block's mean, so that it does not cancel. The first
/// cache holds a block until both sums are taken, and Chan's formula combines blocks: a long row is read once.
template <class T>
Moments MomentsOf(const T* x, int64_t n) {
  double mean = 0, squares = 0;  // of [0, begin): the mean, and the sum of the squared differences from it
  for (int64_t begin = 0; begin < n; begin += kSumBlock) {
    const int64_t count = std::min(n - begin, kSumBlock);
    const double own = SumOf(x + begin, count, [](auto value) { return value; }) / static_cast<double>(count);
    const T middle = static_cast<T>(own);
    squares += SumOf(x + begin, count, [middle](auto value) { return (value - middle) * (value - middle); });
    const double share = static_cast<double>(count) / static_cast<double>(begin + count), step = own - mean;
    squares += step * step * static_cast<double>(begin) * share;
    mean += step * share;
  }
  return {mean, squares / static_cast<double>(n)};
}

struct LayerNorm : functors::LayerNormPlan {
  int32_t Prepare(sdk::Prep& prep) {
    const int32_t code = LayerNormPlan::Prepare(prep);
    if (code == WEIR_OK) prep.Tiles(static_cast<uint64_t>(rows * columns / (16 * 1024)));
    return code;
  }

  template <class T>
  void Run(sdk::Env& env, sdk::View<const T> x, sdk::View<const T> gamma, sdk::View<const T> beta,
           sdk::View<T> y) const {
    const auto range = env.Range(rows);
    for (int64_t row = range.first; row < range.second; ++row) {
      Row(x.data() + row * columns, gamma.data(), beta.data(), y.data() + row * columns);
    }
  }

  template <class T>
  void Row(const T* x, const T* gamma, const T* beta, T* y) const {
    const Moments moments = MomentsOf(x, columns);
    const T mean = static_cast<T>(moments.mean), scale = static_cast<T>(1 / std::sqrt(moments.variance + epsilon));
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) y[i] = (x[i] - mean) * scale * gamma[i] + beta[i];
  }
};

}  // namespace

void AddLayerNorm(sdk::KernelTable& k) { k.Add<LayerNorm>("_LayerNorm", kFloat).Class(WEIR_CLASS_ELEMENTWISE, 8); }

}  // namespace weir::kernels_eigen
