// Batches of dense matrices in the last two axes.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_MATRICES_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_MATRICES_H_

#include "plugins/functors/matrix_batch.h"
#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/kernels/dense.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {

/// functors::MatrixBatch for kernels of the CPU.
struct MatrixBatch : functors::MatrixBatch {
  int32_t PlanSquare(sdk::Prep& prep) {
    if (const int32_t code = Plan(prep); code != WEIR_OK) return code;
    if (const int32_t code = CheckSquare(prep.error()); code != WEIR_OK) return code;
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
