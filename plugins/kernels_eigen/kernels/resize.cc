// Resizing of NHWC images, and its gradients.
#include <algorithm>
#include <cmath>
#include <limits>

#include "plugins/functors/resize_plans.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using functors::Neighbours;
using functors::Resampled;
using sdk::Compute;
using sdk::Env;
using sdk::HostIntegers;
using sdk::Prep;
using sdk::Scratch;
using sdk::View;

/// Four places with the weights of cubic convolution (Keys, 1981), from a table of 1024 steps as in TensorFlow. With
/// half_pixel_centers, places outside of the image do not count.
struct CubicTaps {
  int64_t at[4];
  float weights[4];

  static CubicTaps Of(const Resampled& axis, int64_t i) {
    constexpr float kSteps = 1024;
    const float place = axis.Place(i), floor = std::floor(place);
    const float step = std::nearbyint((place - floor) * kSteps) / kSteps;
    const double a = axis.by.half ? -0.5 : -0.75;
    const auto near = [a](float x) { return static_cast<float>(((a + 2) * x - (a + 3)) * x * x + 1); };
    const auto far = [a](float x) { return static_cast<float>(((a * x - 5 * a) * x + 8 * a) * x - 4 * a); };
    CubicTaps taps{{}, {far(step + 1), near(step), near(1 - step), far(2 - step)}};
    const auto first = static_cast<int64_t>(floor) - 1;
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
      taps.at[k] = axis.Bound(first + k);
      if (axis.by.half && taps.at[k] != first + k) taps.weights[k] = 0;
      sum += taps.weights[k];
    }
    constexpr float kLeast = 1000 * std::numeric_limits<float>::min();
    if (axis.by.half && std::fabs(sum) >= kLeast) {
      for (float& weight : taps.weights) weight /= sum;
    }
    return taps;
  }
};

constexpr int64_t kResizeTileWork = 16 * 1024;  // elements written in a tile, at least

/// Tiles are rows of outputs.
struct Resizing : functors::ResizePlan {
  int32_t Plan(Prep& prep) {
    const int32_t code = ResizePlan::Plan(prep);
    if (code == WEIR_OK && batch > 0) {
      prep.Tiles(static_cast<uint64_t>(sdk::SizeOf(prep.output(0).shape) / kResizeTileWork));
    }
    return code;
  }

  /// Scratch for what is known of each column.
  template <class Tap>
  void TableOf(Prep& prep) const {
    if (batch > 0) prep.Scratch(static_cast<uint64_t>(columns.to) * sizeof(Tap));
  }
  template <class Tap>
  void Fill(Tap* table) const {
    for (int64_t x = 0; x < columns.to; ++x) table[x] = Tap::Of(columns, x);
  }

  /// Calls body(image, row, first element of the output row) for the rows of this call.
  template <class T, class Body>
  void ForRows(Env& env, const View<T>& y, Body body) const {
    const auto [begin, end] = env.Range(batch * rows.to);
    const int64_t length = columns.to * channels;
    for (int64_t i = begin; i < end; ++i) body(i / rows.to, i % rows.to, y.data() + i * length);
  }
};

struct ResizeBilinear : Resizing {
  int32_t Prepare(Prep& prep) {
    const int32_t code = Plan(prep);
    if (code == WEIR_OK) TableOf<Neighbours>(prep);
    return code;
  }
  template <class T>
  void Run(Env& env, View<const T> images, HostIntegers, View<float> out, Scratch<Neighbours> table) const {
    if (batch == 0) return;
    Fill(table.data());
    ForRows(env, out, [&](int64_t image, int64_t row, float* to) {
      const Neighbours y = Neighbours::Of(rows, row);
      const T* top = images.data() + image * ImageSize() + y.low * LineSize();
      const T* bottom = top + (y.high - y.low) * LineSize();
      for (int64_t column = 0; column < columns.to; ++column, to += channels) {
        const Neighbours& x = table.data()[column];
        const int64_t left = x.low * channels, right = x.high * channels;
        for (int64_t c = 0; c < channels; ++c) {
          const auto a = static_cast<float>(top[left + c]), b = static_cast<float>(top[right + c]);
          const auto d = static_cast<float>(bottom[left + c]), e = static_cast<float>(bottom[right + c]);
          const float above = a + (b - a) * x.share, below = d + (e - d) * x.share;
          to[c] = above + (below - above) * y.share;
        }
      }
    });
  }
};

