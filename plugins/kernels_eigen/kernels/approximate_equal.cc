// Equality up to a tolerance.
#include <cmath>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/function_families.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

struct ApproximateEqual {
  float tolerance = 0;
  int32_t Prepare(sdk::Prep& prep) {
    tolerance = static_cast<float>(prep.node().Float("tolerance", 1e-5));
    if (sdk::SameShape(prep.shape(0), prep.shape(1))) return WEIR_OK;
    return prep.error().InvalidArgument("x and y must be of the same shape. x shape: ", prep.shape(0),
                                        ". y shape: ", prep.shape(1));
  }
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
