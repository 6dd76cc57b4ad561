// Batches of dense matrices in the last two axes.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_MATRICES_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_MATRICES_H_

#include <algorithm>

#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/kernels/dense.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {

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

  /// Matrix i of an array, in the type for arithmetic on T.
  template <class T>
  Dense<sdk::Compute<T>> Read(const T* from, int64_t i) const {
    return {rows, columns, from + i * size()};
  }
};

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_MATRICES_H_
