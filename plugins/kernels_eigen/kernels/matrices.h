// Batches of dense matrices in the last two axes, for kernels built on Eigen's decompositions.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_MATRICES_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_MATRICES_H_

#include <Eigen/Core>
#include <algorithm>
#include <complex>

#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The matrices of operand `input`; `count` is 0 if the outputs have no elements.
struct MatrixBatch {
  int64_t count = 0, rows = 0, columns = 0;

  int64_t size() const { return rows * columns; }
  int64_t inner() const { return std::min(rows, columns); }

  /// InvalidArgument with TensorFlow's text if the rank is below 2.
  int32_t Plan(sdk::Prep& prep, uint32_t input = 0) {
    const weir_shape& shape = prep.shape(input);
    if (shape.rank < 2) {
      return prep.error().InvalidArgument("Input tensor ", input, " must have rank >= 2, got ", shape.rank);
    }
    rows = shape.dims[shape.rank - 2];
    columns = shape.dims[shape.rank - 1];
    bool any = false;
    for (uint32_t i = 0; i < prep.outputs(); ++i) any = any || !HasNoElements(prep.output(i).shape);
    const weir_shape batch{shape.rank - 2, 0, shape.dims};
    count = any && !HasNoElements(batch) ? sdk::SizeOf(batch) : 0;
    return WEIR_OK;
  }
  int32_t PlanSquare(sdk::Prep& prep) {
    if (const int32_t code = Plan(prep); code != WEIR_OK) return code;
    if (rows != columns) return prep.error().InvalidArgument("Input matrix must be square.");
    Split(prep);
    return WEIR_OK;
  }
  /// Splits the call by matrices if a tile has enough work.
  void Split(sdk::Prep& prep) const {
    const double work = static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(inner());
    if (static_cast<double>(count) * work > 1e5) prep.Tiles(static_cast<uint64_t>(count));
  }

  /// The matrix at `from` in the type for arithmetic on T: a view, or a copy of 16-bit numbers.
  template <class T>
  auto Read(const T* from) const {
    if constexpr (std::is_same_v<sdk::Compute<T>, T>) {
      return Eigen::Map<const Matrix<T>>(from, rows, columns);
    } else {
      Matrix<float> wide(rows, columns);
      sdk::Widen(from, wide.data(), size());
      return wide;
    }
  }
};

/// Stores a matrix expression at `to`, in row-major order.
template <class T, class Expression>
void Write(const Expression& value, T* to) {
  if constexpr (std::is_same_v<sdk::Compute<T>, T>) {
    Eigen::Map<Matrix<T>>(to, value.rows(), value.cols()) = value;
  } else {
    const Matrix<float> wide = value;
    sdk::Narrow(wide.data(), to, wide.size());
  }
}

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_MATRICES_H_