struct ResizeNearest : Resizing {
  int32_t Prepare(Prep& prep) { return Plan(prep); }
  template <class T>
  void Run(Env& env, View<const T> images, HostIntegers, View<T> out) const {
    if (batch == 0) return;
    ForRows(env, out, [&](int64_t image, int64_t row, T* to) {
      const T* line = images.data() + image * ImageSize() + rows.Nearest(row) * LineSize();
      for (int64_t column = 0; column < columns.to; ++column, to += channels) {
        std::copy_n(line + columns.Nearest(column) * channels, channels, to);
      }
    });
  }
};

struct ResizeBicubic : Resizing {
  int32_t Prepare(Prep& prep) {
    const int32_t code = Plan(prep);
    if (code == WEIR_OK) TableOf<CubicTaps>(prep);
    return code;
  }
  template <class T>
  void Run(Env& env, View<const T> images, HostIntegers, View<float> out, Scratch<CubicTaps> table) const {
    if (batch == 0) return;
    Fill(table.data());
    ForRows(env, out, [&](int64_t image, int64_t row, float* to) {
      const CubicTaps y = CubicTaps::Of(rows, row);
      const T* from = images.data() + image * ImageSize();
      for (int64_t column = 0; column < columns.to; ++column, to += channels) {
        const CubicTaps& x = table.data()[column];
        for (int64_t c = 0; c < channels; ++c) {
          float sum = 0;
          for (int j = 0; j < 4; ++j) {
            float line = 0;
            for (int i = 0; i < 4; ++i) {
              line += static_cast<float>(from[y.at[i] * LineSize() + x.at[j] * channels + c]) * y.weights[i];
            }
            sum += line * x.weights[j];
          }
          to[c] = sum;
        }
      }
    });
  }
};

/// The places that a resized pixel covers, and the part of each that it covers.
struct Cover {
  const Resampled& axis;
  float begin, end;
  int64_t first, last;

  Cover(const Resampled& along, int64_t i)
      : axis(along),
        begin(static_cast<float>(i) * along.scale),
        end(static_cast<float>(i + 1) * along.scale),
        first(static_cast<int64_t>(std::floor(begin))),
        last(static_cast<int64_t>(std::ceil(end))) {}

  float Part(int64_t place) const {
    const auto at = static_cast<float>(place);
    if (at < begin) return at + 1 > end ? axis.scale : at + 1 - begin;
    return at + 1 > end ? end - at : 1.0f;
  }
};

struct ResizeArea : Resizing {
  int32_t Prepare(Prep& prep) { return Plan(prep); }
  template <class T>
  void Run(Env& env, View<const T> images, HostIntegers, View<float> out) const {
    if (batch == 0) return;
    const float share = 1.0f / (rows.scale * columns.scale);
    ForRows(env, out, [&](int64_t image, int64_t row, float* to) {
      const Cover y(rows, row);
      const T* from = images.data() + image * ImageSize();
      for (int64_t column = 0; column < columns.to; ++column, to += channels) {
        const Cover x(columns, column);
        std::fill_n(to, channels, 0.0f);
        for (int64_t i = y.first; i < y.last; ++i) {
          const T* line = from + rows.Bound(i) * LineSize();
          for (int64_t j = x.first; j < x.last; ++j) {
            const float part = y.Part(i) * x.Part(j);
            const T* pixel = line + columns.Bound(j) * channels;
            for (int64_t c = 0; c < channels; ++c) to[c] += static_cast<float>(pixel[c]) * part;
          }
        }
        for (int64_t c = 0; c < channels; ++c) to[c] *= share;
      }
    });
  }
};

/// Tiles are whole images.
struct ResizingGrad : functors::ResizeGradPlan {
  int32_t Plan(Prep& prep) {
    const int32_t code = ResizeGradPlan::Plan(prep);
    if (code == WEIR_OK && batch > 0 && channels > 0) {
      prep.Scratch(static_cast<uint64_t>(ImageSize()) * sizeof(float));
      prep.Tiles(static_cast<uint64_t>(std::min(batch, prep.size(0) / kResizeTileWork)));
    }
    return code;
  }

  /// Calls spread(y, x, gradients of the pixel, sums of the image) for the pixels of this call. 16-bit images are
  /// summed in float.
  template <class Tap, class T, class Spread>
  void Sum(Env& env, const View<const float>& grads, const View<T>& dx, float* scratch, Spread spread) const {
    using C = Compute<T>;
    if (batch == 0 || channels == 0) return;
    const auto [begin, end] = env.Range(batch);
    for (int64_t image = begin; image < end; ++image) {
      T* to = dx.data() + image * ImageSize();
      C* sums = nullptr;
      if constexpr (std::is_same_v<C, T>) {
        sums = to;
      } else {
        sums = scratch;
      }
      std::fill_n(sums, ImageSize(), C(0));
      const float* from = grads.data() + image * rows.to * columns.to * channels;
      for (int64_t row = 0; row < rows.to; ++row) {
        const Tap y = Tap::Of(rows, row);
        for (int64_t column = 0; column < columns.to; ++column, from += channels) {
          spread(y, Tap::Of(columns, column), from, sums);
        }
      }
      if constexpr (!std::is_same_v<C, T>) sdk::Narrow(sums, to, ImageSize());
    }
  }

