// Layer normalisation over the last dimension, as one op that core/fuse makes of several.
#include <algorithm>
#include <cmath>

#include "plugins/functors/layer_norm_plan.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/exponentials.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

/// The row is in the first cache after the mean was taken. The variance is that of the differences, so that it does not
/// cancel.
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
    const auto n = static_cast<double>(columns);
    const T mean = static_cast<T>(SumOf(x, columns, [](T value) { return value; }) / n);
    const double variance = SumOf(x, columns, [mean](T value) { return (value - mean) * (value - mean); }) / n;
    const T scale = static_cast<T>(1 / std::sqrt(variance + epsilon));
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) y[i] = (x[i] - mean) * scale * gamma[i] + beta[i];
  }
};

}  // namespace

void AddLayerNorm(sdk::KernelTable& k) { k.Add<LayerNorm>("_LayerNorm", kFloat).Class(WEIR_CLASS_ELEMENTWISE, 8); }

}  // namespace weir::kernels_eigen
