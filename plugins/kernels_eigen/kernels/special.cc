// Special functions, in double precision where Eigen's are.
#include "plugins/functors/special.h"
#include "plugins/functors/eigen_functions.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "sdk/cpp/elementwise.h"

namespace weir::kernels_eigen {

void AddSpecial(sdk::KernelTable& k) {
  k.Unary<functors::Erf>("Erf", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Unary<functors::Erfc>("Erfc", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 30);
  k.Unary<functors::Erfinv>("Erfinv", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 200);
  k.Unary<functors::Ndtri>("Ndtri", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 200);
  k.Unary<functors::Lgamma>("Lgamma", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 50);
  k.Unary<functors::Digamma>("Digamma", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 100);
  k.Binary<functors::Polygamma>("Polygamma", kFloat).Class(WEIR_CLASS_ELEMENTWISE, 500);
  k.Binary<functors::Zeta>("Zeta", kFloat).Class(WEIR_CLASS_ELEMENTWISE, 500);
  k.Binary<functors::MulNoNan>("MulNoNan", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 2);
  k.Binary<functors::Xlogy>("Xlogy", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 15);
  k.Binary<functors::Xlog1py>("Xlog1py", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 25);
  k.Binary<functors::Xdivy>("Xdivy", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 2);
}

}  // namespace weir::kernels_eigen
