// SvdJob by Eigen, which takes long to compile: included by the files that instantiate it for some types.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_SVD_SOLVER_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_SVD_SOLVER_H_

#include <Eigen/SVD>
#include <limits>

#include "plugins/kernels_eigen/kernels/matrices.h"
#include "plugins/kernels_eigen/kernels/svd.h"

namespace weir::kernels_eigen {

template <class T>
void SvdJob<T>::Run() const {
  const int64_t inner = std::min(rows, columns), u_columns = full ? rows : inner, v_columns = full ? columns : inner;
  if (inner == 0) {
    if (u == nullptr) return;
    Write(Matrix<T>::Identity(rows, u_columns), u);
    Write(Matrix<T>::Identity(columns, v_columns), v);
    return;
  }
  const Eigen::Map<const Matrix<T>> given(x, rows, columns);
  if (!given.allFinite()) {
    const T nan(std::numeric_limits<double>::quiet_NaN());
    std::fill_n(s, inner, nan);
    if (u == nullptr) return;
    std::fill_n(u, rows * u_columns, nan);
    std::fill_n(v, columns * v_columns, nan);
    return;
  }
  unsigned options = 0;
  if (u != nullptr) {
    options = full ? Eigen::ComputeFullU | Eigen::ComputeFullV : Eigen::ComputeThinU | Eigen::ComputeThinV;
  }
  const Eigen::BDCSVD<Matrix<T>> solver(given, options);
  Write(solver.singularValues().template cast<T>(), s);
  if (u == nullptr) return;
  Write(solver.matrixU(), u);
  Write(solver.matrixV(), v);
}

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_SVD_SOLVER_H_
