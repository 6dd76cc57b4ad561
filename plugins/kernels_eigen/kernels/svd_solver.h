// Decompose by Eigen, which takes long to compile: each type has a file of its own.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_SVD_SOLVER_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_SVD_SOLVER_H_

#include <Eigen/SVD>
#include <limits>

#include "plugins/kernels_eigen/kernels/svd.h"

namespace weir::kernels_eigen {

template <class T>
Singular<T> DecomposeBy(const Dense<T>& x, bool full) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const int64_t rows = x.rows, columns = x.columns, inner = std::min(rows, columns);
  const int64_t u_columns = full ? rows : inner, v_columns = full ? columns : inner;
  Singular<T> result{std::vector<double>(static_cast<size_t>(inner)), Dense<T>::Identity(rows, u_columns),
                     Dense<T>::Identity(columns, v_columns)};
  if (inner == 0) return result;
  const Eigen::Map<const Matrix> given(x.data.data(), rows, columns);
  if (!given.allFinite()) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    std::fill(result.s.begin(), result.s.end(), nan);
    std::fill(result.u.data.begin(), result.u.data.end(), T(nan));
    std::fill(result.v.data.begin(), result.v.data.end(), T(nan));
    return result;
  }
  const unsigned options = full ? static_cast<unsigned>(Eigen::ComputeFullU | Eigen::ComputeFullV)
                                : static_cast<unsigned>(Eigen::ComputeThinU | Eigen::ComputeThinV);
  const Eigen::JacobiSVD<Matrix> solver(given, options);
  for (int64_t i = 0; i < inner; ++i) result.s[static_cast<size_t>(i)] = solver.singularValues()[i];
  Eigen::Map<Matrix>(result.u.data.data(), rows, u_columns) = solver.matrixU();
  Eigen::Map<Matrix>(result.v.data.data(), columns, v_columns) = solver.matrixV();
  return result;
}

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_SVD_SOLVER_H_
