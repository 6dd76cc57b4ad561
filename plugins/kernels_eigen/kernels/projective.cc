// Images under projective transforms: ImageProjectiveTransformV2 and V3.
#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/function_families.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Env;
using sdk::View;

enum class Outside : uint8_t { kFill, kMirror, kRepeat, kNearest };

/// The place inside of an axis of `extent` pixels that stands for `at`; NaN stays NaN.
float PlaceInside(Outside outside, float at, int64_t extent) {
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

struct Projective {
  bool nearest = true;
  Outside outside = Outside::kFill;

  int32_t Prepare(sdk::Prep& prep) {
    const sdk::Error& error = prep.error();
    const weir_shape &images = prep.shape(0), &transforms = prep.shape(1);
    const std::string_view interpolation = prep.node().String("interpolation"), mode = prep.node().String("fill_mode");
    // TensorFlow takes what it does not know for the first kind.
    nearest = interpolation == "NEAREST";
    outside = mode == "REFLECT"   ? Outside::kMirror
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

  template <class T>
  struct Image {
    const T* pixels;
    int64_t height, width, depth;
    T fill;

    float At(float y, float x, int64_t c) const { return static_cast<float>(Exactly(y, x, c)); }
    T Exactly(float y, float x, int64_t c) const {
      // Written so that NaN is outside.
      const bool inside = y >= 0 && y < static_cast<float>(height) && x >= 0 && x < static_cast<float>(width);
      if (!inside) return fill;
      return pixels[(static_cast<int64_t>(y) * width + static_cast<int64_t>(x)) * depth + c];
    }
  };

  template <class T>
  void Pixel(const Image<T>& image, float y, float x, T* to) const {
    const float top = std::floor(y), left = std::floor(x), bottom = top + 1, right = left + 1;
    for (int64_t c = 0; c < image.depth; ++c) {
      if (nearest) {
        to[c] = image.Exactly(std::round(y), std::round(x), c);
        continue;
      }
      const float above = (right - x) * image.At(top, left, c) + (x - left) * image.At(top, right, c);
      const float below = (right - x) * image.At(bottom, left, c) + (x - left) * image.At(bottom, right, c);
      to[c] = static_cast<T>((bottom - y) * above + (y - top) * below);
    }
  }

  template <class T>
  int32_t Transform(View<const T> images, View<const float> transforms, float fill, View<T> output) const {
    const int64_t height = images.dim(1), width = images.dim(2), depth = images.dim(3);
    T* to = output.data();
    for (int64_t i = 0; i < output.dim(0); ++i) {
      const Image<T> image{images.data() + i * height * width * depth, height, width, depth, static_cast<T>(fill)};
      const float* t = transforms.data() + (transforms.dim(0) == 1 ? 0 : 8 * i);
      for (int64_t row = 0; row < output.dim(1); ++row) {
        for (int64_t column = 0; column < output.dim(2); ++column, to += depth) {
          const auto u = static_cast<float>(column), v = static_cast<float>(row);
          const float depth_at = t[6] * u + t[7] * v + 1;
          if (depth_at == 0) {
            std::fill_n(to, depth, image.fill);
            continue;
          }
          const float x = (t[0] * u + t[1] * v + t[2]) / depth_at, y = (t[3] * u + t[4] * v + t[5]) / depth_at;
          Pixel(image, PlaceInside(outside, y, height), PlaceInside(outside, x, width), to);
        }
      }
    }
    return WEIR_OK;
  }
};

struct ProjectiveV2 : Projective {
  template <class T>
  int32_t Run(View<const T> images, View<const float> transforms, sdk::HostIntegers, View<T> output) const {
    return Transform(images, transforms, 0, output);
  }
};

struct ProjectiveV3 : Projective {
  template <class T>
  int32_t Run(Env& env, View<const T> images, View<const float> transforms, sdk::HostIntegers, View<const float> fill,
              View<T> output) const {
    if (fill.rank() != 0) return env.error().InvalidArgument("fill_value must be a scalar", fill.shape());
    return Transform(images, transforms, fill[0], output);
  }
};

}  // namespace

void AddProjective(sdk::KernelTable& k) {
#if defined(WEIR_KERNEL_DTYPES_SHORT)
  constexpr auto kImages = kFloat + kIndex;
#else
  constexpr auto kImages = kFloating + kIndex + sdk::Types<uint8_t>();
#endif
  k.Add<ProjectiveV2>("ImageProjectiveTransformV2", sdk::Attr("dtype", kImages)).Class(WEIR_CLASS_GATHER, 20);
  k.Add<ProjectiveV3>("ImageProjectiveTransformV3", sdk::Attr("dtype", kImages)).Class(WEIR_CLASS_GATHER, 20);
}

}  // namespace weir::kernels_eigen
