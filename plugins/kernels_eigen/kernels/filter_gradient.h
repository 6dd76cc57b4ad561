// Gradients of convolutions of floats by the filter, from windows where they lie.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_FILTER_GRADIENT_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_FILTER_GRADIENT_H_

#include <cstdint>

#include "plugins/kernels_eigen/kernels/panels.h"

namespace weir::kernels_eigen {

/// dw [runs * length, n] += the products of each element of the windows with each channel of dy [rows, columns, n].
/// `x` is the matrix of the windows of the first row of outputs, `x_row` the distance to that of the next one. Outputs
/// are added in their order.
void AddFilterGradient(const RunMatrix& x, int64_t x_row, const float* dy, int64_t rows, int64_t columns, int64_t n,
                       float* dw);

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_FILTER_GRADIENT_H_
