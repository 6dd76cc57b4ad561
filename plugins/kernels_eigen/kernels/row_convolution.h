// Convolutions of floats whose windows are read where they are, without a matrix of windows.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_ROW_CONVOLUTION_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_ROW_CONVOLUTION_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plugins/kernels_eigen/kernels/panels.h"
#include "sdk/cpp/convolutions.h"

namespace weir::kernels_eigen {

/// y = x * w in two dimensions, one group, channels last. A row of outputs is the product of a matrix whose rows are
/// runs of x, one per row of the window, with the filter. Strips are made at once: rows of outputs of one image, or
/// several images. Their windows are read from a copy of x if any of them touches padding. The filter's rows are
/// multiplied in parts (ForParts): their order is that of the filter's elements, and each part's sum is added to the
/// one before.
class RowConvolution {
 public:
  /// False for convolutions that are not of this form, or whose strips are large. `conv` is not empty.
  bool Plan(const sdk::Convolution& conv);
  /// The gradient by x as a convolution of dy with the filter turned round: Run makes dx from dy. False also for
  /// strides.
  bool PlanTurned(const sdk::Convolution& conv);
  /// The same for the gradient by the filter.
  bool PlanByFilter(const sdk::Convolution& conv);
  /// The same for the gradient by x with strides, which makes whole images. False also if y has more channels than are
  /// multiplied at once.
  bool PlanByInput(const sdk::Convolution& conv);

  /// Strips of all images.
  int64_t Strips() const { return images_ > 1 ? (batch_ + images_ - 1) / images_ : batch_ * StripsOfImage(); }
  /// Elements of a strip's copy.
  int64_t CopyElements() const { return copies_ ? (images_ * CopySize(strip_rows_) + 15) / 16 * 16 : 0; }
  /// The first place of strip i among those of all images.
  int64_t FirstPlace(int64_t i) const { return (FirstImage(i) * out_rows_ + FirstRow(i)) * out_columns_; }
  int64_t Places(int64_t i) const { return Images(i) * Rows(i) * out_columns_; }
  /// Rows of the filter that are multiplied at once.
  std::vector<int64_t> Depths() const;
  /// Packs the filter, part by part; it is not turned round yet.
  void PackFilter(const float* w, float* panels) const;
  /// y [places, out] of strip i of the images x; `panels` are the filter's, `copy` has CopyElements().
  void Run(const float* x, const float* panels, int64_t i, float* y, float* copy) const;

  /// Parts of dw, which threads make apart.
  int64_t FilterParts() const;
  /// Tiles of such parts that are worth it: each reads the images, and some channels of their gradients.
  double FilterTiles() const;
  /// The parts of dw, from the images x and dy; outputs are added in their order, whichever parts a call makes.
  /// `scratch` has ByFilterElements().
  void ByFilter(const float* x, const float* dy, const PartRange& parts, float* dw, float* copy, float* scratch) const;
  int64_t ByFilterElements() const;

  /// Elements of the panels that PackByInput makes.
  int64_t ByInputPanels() const { return height_.window * PackedElements(out_, width_.window * channels_); }
  void PackByInput(const float* w, float* panels) const;
  /// dx, an image, from the panels of PackByInput and the image dy. `scratch` has LeftElements().
  void ByInput(const float* dy, const float* panels, float* dx, float* copy, float* scratch) const;
  int64_t LeftElements() const { return (LeftScratch(out_columns_, out_) + 15) / 16 * 16; }

  /// ns on a core with this peak, without the packing of the filter. Fitted to runs.
  double Nanoseconds(double peak) const;
  double ByInputNanoseconds(double peak) const;
  double ByFilterNanoseconds(double peak) const;
  bool turned() const { return turned_; }
  /// True if vectors have neighbouring places, so that few output channels waste no lanes.
  bool narrow() const { return narrow_; }

 private:
  bool PlanAxes(const sdk::Convolution& conv);
  /// Strips of about so many places of an image.
  void PlanStrips(double places);
  /// Makes strips shorter until their copies have at most so many elements. False if they cannot be.
  bool PlanCopies(bool whole_images, double most);
  /// Puts several images into a strip that has fewer places than these.
  void PlanImages(int64_t places, double most_copied);
  bool PlanForward();
  double NarrowNanoseconds(double peak) const;
  /// True if the gradient by the filter is made from panels of dy: not for narrow or small filters.
  bool MakesPanels() const;
  /// The parts of dw by strip i, whose outputs are dy [places, out].
  void AddByFilter(const float* x, const float* dy, int64_t i, const PartRange& parts, float* dw, float* copy,
                   float* scratch) const;
  /// Where the windows of places [first, first + count) of a strip begin.
  void FillOffsets(int64_t line, int64_t image, int64_t rows, int64_t first, int64_t count, int64_t* offsets) const;

  int64_t StripsOfImage() const { return (out_rows_ + strip_rows_ - 1) / strip_rows_; }
  int64_t FirstImage(int64_t i) const { return images_ > 1 ? i * images_ : i / StripsOfImage(); }
  int64_t Images(int64_t i) const { return std::min(images_, batch_ - FirstImage(i)); }
  int64_t FirstRow(int64_t i) const { return images_ > 1 ? 0 : i % StripsOfImage() * strip_rows_; }
  int64_t Rows(int64_t i) const { return std::min(strip_rows_, out_rows_ - FirstRow(i)); }
  int64_t ImageElements() const { return height_.input * width_.input * channels_; }
  double Outputs() const {
    return static_cast<double>(batch_) * static_cast<double>(out_rows_) * static_cast<double>(out_columns_);
  }
  double Copied() const { return static_cast<double>(Strips()) * static_cast<double>(CopyElements()); }
  int64_t CopyRows(int64_t rows) const {
    return (rows - 1) * height_.stride + (height_.window - 1) * height_.dilation + 1;
  }
  /// Elements of a copy of the rows of x that so many rows of outputs of an image read.
  int64_t CopySize(int64_t rows) const { return CopyRows(rows) * copy_columns_ * channels_; }
  /// Where the rows of x are that strip i reads.
  struct Source {
    const float* first;   // of the first window
    int64_t line, image;  // distances of rows and images
  };
  /// The rows of x that `rows` rows of outputs read, with zeros for padding.
  void Copy(const float* x, int64_t first_row, int64_t rows, float* to) const;
  /// The same with the channels of a row one after the other.
  void CopyPlanes(const float* x, int64_t first_row, int64_t rows, float* to) const;
  /// Run by vectors of places.
  void RunNarrow(const Source& source, const float* panels, int64_t i, float* y) const;
  /// Calls body(run, runs, first, length) for each part: so many runs of a window, of each `length` elements from
  /// `first` on. Runs are whole if there are several.
  template <class Body>
  void ForParts(Body&& body) const;
  Source SourceOf(const float* x, int64_t i, float* copy) const;

  sdk::WindowAxis height_, width_;
  int64_t channels_ = 0, out_ = 0, batch_ = 0;
  int64_t out_rows_ = 0, out_columns_ = 0;
  int64_t strip_rows_ = 0;  // of outputs
  int64_t images_ = 1;      // of a strip; several only if they are whole
  int64_t copy_columns_ = 0;
  bool copies_ = false;
  bool narrow_ = false;  // vectors have neighbouring places; of several channels, planes are copied
  bool turned_ = false;
};

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_ROW_CONVOLUTION_H_
