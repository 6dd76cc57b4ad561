// Convolutions of floats with few output channels: vectors of neighbouring places, since the channels fill none.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_NARROW_CONVOLUTION_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_NARROW_CONVOLUTION_H_

#include <cstdint>

#include "plugins/kernels_eigen/kernels/lanes.h"

namespace weir::kernels_eigen {

/// Most output channels.
constexpr int64_t kNarrowChannels = 8;

/// Rows of outputs. The windows of neighbouring places of a row lie an element apart.
struct NarrowRows {
  const float* x;                 // the window of the first place
  int64_t line, image;            // from the windows of a row to those of the next one, and from image to image
  int64_t images, rows, columns;  // of outputs; at least kLanes columns
  const int64_t* taps;            // the distance of each element of a window from the first one
  int64_t depth;                  // of them
  const float* filter;            // element (p, j) at filter[p * filter_step + j]
  int64_t filter_step;
};

/// y [images, rows, columns, out] = the windows times the filter [depth, out], for 0 < out <= kNarrowChannels. Products
/// are added in the order of the filter's rows. Writes nothing else.
void ConvolveNarrow(const NarrowRows& rows, int64_t out, float* y);

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_NARROW_CONVOLUTION_H_
