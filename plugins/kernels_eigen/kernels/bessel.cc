// Kernels of Bessel functions and integrals, computed in double precision.
#include "plugins/functors/bessel.h"

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/function_families.h"
#include "sdk/cpp/elementwise.h"

namespace weir::kernels_eigen {

void AddBessel(sdk::KernelTable& k) {
  functors::ForBessel([&](auto function, const char* op) {
    k.Unary<decltype(function)>(op, kFloating).Class(WEIR_CLASS_ELEMENTWISE, 300);
  });
}

}  // namespace weir::kernels_eigen
