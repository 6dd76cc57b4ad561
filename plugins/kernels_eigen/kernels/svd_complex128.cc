#include "plugins/kernels_eigen/kernels/svd_solver.h"

#if !defined(WEIR_KERNEL_DTYPES_SHORT)
template struct weir::kernels_eigen::SvdJob<std::complex<double>>;
#endif
