// Softmax and LogSoftmax over the last dimension.
#include <algorithm>
#include <cmath>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/exponentials.h"
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
    if constexpr (std::is_same_v<T, float>) {
      if (classes >= kLanes) return Rows(logits.data() + begin * classes, out.data() + begin * classes, end - begin);
    }
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

  static sdk::Cost Estimate(const sdk::Prep& prep) {
    const weir_shape& shape = prep.shape(0);
    const uint32_t dtype = prep.input(0).dtype;
    const double elements = static_cast<double>(prep.size(0)), bytes = sdk::SizeOf(dtype);
    const double classes = shape.rank > 0 ? static_cast<double>(shape.dims[shape.rank - 1]) : 1;
    const double rows = classes > 0 ? elements / classes : 0;
    const double each = dtype == WEIR_FLOAT64 ? 1.0 : dtype == WEIR_FLOAT32 ? 0.4 : 0.8;
    return {.flops = 15 * elements, .bytes = 2 * bytes * elements, .whole_ns = 60 + 30 * rows + each * elements};
  }

  /// Of at least kLanes classes. Each row but the first has its largest element from the one before.
  void Rows(const float* x, float* y, int64_t count) const {
    float largest = count > 0 ? LargestOf(x, classes) : 0;
    for (; count > 0; --count, x += classes, y += classes) {
      const float* const next = count > 1 ? x + classes : x;
      const RowSum sum = ExpSumOfVectors<!kLog, true>(x, largest, y, classes, next);
      if constexpr (kLog) LogRow(x, largest, sum.total, y);
      else ScaleRow(sum.total, y);
      largest = sum.next_largest;
    }
  }

  void LogRow(const float* x, float largest, double total, float* y) const {
    const auto log_sum = static_cast<float>(std::log(total));
    for (int64_t i = 0; i < classes; ++i) y[i] = (x[i] - largest) - log_sum;
  }
  void ScaleRow(double total, float* y) const {
    const auto scale = static_cast<float>(1 / total);
    for (int64_t i = 0; i < classes; ++i) y[i] *= scale;
  }

  void Row(const float* x, float* y, float*) const {
    const float largest = LargestOf(x, classes);
    if constexpr (kLog) LogRow(x, largest, ExpSum(x, largest, classes), y);
    else ScaleRow(ExpSum(x, largest, y, classes), y);
  }

  void Row(const double* x, double* y, double* exponentials) const {
    const double largest = MaxArray(x, classes);
    if constexpr (kLog) {
      const double log_sum = std::log(ExpSumArray(x, -largest, exponentials, classes));
      for (int64_t i = 0; i < classes; ++i) y[i] = (x[i] - largest) - log_sum;
    } else {
      const double scale = 1 / ExpSumArray(x, -largest, y, classes);
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
