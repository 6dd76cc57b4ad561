#include "plugins/kernels_eigen/kernels/row_convolution.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "plugins/kernels_eigen/kernels/filter_gradient.h"
#include "plugins/kernels_eigen/kernels/lanes.h"
#include "plugins/kernels_eigen/kernels/narrow_convolution.h"
#include "plugins/kernels_eigen/kernels/panels.h"
#include "sdk/cpp/cpu.h"

namespace weir::kernels_eigen {
namespace {

constexpr int64_t kStripElements = 16 * 1024;   // of y, about: they stay in a cache until a bias is added
constexpr double kMostCopied = 128 * 1024;      // elements of a strip's copy: half a second cache
constexpr int64_t kPlacesAtOnce = 132;          // that the innermost loops multiply with a part of the filter
constexpr int64_t kMostDepth = 576;             // rows of the filter that are multiplied at once
constexpr int64_t kOutputsAtOnce = 256;         // whose products a large filter's gradient adds up at once
constexpr double kMostOfGradient = 384 * 1024;  // elements of the copy for it

/// What the loops reach on one kind of processor. Fitted to runs, those of Intel on Emerald Rapids.
struct LoopRates {
  double forward, by_input, by_filter;  // shares of the core's peak
  double stored_ns, far_ns;             // per output; per output of an array that no second cache holds
  double sum_ns, far_sum_ns;            // per byte of the filter's gradient that is read or stored; of such a gradient
  double read;                          // bytes per ns, of a filter
  double call_ns;
};
constexpr LoopRates kLoopRates[] = {
    {0.89, 0.8, 0.875, 0.06, 0.08, 0.03, 0.2, 30, 150},   // baseline
    {0.93, 0.8, 0.86, 0, 0, 0.033, 0.033, 30, 150},       // amd-avx2
    {0.93, 0.8, 0.86, 0, 0, 0.033, 0.033, 30, 150},       // amd-avx512
    {0.97, 0.8, 0.86, 0.1, 0.13, 0.033, 0.033, 120, 60},  // amd-zen5
    {0.89, 0.8, 0.875, 0.06, 0.08, 0.03, 0.2, 30, 150},   // intel-avx2
    {0.96, 0.95, 1.0, 0.1, 0.17, 0.008, 0.09, 30, 150},   // intel-avx512
};
const LoopRates& LoopRatesHere() { return kLoopRates[static_cast<size_t>(sdk::ThisCpuClass())]; }
constexpr double kFarElements = 768 * 1024;
bool IsFar(double elements) { return elements > kFarElements; }

/// The columns that take as long as n, in pairs of vectors: a single one hides less latency.
double ColumnsTaken(int64_t n) {
  const int64_t rest = n % (2 * kLanes), whole = n - rest;
  const double single = kLanes == 16 ? 1.15 : 1.25;
  const double taken = rest == 0 ? 0 : rest <= kLanes ? single * kLanes : 2.0 * kLanes;
  return static_cast<double>(whole) + taken;
}

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

bool RowConvolution::PlanCopies(bool whole_images, double most) {
  if (!copies_) return true;
  // Paddings and strides may be arbitrarily large.
  const double columns =
      static_cast<double>(out_columns_ - 1) * static_cast<double>(width_.stride) + static_cast<double>(width_.window);
  const auto elements = [&](int64_t rows) {
    return (static_cast<double>(rows - 1) * static_cast<double>(height_.stride) +
            static_cast<double>(height_.window - 1) * static_cast<double>(height_.dilation) + 1) *
           columns * static_cast<double>(channels_);
  };
  while (!whole_images && strip_rows_ > 1 && elements(strip_rows_) > most) strip_rows_ = (strip_rows_ + 1) / 2;
  if (elements(strip_rows_) > most) return false;
  copy_columns_ = (out_columns_ - 1) * width_.stride + width_.window;
  return true;
}

void RowConvolution::PlanStrips(double places) {
  const double rows = places / static_cast<double>(out_columns_);
  strip_rows_ = std::clamp<int64_t>(static_cast<int64_t>(rows), 1, out_rows_);
}

void RowConvolution::PlanImages(int64_t places, double most_copied) {
  const int64_t of_image = out_rows_ * out_columns_;
  if (strip_rows_ < out_rows_ || 2 * of_image > places) return;
  images_ = std::min(batch_, places / of_image);
  if (copies_) images_ = std::min(images_, static_cast<int64_t>(most_copied) / CopySize(out_rows_));
  images_ = std::max<int64_t>(images_, 1);
}

bool RowConvolution::PlanForward() {
  narrow_ = out_ <= kNarrowChannels && width_.stride == 1 && out_columns_ >= kLanes &&
            height_.window * width_.window * channels_ <= kMostDepth;
  const bool pads = copies_;
  copies_ = pads || (narrow_ && channels_ > 1);
  PlanStrips(static_cast<double>(kStripElements) / static_cast<double>(out_));
  if (!PlanCopies(false, kMostCopied)) {
    if (pads) return false;
    narrow_ = copies_ = false;  // the planes of a row are too large
    PlanStrips(static_cast<double>(kStripElements) / static_cast<double>(out_));
  }
  PlanImages(kPlacesAtOnce, kMostCopied);
  return true;
}

bool RowConvolution::Plan(const sdk::Convolution& conv) { return PlanAxes(conv) && PlanForward(); }

bool RowConvolution::PlanTurned(const sdk::Convolution& conv) {
  if (!PlanAxes(conv) || height_.stride != 1 || width_.stride != 1) return false;
  turned_ = true;
  std::swap(channels_, out_);
  for (sdk::WindowAxis* axis : {&height_, &width_}) {
    std::swap(axis->input, axis->output);
    axis->before = (axis->window - 1) * axis->dilation - axis->before;
    if (axis->before < 0) return false;
  }
  out_rows_ = height_.output;
  out_columns_ = width_.output;
  copies_ = !height_.Inside() || !width_.Inside();
  return PlanForward();
}

bool RowConvolution::MakesPanels() const {
  const int64_t rows = height_.window * width_.window * channels_;
  return rows > kPanelDepth || (rows >= 32 && out_ >= 32);
}

bool RowConvolution::PlanByFilter(const sdk::Convolution& conv) {
  if (!PlanAxes(conv)) return false;
  if (!MakesPanels()) {
    PlanStrips(static_cast<double>(kStripElements) / static_cast<double>(out_));
    return PlanCopies(false, kMostCopied);
  }
  PlanStrips(static_cast<double>(kOutputsAtOnce));
  if (!PlanCopies(false, kMostOfGradient)) return false;
  PlanImages(kOutputsAtOnce, kMostOfGradient);
  return true;
}

bool RowConvolution::PlanByInput(const sdk::Convolution& conv) {
  if (!PlanAxes(conv) || out_ > kPanelDepth) return false;
  strip_rows_ = out_rows_;
  return PlanCopies(true, kMostCopied);
}

template <class Body>
void RowConvolution::ForParts(Body&& body) const {
  const int64_t length = width_.window * channels_;
  if (length <= kMostDepth) {
    const int64_t together = kMostDepth / length;
    for (int64_t run = 0; run < height_.window; run += together) {
      body(run, std::min(together, height_.window - run), int64_t{0}, length);
    }
    return;
  }
  const int64_t pieces = (length + kPanelDepth - 1) / kPanelDepth;
  for (int64_t run = 0; run < height_.window; ++run) {
    for (int64_t piece = 0, first = 0; piece < pieces; ++piece) {
      const int64_t count = (length - first) / (pieces - piece);
      body(run, int64_t{1}, first, count);
      first += count;
    }
  }
}

std::vector<int64_t> RowConvolution::Depths() const {
  std::vector<int64_t> depths;
  ForParts([&](int64_t, int64_t runs, int64_t, int64_t length) { depths.push_back(runs * length); });
  return depths;
}

void RowConvolution::PackFilter(const float* w, float* panels) const {
  ForParts([&](int64_t run, int64_t runs, int64_t first, int64_t length) {
    const int64_t depth = runs * length;
    if (!turned_) {
      PackRows({w, out_, 1}, depth, out_, panels, 0, depth);
      w += depth * out_;
    } else {
      for (int64_t at = 0; at < depth;) {  // rows of one tap
        const int64_t element = first + at % length, tap = element / channels_, channel = element % channels_;
        const int64_t count = std::min(channels_ - channel, length - at % length);
        const int64_t from = (height_.window - 1 - run - at / length) * width_.window + width_.window - 1 - tap;
        PackRows({w + from * out_ * channels_ + channel, 1, channels_}, count, out_, panels, at, depth);
        at += count;
      }
    }
    panels += PackedElements(depth, out_);
  });
}

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

void RowConvolution::CopyPlanes(const float* x, int64_t first_row, int64_t rows, float* to) const {
  const int64_t size = copy_columns_ * channels_;
  const int64_t left = std::min(width_.before, copy_columns_), used = std::min(width_.input, copy_columns_ - left);
  const int64_t start = height_.Start(first_row), count = CopyRows(rows);
  for (int64_t row = start; row < start + count; ++row, to += size) {
    std::fill_n(to, size, 0.0f);
    if (row < 0 || row >= height_.input) continue;
    TransposeFloats(x + row * width_.input * channels_, channels_, used, channels_, to + left, copy_columns_);
  }
}

RowConvolution::Source RowConvolution::SourceOf(const float* x, int64_t i, float* copy) const {
  const float* const images = x + FirstImage(i) * ImageElements();
  const int64_t first = FirstRow(i), rows = Rows(i);
  if (!copies_) {
    const int64_t line = width_.input * channels_;
    return {images + height_.Start(first) * line, line, ImageElements()};
  }
  for (int64_t image = 0; image < Images(i); ++image) {
    const float* const from = images + image * ImageElements();
    float* const to = copy + image * CopySize(rows);
    if (narrow_ && channels_ > 1) CopyPlanes(from, first, rows, to);
    else Copy(from, first, rows, to);
  }
  return {copy, copy_columns_ * channels_, CopySize(rows)};
}

void RowConvolution::FillOffsets(int64_t line, int64_t image, int64_t rows, int64_t first, int64_t count,
                                 int64_t* offsets) const {
  const int64_t place_step = width_.stride * channels_, row_step = height_.stride * line;
  int64_t row = first / out_columns_, column = first % out_columns_;
  int64_t start = row / rows * image;
  row %= rows;
  int64_t at = start + row * row_step + column * place_step;
  for (int64_t i = 0; i < count; ++i, at += place_step) {
    if (column == out_columns_) {
      column = 0;
      if (++row == rows) {
        row = 0;
        start += image;
      }
      at = start + row * row_step;
    }
    offsets[i] = at;
    ++column;
  }
}

void RowConvolution::RunNarrow(const Source& source, const float* panels, int64_t i, float* y) const {
  std::array<int64_t, kMostDepth> taps;
  const int64_t plane = source.line / channels_;
  int64_t depth = 0;
  for (int64_t run = 0; run < height_.window; ++run) {
    for (int64_t tap = 0; tap < width_.window; ++tap) {
      for (int64_t channel = 0; channel < channels_; ++channel) {
        taps[static_cast<size_t>(depth++)] = run * height_.dilation * source.line + channel * plane + tap;
      }
    }
  }
  ConvolveNarrow({.x = source.first,
                  .line = height_.stride * source.line,
                  .image = source.image,
                  .images = Images(i),
                  .rows = Rows(i),
                  .columns = out_columns_,
                  .taps = taps.data(),
                  .depth = depth,
                  .filter = panels,
                  .filter_step = PanelStep()},
                 out_, y);
}

void RowConvolution::Run(const float* x, const float* panels, int64_t i, float* y, float* copy) const {
  const Source source = SourceOf(x, i, copy);
  if (narrow_) return RunNarrow(source, panels, i, y);
  const int64_t places = Places(i), run_step = height_.dilation * source.line;
  std::array<int64_t, kPlacesAtOnce> offsets;
  for (int64_t first = 0; first < places; first += kPlacesAtOnce) {
    const int64_t count = std::min(kPlacesAtOnce, places - first);
    FillOffsets(source.line, source.image, Rows(i), first, count, offsets.data());
    const float* part = panels;
    ForParts([&](int64_t run, int64_t runs, int64_t from, int64_t length) {
      const RunMatrix windows{source.first + run * run_step + from, offsets.data(), 0, runs, run_step, length};
      MultiplyRuns(windows, part, count, out_, y + first * out_, run > 0 || from > 0);
      part += PackedElements(runs * length, out_);
    });
  }
}

int64_t RowConvolution::ByFilterElements() const { return MakesPanels() ? PackedElements(kOutputsAtOnce, out_) : 0; }

int64_t RowConvolution::FilterParts() const {
  const int64_t length = width_.window * channels_;
  return MakesPanels() ? TurnedParts(height_.window, length, out_) : FilterGradientParts(height_.window, length, out_);
}

double RowConvolution::FilterTiles() const {
  constexpr double kPeak = 80;     // flops per ns, about: tiles do not depend on the device's profile
  constexpr double kShare = 0.25;  // of a tile's time that may go to what every tile reads
  const auto columns = static_cast<double>(std::min(out_, 2 * kLanes));
  const double repeated = 0.2 * Copied() + 0.1 * Outputs() * columns;
  return std::min(static_cast<double>(FilterParts()), kShare * ByFilterNanoseconds(kPeak) / repeated);
}

void RowConvolution::ByFilter(const float* x, const float* dy, const PartRange& parts, float* dw, float* copy,
                              float* scratch) const {
  for (int64_t i = 0; i < Strips(); ++i) AddByFilter(x, dy + FirstPlace(i) * out_, i, parts, dw, copy, scratch);
}

void RowConvolution::AddByFilter(const float* x, const float* dy, int64_t i, const PartRange& parts, float* dw,
                                 float* copy, float* scratch) const {
  const Source source = SourceOf(x, i, copy);
  RunMatrix windows{.elements = source.first,
                    .offsets = nullptr,
                    .row_step = width_.stride * channels_,
                    .runs = height_.window,
                    .run_step = height_.dilation * source.line,
                    .length = width_.window * channels_};
  if (!MakesPanels()) {
    FilterGradient({windows, height_.stride * source.line, dy, Rows(i), out_columns_}, out_, parts, dw, i > 0);
    return;
  }
  const int64_t places = Places(i);
  const ColumnRange columns = ColumnsOf(parts, windows.runs, windows.length, out_);
  std::array<int64_t, kOutputsAtOnce> offsets;
  windows.offsets = offsets.data();
  for (int64_t first = 0; first < places; first += kOutputsAtOnce) {
    const int64_t count = std::min(kOutputsAtOnce, places - first);
    FillOffsets(source.line, source.image, Rows(i), first, count, offsets.data());
    PackRows({dy + first * out_ + columns.first, out_, 1}, count, columns.count, scratch, 0, count);
    MultiplyTurnedRuns(windows, scratch, count, out_, parts, dw, i > 0 || first > 0);
  }
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

double RowConvolution::NarrowNanoseconds(double peak) const {
  const auto rows = static_cast<double>(height_.window * width_.window * channels_), out = static_cast<double>(out_);
  const auto vectors = static_cast<double>((out_columns_ + kLanes - 1) / kLanes);
  const double filled = static_cast<double>(out_columns_) / (vectors * static_cast<double>(kLanes));
  return 150 + 2 * Outputs() * rows * out / (filled * peak) + 0.1 * Outputs() * out +
         (channels_ > 1 ? 0.3 : 0.1) * Copied() + 30 * static_cast<double>(Strips());
}

double RowConvolution::Nanoseconds(double peak) const {
  if (narrow_) return NarrowNanoseconds(peak);
  const LoopRates& rates = LoopRatesHere();
  const auto rows = static_cast<double>(height_.window * width_.window * channels_);
  const double columns = ColumnsTaken(out_), strips = static_cast<double>(Strips()), outputs = Outputs();
  // Few places leave few sums to hide the latency of each.
  const double busy = std::min(1.0, static_cast<double>(Places(0)) * (out_ > 16 ? 2 : 1) / 8.0);
  const double bytes_read = 4 * rows * columns * strips;
  const double computed =
      std::max(2 * outputs * rows * columns / (rates.forward * busy * peak), bytes_read / rates.read);
  const double stored = outputs * static_cast<double>(out_);
  return rates.call_ns + computed + 0.1 * Copied() + 30 * strips +
         stored * (IsFar(stored) ? rates.far_ns : rates.stored_ns);
}

double RowConvolution::ByFilterNanoseconds(double peak) const {
  if (!MakesPanels()) return Nanoseconds(peak);
  const LoopRates& rates = LoopRatesHere();
  const auto rows = static_cast<double>(height_.window * width_.window * channels_), outputs = Outputs();
  const double columns = ColumnsTaken(out_);
  const double stored = 8 * rows * columns * std::ceil(outputs / static_cast<double>(kOutputsAtOnce));  // bytes
  return rates.call_ns + 2 * outputs * rows * columns / (rates.by_filter * peak) + 0.1 * Copied() +
         0.2 * outputs * columns + stored * (IsFar(rows * columns) ? rates.far_sum_ns : rates.sum_ns);
}

double RowConvolution::ByInputNanoseconds(double peak) const {
  const double runs = Outputs() * static_cast<double>(height_.window);
  const double columns = ColumnsTaken(width_.window * channels_), depth = static_cast<double>(out_);
  const double rows = static_cast<double>(batch_) * static_cast<double>(out_rows_ * height_.window);
  const LoopRates& rates = LoopRatesHere();
  const double near = IsFar(static_cast<double>(ByInputPanels())) ? 1 : 2;
  const double read = 4 * depth * columns * rows / (near * rates.read);
  const double computed = std::max(2 * runs * columns * depth / (rates.by_input * peak), read);
  return rates.call_ns + computed + runs * (6 + 0.1 * columns) + 0.2 * Copied() + 15 * rows + depth * columns;
}

}  // namespace weir::kernels_eigen
