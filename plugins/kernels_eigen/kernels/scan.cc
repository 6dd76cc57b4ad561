// Cumsum, Cumprod and CumulativeLogsumexp along one dimension.
#include "plugins/functors/running.h"

#include <algorithm>
#include <complex>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

template <class Running>
struct Scan {
  bool exclusive = false, reverse = false;

  void Prepare(sdk::Prep& prep) {
    exclusive = prep.node().Bool("exclusive");
    reverse = prep.node().Bool("reverse");
    prep.MayAlias(0, 0);
  }

  template <class T>
  int32_t Run(sdk::Env& env, sdk::View<const T> input, sdk::HostIntegers axis_input, sdk::View<T> output) const {
    const int64_t rank = input.rank();
    if (axis_input.shape().rank != 0) {
      return env.error().InvalidArgument("ScanOp: axis must be a scalar, not ", axis_input.shape());
    }
    const int64_t axis = axis_input[0] < 0 ? axis_input[0] + rank : axis_input[0];
    if (axis < 0 || axis >= rank) {
      return env.error().InvalidArgument("ScanOp: Expected scan axis in the range [", -rank, ", ", rank, "), but got ",
                                         axis_input[0]);
    }
    if (input.size() == 0) return WEIR_OK;  // with an extent of 0, other extents may be arbitrarily large
    const int64_t n = input.dim(static_cast<uint32_t>(axis));
    int64_t outer = 1, inner = 1;
    for (int64_t i = 0; i < axis; ++i) outer *= input.dim(static_cast<uint32_t>(i));
    for (int64_t i = axis + 1; i < rank; ++i) inner *= input.dim(static_cast<uint32_t>(i));
    for (int64_t i = 0; i < outer; ++i) {
      for (int64_t begin = 0; begin < inner; begin += kTile) {
        const int64_t at = i * n * inner + begin;
        Columns(input.data() + at, output.data() + at, n, inner, std::min(kTile, inner - begin));
      }
    }
    return WEIR_OK;
  }

  static constexpr int64_t kTile = 256;

  template <class T>
  void Columns(const T* x, T* y, int64_t n, int64_t step, int64_t count) const {
    using C = sdk::Compute<T>;
    C total[kTile];
    std::fill(total, total + count, Running::template None<C>());
    for (int64_t k = 0; k < n; ++k) {
      const int64_t row = (reverse ? n - 1 - k : k) * step;
      for (int64_t i = 0; i < count; ++i) {
        const C before = total[i], value = static_cast<C>(x[row + i]);
        total[i] = Running::Join(before, value);
        y[row + i] = static_cast<T>(exclusive ? before : total[i]);
      }
    }
  }
};

}  // namespace

void AddScan(sdk::KernelTable& k) {
  k.Add<Scan<functors::RunningSum>>("Cumsum", kNumbers).Class(WEIR_CLASS_SORT);
  k.Add<Scan<functors::RunningProduct>>("Cumprod", kNumbers).Class(WEIR_CLASS_SORT);
  k.Add<Scan<functors::RunningLogarithm>>("CumulativeLogsumexp", kFloating).Class(WEIR_CLASS_SORT, 40);
}

}  // namespace weir::kernels_eigen
