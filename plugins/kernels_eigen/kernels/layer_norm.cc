// Layer normalisation over the last dimension, as one op that core/fuse makes of several.
#include <algorithm>
#include <cmath>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/exponentials.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, over rows of the last dimension. The row is in the first
/// cache after the mean was taken; the variance is that of the differences, so that it does not cancel.
struct LayerNorm {
  int64_t rows = 0, columns = 0;
  double epsilon = 0;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape& x = prep.shape(0);
    if (x.rank < 1) return prep.error().Unimplemented("x must have >= 1 dimension, got ", x);
    columns = x.dims[x.rank - 1];
    rows = columns == 0 ? 0 : sdk::SizeOf(x) / columns;
    for (const uint32_t i : {1u, 2u}) {
      const weir_shape& factor = prep.shape(i);
      if (factor.rank == 1 && factor.dims[0] == columns) continue;
      return prep.error().Unimplemented("gamma and beta must have the shape [", columns, "], input ", i, " has ",
                                        factor);
    }
    epsilon = prep.node().Float("epsilon");
    prep.MayAlias(0, 0);
    prep.Tiles(static_cast<uint64_t>(rows * columns / (16 * 1024)));
    return WEIR_OK;
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