  template <class C>
  void AddPixel(C* sums, int64_t y, int64_t x, const float* grads, float weight) const {
    C* pixel = sums + (y * columns.from + x) * channels;
    for (int64_t c = 0; c < channels; ++c) pixel[c] += static_cast<C>(grads[c] * weight);
  }
};

struct ResizeBilinearGrad : ResizingGrad {
  int32_t Prepare(Prep& prep) { return Plan(prep); }
  template <class T>
  void Run(Env& env, View<const float> grads, View<const T>, View<T> dx, Scratch<float> scratch) const {
    Sum<Neighbours>(env, grads, dx, scratch.data(),
                    [&](const Neighbours& y, const Neighbours& x, const float* from, Compute<T>* sums) {
                      AddPixel(sums, y.low, x.low, from, (1 - y.share) * (1 - x.share));
                      AddPixel(sums, y.low, x.high, from, (1 - y.share) * x.share);
                      AddPixel(sums, y.high, x.low, from, y.share * (1 - x.share));
                      AddPixel(sums, y.high, x.high, from, y.share * x.share);
                    });
  }
};

struct ResizeBicubicGrad : ResizingGrad {
  int32_t Prepare(Prep& prep) { return Plan(prep); }
  template <class T>
  void Run(Env& env, View<const float> grads, View<const T>, View<T> dx, Scratch<float> scratch) const {
    Sum<CubicTaps>(env, grads, dx, scratch.data(),
                   [&](const CubicTaps& y, const CubicTaps& x, const float* from, Compute<T>* sums) {
                     for (int i = 0; i < 4; ++i) {
                       for (int j = 0; j < 4; ++j) AddPixel(sums, y.at[i], x.at[j], from, y.weights[i] * x.weights[j]);
                     }
                   });
  }
};

/// Each resized pixel's gradient goes to the pixel that it came from.
struct ResizeNearestGrad : functors::ResizeNearestGradPlan {
  template <class T>
  void Run(View<const T> grads, HostIntegers, View<T> dx) const {
    using C = Compute<T>;
    if (batch == 0 || channels == 0) return;
    std::fill_n(dx.data(), dx.size(), T());
    if (rows.to == 0 || columns.to == 0) return;
    const T* from = grads.data();
    for (int64_t image = 0; image < batch; ++image) {
      for (int64_t row = 0; row < rows.to; ++row) {
        T* line = dx.data() + (image * rows.from + rows.Nearest(row)) * columns.from * channels;
        for (int64_t column = 0; column < columns.to; ++column, from += channels) {
          T* to = line + columns.Nearest(column) * channels;
          for (int64_t c = 0; c < channels; ++c) {
            to[c] = static_cast<T>(kernels_eigen::Sum(static_cast<C>(to[c]), static_cast<C>(from[c])));
          }
        }
      }
    }
  }
};

}  // namespace

void AddResize(sdk::KernelTable& k) {
  constexpr auto kImageTypes = kFloating + kSigned + sdk::Types<uint8_t, uint16_t>();
  k.Add<ResizeBilinear>("ResizeBilinear", kImageTypes).Class(WEIR_CLASS_GATHER, 8);
  k.Add<ResizeNearest>("ResizeNearestNeighbor", kImageTypes).Class(WEIR_CLASS_GATHER, 1);
  k.Add<ResizeBicubic>("ResizeBicubic", kImageTypes).Class(WEIR_CLASS_GATHER, 40);
  k.Add<ResizeArea>("ResizeArea", kImageTypes).Class(WEIR_CLASS_GATHER, 10);
  k.Add<ResizeBilinearGrad>("ResizeBilinearGrad", kFloating).Class(WEIR_CLASS_GATHER, 8);
  k.Add<ResizeBicubicGrad>("ResizeBicubicGrad", kFloat).Class(WEIR_CLASS_GATHER, 32);
  k.Add<ResizeNearestGrad>("ResizeNearestNeighborGrad", kFloating + sdk::Types<uint8_t, int8_t, int32_t>())
      .Class(WEIR_CLASS_GATHER, 1);
}

}  // namespace weir::kernels_eigen
