#include "plugins/kernels_eigen/kernels/row_convolution.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "plugins/kernels_eigen/kernels/filter_gradient.h"
#include "plugins/kernels_eigen/kernels/panels.h"

namespace weir::kernels_eigen {
namespace {

constexpr int64_t kStripElements = 16 * 1024;  // of y, about: they stay in a cache until a bias is added
constexpr double kMostCopied = 128 * 1024;     // elements of a strip's copy: half a second cache

}  // namespace

bool RowConvolution::PlanAxes(const sdk::Convolution& conv) {
  if (conv.groups != 1 || conv.windows.channels_first || conv.windows.spatial != 2) return false;
  height_ = conv.windows.axes[0];
  width_ = conv.windows.axes[1];
  channels_ = conv.in;
  out_ = conv.out;
  batch_ = conv.windows.batch;
  out_rows_ = height_.output;
  out_columns_ = width_.output;
  copies_ = !height_.Inside() || !width_.Inside();
  return width_.dilation == 1;
}

bool RowConvolution::PlanCopies(bool whole_images) {
  if (!copies_) return true;
  // Paddings and strides may be arbitrarily large.
  const double columns =
      static_cast<double>(out_columns_ - 1) * static_cast<double>(width_.stride) + static_cast<double>(width_.window);
  const auto elements = [&](int64_t rows) {
    return (static_cast<double>(rows - 1) * static_cast<double>(height_.stride) +
            static_cast<double>(height_.window - 1) * static_cast<double>(height_.dilation) + 1) *
           columns * static_cast<double>(channels_);
  };
  while (!whole_images && strip_rows_ > 1 && elements(strip_rows_) > kMostCopied) strip_rows_ = (strip_rows_ + 1) / 2;
  if (elements(strip_rows_) > kMostCopied) return false;
  copy_columns_ = (out_columns_ - 1) * width_.stride + width_.window;
  return true;
}

bool RowConvolution::Plan(const sdk::Convolution& conv) {
  if (!PlanAxes(conv) || conv.Rows() > kPanelDepth) return false;
  const auto row_outputs = static_cast<double>(out_columns_) * static_cast<double>(out_);
  const int64_t wanted = static_cast<double>(kStripElements) > row_outputs ? kStripElements / (out_columns_ * out_) : 1;
  strip_rows_ = std::clamp<int64_t>(wanted, 1, out_rows_);
  return PlanCopies(false);
}

bool RowConvolution::PlanByInput(const sdk::Convolution& conv) {
  if (!PlanAxes(conv) || out_ > kPanelDepth) return false;
  strip_rows_ = out_rows_;
  return PlanCopies(true);
}

int64_t RowConvolution::Places(int64_t i) const {
  return std::min(strip_rows_, out_rows_ - i * strip_rows_) * out_columns_;
}

/// The rows of x that `rows` rows of outputs read, with zeros for padding.
void RowConvolution::Copy(const float* x, int64_t first_row, int64_t rows, float* to) const {
  const int64_t size = copy_columns_ * channels_, row_elements = width_.input * channels_;
  const int64_t left = std::min(width_.before, copy_columns_) * channels_;
  const int64_t used = std::min(row_elements, size - left);
  const int64_t start = height_.Start(first_row), count = CopyRows(rows);
  for (int64_t row = start; row < start + count; ++row, to += size) {
    if (row < 0 || row >= height_.input) {
      std::fill_n(to, size, 0.0f);
      continue;
    }
    std::fill_n(to, left, 0.0f);
    std::memcpy(to + left, x + row * row_elements, static_cast<size_t>(used) * sizeof(float));
    std::fill_n(to + left + used, size - left - used, 0.0f);
  }
}

RunMatrix RowConvolution::Windows(const float* x, int64_t i, float* copy, int64_t* line) const {
  const int64_t first = i * strip_rows_;
  *line = (copies_ ? copy_columns_ : width_.input) * channels_;
  const float* from = copy;
  if (copies_) {
    Copy(x, first, std::min(strip_rows_, out_rows_ - first), copy);
  } else {
    from = x + height_.Start(first) * *line;
  }
  return {from, width_.stride * channels_, height_.window, height_.dilation * *line, width_.window * channels_};
}

void RowConvolution::Run(const float* x, const float* panels, int64_t i, float* y, float* copy) const {
  int64_t line = 0;
  RunMatrix windows = Windows(x, i, copy, &line);
  const int64_t rows = Places(i) / out_columns_;
  for (int64_t row = 0; row < rows; ++row, y += out_columns_ * out_, windows.elements += height_.stride * line) {
    MultiplyRuns(windows, panels, out_columns_, out_, y);
  }
}

void RowConvolution::AddByFilter(const float* x, const float* dy, int64_t i, float* dw, float* copy) const {
  int64_t line = 0;
  const RunMatrix windows = Windows(x, i, copy, &line);
  AddFilterGradient(windows, height_.stride * line, dy, Places(i) / out_columns_, out_columns_, out_, dw);
}

void RowConvolution::PackByInput(const float* w, float* panels) const {
  const int64_t run = width_.window * channels_;
  for (int64_t i = 0; i < height_.window; ++i) {
    PackPanels({w + i * run * out_, 1, out_}, out_, run, panels + i * PackedElements(out_, run));
  }
}

void RowConvolution::ByInput(const float* dy, const float* panels, float* dx, float* copy, float* scratch) const {
  const int64_t run = width_.window * channels_, step = width_.stride * channels_;
  const int64_t row_elements = width_.input * channels_, line = copies_ ? copy_columns_ * channels_ : row_elements;
  const int64_t copy_rows = CopyRows(out_rows_);
  float* const sums = copies_ ? copy : dx;
  std::fill_n(sums, copies_ ? copy_rows * line : height_.input * row_elements, 0.0f);
  for (int64_t row = 0; row < out_rows_; ++row, dy += out_columns_ * out_) {
    for (int64_t i = 0; i < height_.window; ++i) {
      // Windows overlap, so each place is added after the one before.
      float* const to = sums + (row * height_.stride + i * height_.dilation) * line;
      const float* const with = panels + i * PackedElements(out_, run);
      MultiplyPanels({dy, out_, 1}, with, out_columns_, out_, run, to, step, to, step, scratch);
    }
  }
  if (!copies_) return;
  const int64_t left = std::min(width_.before, copy_columns_) * channels_;
  const int64_t used = std::min(row_elements, line - left);
  for (int64_t row = 0; row < height_.input; ++row, dx += row_elements) {
    const bool read = row + height_.before < copy_rows;
    if (read) std::copy_n(copy + (row + height_.before) * line + left, used, dx);
    std::fill_n(dx + (read ? used : 0), row_elements - (read ? used : 0), 0.0f);
  }
}

double RowConvolution::Nanoseconds(double peak) const {
  const auto rows = static_cast<double>(height_.window * width_.window * channels_);
  const auto columns = static_cast<double>(ColumnsMade(out_)), image_rows = static_cast<double>(out_rows_);
  // Few places in a row leave few sums to hide the latency of each.
  const double busy = std::min(1.0, static_cast<double>(out_columns_) * (out_ > 16 ? 2 : 1) / 8.0);
  const double bytes_read = 4 * rows * columns * static_cast<double>(batch_) * image_rows;
  const double computed = std::max(2 * Outputs() * rows * columns / (0.93 * busy * peak), bytes_read / 60);
  return 150 + computed + 0.1 * Copied() + 15 * static_cast<double>(batch_) * image_rows;
}

double RowConvolution::ByInputNanoseconds(double peak) const {
  const double runs = Outputs() * static_cast<double>(height_.window);
  const auto columns = static_cast<double>(ColumnsMade(width_.window * channels_)), depth = static_cast<double>(out_);
  const double rows = static_cast<double>(batch_) * static_cast<double>(out_rows_ * height_.window);
  const double computed = std::max(2 * runs * columns * depth / (0.8 * peak), 4 * depth * columns * rows / 60);
  return 150 + computed + runs * (2 + 0.1 * columns) + 0.2 * Copied() + 15 * rows + depth * columns;
}

}  // namespace weir::kernels_eigen
