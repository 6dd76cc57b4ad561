// Images under projective transforms: the checks of ImageProjectiveTransformV2 and V3, and where a pixel comes from.
#ifndef WEIR_PLUGINS_FUNCTORS_PROJECTIVE_H_
#define WEIR_PLUGINS_FUNCTORS_PROJECTIVE_H_

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "plugins/functors/operands.h"
#include "plugins/functors/scalar.h"

namespace weir::functors {

enum class Outside : uint8_t { kFill, kMirror, kRepeat, kNearest };

/// The place inside of an axis of `extent` pixels that stands for `at`; NaN stays NaN.
WEIR_HD inline float PlaceInside(Outside outside, float at, int64_t extent) {
  const auto n = static_cast<float>(extent), last = n - 1;
  if (outside == Outside::kFill || std::isnan(at)) return at;
  if (outside == Outside::kNearest) return std::clamp(at, 0.0f, std::max(last, 0.0f));
  if (extent <= 1) return 0;
  if (outside == Outside::kMirror) {
    if (at < 0) {
      if (at < 2 * n) at += 2 * n * std::trunc(-at / (2 * n));
      at = at < -n ? at + 2 * n : -at - 1;
    } else if (at > last) {
      at -= 2 * n * std::trunc(at / (2 * n));
      if (at >= n) at = 2 * n - at - 1;
    }
  } else if (at < 0) {
    at += n * (std::trunc(-at / last) + 1);
  } else if (at > last) {
    at -= n * std::trunc(at / last);
  }
  return std::clamp(at, 0.0f, last);
}

/// A place in an image, or none.
struct ProjectedPlace {
  float y = 0, x = 0;
  bool exists = false;
};

/// How pixels between and outside of those of an image are found.
struct ProjectiveSampling {
  bool nearest = true;
  Outside outside = Outside::kFill;

  /// The place that the transform, 8 numbers, gives for a pixel of the result.
  WEIR_HD ProjectedPlace Find(const float* t, int64_t row, int64_t column, int64_t height, int64_t width) const {
    const auto u = static_cast<float>(column), v = static_cast<float>(row);
    const float depth = t[6] * u + t[7] * v + 1;
    if (depth == 0) return {};
    const float x = (t[0] * u + t[1] * v + t[2]) / depth, y = (t[3] * u + t[4] * v + t[5]) / depth;
    return {PlaceInside(outside, y, height), PlaceInside(outside, x, width), true};
  }
};

/// One channel of an image [height, width]: load(i) is pixel i, and `fill` stands for those outside.
template <class T, class Load>
struct ProjectedChannel {
  Load load;
  int64_t height, width;
  T fill;

  WEIR_HD T At(float y, float x) const {
    // Written so that NaN is outside.
    const bool inside = y >= 0 && y < static_cast<float>(height) && x >= 0 && x < static_cast<float>(width);
    if (!inside) return fill;
    return load(static_cast<int64_t>(y) * width + static_cast<int64_t>(x));
  }
  WEIR_HD T Sample(const ProjectedPlace& place, bool nearest) const {
    if (!place.exists) return fill;
    const float y = place.y, x = place.x;
    if (nearest) return At(std::round(y), std::round(x));
    const float top = std::floor(y), left = std::floor(x), bottom = top + 1, right = left + 1;
    const auto pixel = [&](float a, float b) { return static_cast<float>(At(a, b)); };
    const float above = (right - x) * pixel(top, left) + (x - left) * pixel(top, right);
    const float below = (right - x) * pixel(bottom, left) + (x - left) * pixel(bottom, right);
    return static_cast<T>((bottom - y) * above + (y - top) * below);
  }
};

struct ProjectivePlan {
  ProjectiveSampling sampling;

  int32_t Prepare(sdk::Prep& prep) {
    const sdk::Error& error = prep.error();
    const weir_shape &images = prep.shape(0), &transforms = prep.shape(1);
    const std::string_view interpolation = prep.node().String("interpolation"), mode = prep.node().String("fill_mode");
    // TensorFlow takes what it does not know for the first kind.
    sampling.nearest = interpolation == "NEAREST";
    sampling.outside = mode == "REFLECT"   ? Outside::kMirror
                       : mode == "WRAP"    ? Outside::kRepeat
                       : mode == "NEAREST" ? Outside::kNearest
                                           : Outside::kFill;
    if (images.rank != 4) return error.InvalidArgument("Input images must have rank 4");
    if (transforms.rank != 2 || transforms.dims[1] != 8 ||
        (transforms.dims[0] != 1 && transforms.dims[0] != images.dims[0])) {
      return error.InvalidArgument("Input transform should be num_images x 8 or 1 x 8");
    }
    std::vector<int64_t> size;
    if (const int32_t code = Steering(prep, 2, &size); code != WEIR_OK) return code;
    if (size.size() != 2) return error.InvalidArgument("output shape must have two elements", prep.shape(2));
    if (size[0] <= 0 || size[1] <= 0) return error.InvalidArgument("output dimensions must be positive");
    return ExpectOutput(prep, 0, {images.dims[0], size[0], size[1], images.dims[3]});
  }
  /// InvalidArgument if the fill value, an operand of V3, is no scalar.
  template <class View>
  static int32_t CheckFill(const sdk::Env& env, const View& fill) {
    return fill.rank() == 0 ? int32_t{WEIR_OK}
                            : env.error().InvalidArgument("fill_value must be a scalar", fill.shape());
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_PROJECTIVE_H_
