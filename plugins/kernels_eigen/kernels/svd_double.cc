#include "plugins/kernels_eigen/kernels/svd_solver.h"

namespace weir::kernels_eigen {

Singular<double> Decompose(const Dense<double>& x, bool full) { return DecomposeBy(x, full); }

}  // namespace weir::kernels_eigen
