// Softmax and LogSoftmax over the last dimension.
#include <algorithm>
#include <cmath>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/vector_math.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

// Subtracts the row's maximum first, so that no exponential overflows.
template <bool kLog>
struct Softmax {
  int64_t rows = 0, classes = 0;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape& shape = prep.shape(0);
    if (shape.rank < 1) return prep.error().InvalidArgument("logits must have >= 1 dimension, got ", shape);
    classes = shape.dims[shape.rank - 1];
    rows = classes == 0 ? 0 : sdk::SizeOf(shape) / classes;
    const bool wide = prep.input(0).dtype == WEIR_FLOAT64;
    prep.Scratch(2 * static_cast<uint64_t>(classes) * (wide ? sizeof(double) : sizeof(float)));
    prep.MayAlias(0, 0);
    prep.Tiles(static_cast<uint64_t>(rows * classes / (16 * 1024)));
    return WEIR_OK;
  }

  template <class T>
  void Run(sdk::Env& env, sdk::View<const T> logits, sdk::View<T> out, sdk::Scratch<sdk::Compute<T>> scratch) const {
    using C = sdk::Compute<T>;
    const auto [begin, end] = env.Range(rows);
    for (int64_t row = begin; row < end; ++row) {
      const T* x = logits.data() + row * classes;
      T* y = out.data() + row * classes;
      if constexpr (std::is_same_v<C, T>) {
        Row(x, y, scratch.data());
      } else {
        C* wide = scratch.data() + classes;
        sdk::Widen(x, wide, classes);
        Row(wide, wide, scratch.data());
        sdk::Narrow(wide, y, classes);
      }
    }
  }

  /// Fitted to runs on AVX-512 cores, like the estimates of the other kernel sets.
  static sdk::Cost Estimate(const sdk::Prep& prep) {
    const weir_shape& shape = prep.shape(0);
    const double elements = static_cast<double>(prep.size(0)), bytes = sdk::SizeOf(prep.input(0).dtype);
    const double classes = shape.rank > 0 ? static_cast<double>(shape.dims[shape.rank - 1]) : 1;
    const double rows = classes > 0 ? elements / classes : 0;
    return {
        .flops = 15 * elements, .bytes = 2 * bytes * elements, .whole_ns = 60 + 80 * rows + 0.125 * bytes * elements};
  }

  template <class C>
  void Row(const C* x, C* y, C* exponentials) const {
    const C largest = MaxArray(x, classes);
    if constexpr (kLog) {
      const C shift = -largest, log_sum = std::log(ExpSumArray(x, shift, exponentials, classes));
      for (int64_t i = 0; i < classes; ++i) y[i] = (x[i] + shift) - log_sum;
    } else {
      const C scale = C(1) / ExpSumArray(x, -largest, y, classes);
      for (int64_t i = 0; i < classes; ++i) y[i] *= scale;
    }
  }
};

}  // namespace

void AddSoftmax(sdk::KernelTable& k) {
  k.Add<Softmax<false>>("Softmax", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 15);
  k.Add<Softmax<true>>("LogSoftmax", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 15);
}

}  // namespace weir::kernels_eigen
