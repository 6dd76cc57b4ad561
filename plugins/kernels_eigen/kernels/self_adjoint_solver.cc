// SelfAdjointPairs by Eigen.
#include <Eigen/Eigenvalues>

#include "plugins/kernels_eigen/kernels/svd.h"

namespace weir::kernels_eigen {
namespace {

template <class T>
EigenPairs<T> PairsBy(const Dense<T>& x) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const int64_t n = x.rows;
  EigenPairs<T> pairs{n == 0, std::vector<double>(static_cast<size_t>(n)), Dense<T>(n, n)};
  if (n == 0) return pairs;
  const Matrix lower = Eigen::Map<const Matrix>(x.data.data(), n, n).template triangularView<Eigen::Lower>();
  if (n > 1 && !lower.allFinite()) return pairs;
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(lower);
  pairs.converged = solver.info() == Eigen::Success;
  if (!pairs.converged) return pairs;
  for (int64_t i = 0; i < n; ++i) pairs.values[static_cast<size_t>(i)] = solver.eigenvalues()[i];
  Eigen::Map<Matrix>(pairs.vectors.data.data(), n, n) = solver.eigenvectors();
  return pairs;
}

}  // namespace

EigenPairs<double> SelfAdjointPairs(const Dense<double>& x) { return PairsBy(x); }
EigenPairs<std::complex<double>> SelfAdjointPairs(const Dense<std::complex<double>>& x) { return PairsBy(x); }

}  // namespace weir::kernels_eigen
