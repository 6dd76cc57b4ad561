// Places of resized images in their originals, with TensorFlow's rounding.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_RESAMPLE_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_RESAMPLE_H_

#include <algorithm>
#include <cmath>
#include <limits>

#include "sdk/cpp/prepare.h"

namespace weir::kernels_eigen {

/// The attributes align_corners and half_pixel_centers.
struct Sampling {
  bool align = false, half = false;

  int32_t Read(const sdk::Prep& prep, bool exclusive) {
    align = prep.node().Bool("align_corners", false);
    half = prep.node().Bool("half_pixel_centers", false);
    if (!exclusive || !align || !half) return WEIR_OK;
    return prep.error().InvalidArgument("If half_pixel_centers is True, align_corners must be False.");
  }
};

/// One axis: `from` places of an original, resized to `to` places.
struct Resampled {
  int64_t from = 0, to = 0;
  float scale = 0;
  Sampling by;

  Resampled() = default;
  Resampled(int64_t original, int64_t resized, Sampling sampling) : from(original), to(resized), by(sampling) {
    scale = by.align && to > 1 && from > 1 ? static_cast<float>(from - 1) / static_cast<float>(to - 1)
                                           : static_cast<float>(from) / static_cast<float>(to);
  }

  /// Where resized place i lies in the original.
  float Place(int64_t i) const {
    const auto x = static_cast<float>(i);
    return by.half ? (x + 0.5f) * scale - 0.5f : x * scale;
  }
  /// The place nearest to it.
  int64_t Nearest(int64_t i) const {
    const float x = by.half ? (static_cast<float>(i) + 0.5f) * scale : static_cast<float>(i) * scale;
    return Bound(static_cast<int64_t>(by.align ? std::round(x) : std::floor(x)));
  }
  int64_t Bound(int64_t i) const { return std::clamp<int64_t>(i, 0, from - 1); }
};

/// The two neighbours of a place, and the share of the upper one.
struct Neighbours {
  int64_t low = 0, high = 0;
  float share = 0;

  static Neighbours Of(const Resampled& axis, int64_t i) {
    const float place = axis.Place(i), floor = std::floor(place);
    return {std::max<int64_t>(static_cast<int64_t>(floor), 0),
            std::min(static_cast<int64_t>(std::ceil(place)), axis.from - 1), place - floor};
  }
};

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

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_RESAMPLE_H_
