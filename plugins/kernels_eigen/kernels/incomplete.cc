// Incomplete gamma and beta functions and their derivatives, in double precision.
#include "plugins/functors/eigen_functions.h"
#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "sdk/cpp/elementwise.h"

namespace weir::kernels_eigen {
namespace {

struct Betainc : functors::BetaincPlan {
  template <class T>
  void Run(sdk::View<const T> a, sdk::View<const T> b, sdk::View<const T> x, sdk::View<T> z) const {
    const auto at = [](const sdk::View<const T>& v, bool scalar, int64_t i) {
      return static_cast<double>(v[scalar ? 0 : i]);
    };
    for (int64_t i = 0, n = z.size(); i < n; ++i) {
      z[i] = static_cast<T>(Of(at(a, fixed[0], i), at(b, fixed[1], i), at(x, fixed[2], i)));
    }
  }
};

}  // namespace

void AddIncomplete(sdk::KernelTable& k) {
  k.Binary<functors::Igamma>("Igamma", kFloat).Class(WEIR_CLASS_ELEMENTWISE, 500);
  k.Binary<functors::Igammac>("Igammac", kFloat).Class(WEIR_CLASS_ELEMENTWISE, 500);
  k.Binary<functors::IgammaGradA>("IgammaGradA", kFloat).Class(WEIR_CLASS_ELEMENTWISE, 1000);
  k.Binary<functors::RandomGammaGrad>("RandomGammaGrad", kFloat).Class(WEIR_CLASS_ELEMENTWISE, 1000);
  k.Add<Betainc>("Betainc", kFloat).Class(WEIR_CLASS_ELEMENTWISE, 500);
}

}  // namespace weir::kernels_eigen
