// Convolutions of floats whose windows are read where they are, without a matrix of windows.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_ROW_CONVOLUTION_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_ROW_CONVOLUTION_H_

#include <cstdint>

#include "plugins/kernels_eigen/kernels/panels.h"
#include "sdk/cpp/convolutions.h"

namespace weir::kernels_eigen {

/// y = x * w in two dimensions, one group, channels last. A row of outputs is the product of a matrix whose rows are
/// runs of x, one per row of the window, with the filter. Strips of output rows are made at once, from a copy of the
/// rows of x that they read if windows touch padding. The order of the sums is that of the filter's elements.
class RowConvolution {
 public:
  /// False for convolutions that are not of this form, that have more filter rows than are multiplied at once, or whose
  /// strips are large. `conv` is not empty.
  bool Plan(const sdk::Convolution& conv);
  /// The same for the gradient by x, which makes whole images. False also if y has more channels than are multiplied at
  /// once.
  bool PlanByInput(const sdk::Convolution& conv);

  int64_t StripsOfImage() const { return (out_rows_ + strip_rows_ - 1) / strip_rows_; }
  /// Elements of a strip's copy.
  int64_t CopyElements() const {
    return copies_ ? (CopyRows(strip_rows_) * copy_columns_ * channels_ + 15) / 16 * 16 : 0;
  }
  /// Places of strip i of an image: the first, and their number.
  int64_t FirstPlace(int64_t i) const { return i * strip_rows_ * out_columns_; }
  int64_t Places(int64_t i) const;
  /// y [places, out] of strip i of the image x; `panels` is the filter (panels.h), `copy` has CopyElements().
  void Run(const float* x, const float* panels, int64_t i, float* y, float* copy) const;

  /// dw += the products of windows of x in strip i with its outputs dy [places, out].
  void AddByFilter(const float* x, const float* dy, int64_t i, float* dw, float* copy) const;

  /// Elements of the panels that PackByInput makes.
  int64_t ByInputPanels() const { return height_.window * PackedElements(out_, width_.window * channels_); }
  void PackByInput(const float* w, float* panels) const;
  /// dx, an image, from the panels of PackByInput and the image dy. `scratch` has LeftElements().
  void ByInput(const float* dy, const float* panels, float* dx, float* copy, float* scratch) const;
  int64_t LeftElements() const { return (LeftScratch(out_columns_, out_) + 15) / 16 * 16; }

  /// ns on a core with this peak, without the packing of the filter. Fitted to runs.
  double Nanoseconds(double peak) const;
  double ByInputNanoseconds(double peak) const;

 private:
  bool PlanAxes(const sdk::Convolution& conv);
  /// Makes strips shorter until their copies are small. False if they cannot be.
  bool PlanCopies(bool whole_images);
  double Outputs() const {
    return static_cast<double>(batch_) * static_cast<double>(out_rows_) * static_cast<double>(out_columns_);
  }
  double Copied() const {
    return static_cast<double>(batch_) * static_cast<double>(StripsOfImage()) * static_cast<double>(CopyElements());
  }
  int64_t CopyRows(int64_t rows) const {
    return (rows - 1) * height_.stride + (height_.window - 1) * height_.dilation + 1;
  }
  void Copy(const float* x, int64_t first_row, int64_t rows, float* to) const;
  /// The windows of the first output row of strip i; `line` becomes the distance of rows of x.
  RunMatrix Windows(const float* x, int64_t i, float* copy, int64_t* line) const;

  sdk::WindowAxis height_, width_;
  int64_t channels_ = 0, out_ = 0, batch_ = 0;
  int64_t out_rows_ = 0, out_columns_ = 0;
  int64_t strip_rows_ = 0;  // of outputs
  int64_t copy_columns_ = 0;
  bool copies_ = false;
};

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_ROW_CONVOLUTION_H_
