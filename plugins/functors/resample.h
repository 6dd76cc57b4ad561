// Places of resized images in their originals, with TensorFlow's rounding.
#ifndef WEIR_PLUGINS_FUNCTORS_RESAMPLE_H_
#define WEIR_PLUGINS_FUNCTORS_RESAMPLE_H_

#include <cmath>
#include <cstdint>

#include "plugins/functors/scalar.h"
#include "sdk/cpp/prepare.h"

namespace weir::functors {

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
  WEIR_HD float Place(int64_t i) const {
    const auto x = static_cast<float>(i);
    return by.half ? (x + 0.5f) * scale - 0.5f : x * scale;
  }
  /// The place nearest to it.
  WEIR_HD int64_t Nearest(int64_t i) const {
    const float x = by.half ? (static_cast<float>(i) + 0.5f) * scale : static_cast<float>(i) * scale;
    return Bound(static_cast<int64_t>(by.align ? std::round(x) : std::floor(x)));
  }
  WEIR_HD int64_t Bound(int64_t i) const { return i < 0 ? 0 : i < from ? i : from - 1; }
};

/// The two neighbours of a place, and the share of the upper one.
struct Neighbours {
  int64_t low = 0, high = 0;
  float share = 0;

  WEIR_HD static Neighbours Of(const Resampled& axis, int64_t i) {
    const float place = axis.Place(i), floor = std::floor(place);
    const auto below = static_cast<int64_t>(floor), above = static_cast<int64_t>(std::ceil(place));
    return {below > 0 ? below : 0, above < axis.from ? above : axis.from - 1, place - floor};
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_RESAMPLE_H_
