// Equality up to a tolerance.
#include "plugins/functors/approximate_equal_plan.h"

#include <cmath>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/function_families.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

struct ApproximateEqual : functors::ApproximateEqualPlan {
  template <class T>
  void Run(sdk::View<const T> x, sdk::View<const T> y, sdk::View<sdk::boolean> z) const {
    const T most = static_cast<T>(tolerance);
    for (int64_t i = 0; i < x.size(); ++i) z[i] = std::abs(x[i] - y[i]) <= most;
  }
};

}  // namespace

void AddApproximateEqual(sdk::KernelTable& k) {
  k.Add<ApproximateEqual>("ApproximateEqual", kFloat).Class(WEIR_CLASS_ELEMENTWISE);
}

}  // namespace weir::kernels_eigen
