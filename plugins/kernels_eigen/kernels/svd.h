// Singular values and vectors, eigenvalues and eigenvectors of one matrix, in double precision.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_SVD_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_SVD_H_

#include <type_traits>
#include <vector>

#include "plugins/kernels_eigen/kernels/dense.h"

namespace weir::kernels_eigen {

/// The type of double precision for numbers of type T.
template <class T>
using WideOf = std::conditional_t<std::is_floating_point_v<T>, double, std::complex<double>>;

/// u diag(s) v^H; s in descending order. T: double or std::complex<double>.
template <class T>
struct Singular {
  std::vector<double> s;
  Dense<T> u, v;
};

/// u and v have min(rows, columns) columns, or if `full` as many as rows. NaN everywhere if x is not finite.
Singular<double> Decompose(const Dense<double>& x, bool full);
Singular<std::complex<double>> Decompose(const Dense<std::complex<double>>& x, bool full);

/// Eigenvalues in ascending order and eigenvectors in columns.
template <class T>
struct EigenPairs {
  bool converged = false;
  std::vector<double> values;
  Dense<T> vectors;
};

/// Of a Hermitian matrix, given by its lower triangle. Does not converge if an element is not finite.
EigenPairs<double> SelfAdjointPairs(const Dense<double>& x);
EigenPairs<std::complex<double>> SelfAdjointPairs(const Dense<std::complex<double>>& x);

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_SVD_H_
