// The root of sums of squares along axes: EuclideanNorm.
#include <cmath>
#include <complex>

#include "plugins/functors/reduce_plan.h"
#include "plugins/functors/reducers.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/function_families.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

struct EuclideanNorm {
  template <class T>
  int32_t Run(sdk::Env& env, sdk::View<const T> input, sdk::HostIntegers axes, sdk::View<T> output) const {
    functors::ReducePlan plan;
    if (const int32_t code = plan.Make(input.shape(), axes, env.error()); code != WEIR_OK) return code;
    if (plan.reduced == 0) std::fill_n(output.data(), output.size(), T(0));
    if (plan.reduced == 0 || plan.outputs == 0) return WEIR_OK;
    const int64_t columns = plan.inner_reduced ? 1 : plan.inner, row = plan.inner_reduced ? plan.inner : 1;
    for (int64_t i = 0; i < plan.outputs; ++i) {
      const T* from = input.data() + plan.outer_kept.Offset(i / columns) + i % columns;
      output[i] = Root<T>(Squares(from, row, plan.outer_reduced));
    }
    return WEIR_OK;
  }

  /// The sum of squares of `row` elements at each offset of `walk`.
  template <class T>
  static auto Squares(const T* x, int64_t row, const functors::Walk& walk) {
    using C = sdk::Compute<T>;
    typename functors::WideType<decltype(Square(C()))>::Type total = 0;
    for (int64_t j = 0; j < walk.count; ++j) {
      const T* from = x + walk.Offset(j);
      for (int64_t k = 0; k < row; ++k) total = Sum(total, decltype(total)(Square(static_cast<C>(from[k]))));
    }
    return total;
  }
  template <class C>
  static C Square(C x) {
    return Product(x, x);
  }
  template <class R>
  static R Square(std::complex<R> x) {
    return std::norm(x);
  }
  template <class T, class S>
  static T Root(S sum) {
    if constexpr (std::integral<T>) {
      return static_cast<T>(std::sqrt(static_cast<double>(sum)));
    } else {
      return static_cast<T>(static_cast<sdk::Compute<T>>(std::sqrt(sum)));
    }
  }
};

}  // namespace

void AddEuclideanNorm(sdk::KernelTable& k) {
  k.Add<EuclideanNorm>("EuclideanNorm", kNumbers).Class(WEIR_CLASS_REDUCE, 2);
}

}  // namespace weir::kernels_eigen
