#include "plugins/kernels_eigen/kernels/svd_solver.h"

template struct weir::kernels_eigen::SvdJob<float>;
