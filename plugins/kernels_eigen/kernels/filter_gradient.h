// Gradients of convolutions of floats by the filter, from windows where they lie.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_FILTER_GRADIENT_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_FILTER_GRADIENT_H_

#include <cstdint>

#include "plugins/kernels_eigen/kernels/panels.h"

namespace weir::kernels_eigen {

/// The output gradients [rows, columns, n] that belong to some rows of windows: `x` is the matrix of the windows of the
/// first row, `x_row` the distance to that of the next one.
struct WindowRows {
  RunMatrix x;
  int64_t x_row;
  const float* dy;
  int64_t rows, columns;
};

/// Parts of dw, which threads make apart.
int64_t FilterGradientParts(int64_t runs, int64_t length, int64_t n);
/// The parts of dw [runs * length, n] = the products of each element of the windows with each channel of dy, plus dw if
/// `adds`. Outputs are added in their order, whichever parts a call makes.
void FilterGradient(const WindowRows& from, int64_t n, const PartRange& parts, float* dw, bool adds);

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_FILTER_GRADIENT_H_
