#include "plugins/kernels_eigen/kernels/svd_solver.h"

namespace weir::kernels_eigen {

Singular<std::complex<double>> Decompose(const Dense<std::complex<double>>& x, bool full) {
  return DecomposeBy(x, full);
}

}  // namespace weir::kernels_eigen
