// Singular values and vectors of one matrix.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_SVD_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_SVD_H_

#include <cstdint>

namespace weir::kernels_eigen {

/// Dense row-major arrays: x [rows, columns], s [min], u [rows, rows or min], v [columns, columns or min]. Without
/// vectors (`u` is null) only s is written. NaN everywhere if x is not finite. T: float, double or a complex type.
template <class T>
struct SvdJob {
  const T* x = nullptr;
  int64_t rows = 0, columns = 0;
  bool full = false;
  T *s = nullptr, *u = nullptr, *v = nullptr;

  void Run() const;
};

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_SVD_H_
