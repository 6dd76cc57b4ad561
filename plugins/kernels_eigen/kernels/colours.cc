// Colour spaces, and adjustments of contrast, hue and saturation.
#include <algorithm>

#include "plugins/functors/colours.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using functors::ExpectImagesAnd;
using functors::HsvOf;
using functors::Pixel;
using functors::RgbOf;
using functors::Turned;
using sdk::Compute;
using sdk::Env;
using sdk::Prep;
using sdk::View;

/// to = f(pixel) for the pixels of this call.
template <class T, class F>
void ForPixels(Env& env, const View<const T>& x, const View<T>& y, F f) {
  using C = Compute<T>;
  const auto [begin, end] = env.Range(x.size() / 3);
  const T* from = x.data();
  T* to = y.data();
  for (int64_t i = 3 * begin; i < 3 * end; i += 3) {
    const Pixel<C> made =
        f(Pixel<C>{static_cast<C>(from[i]), static_cast<C>(from[i + 1]), static_cast<C>(from[i + 2])});
    to[i] = static_cast<T>(made.a);
    to[i + 1] = static_cast<T>(made.b);
    to[i + 2] = static_cast<T>(made.c);
  }
}

constexpr int64_t kPixelGrain = 8 * 1024;

void TilePixels(Prep& prep) {
  prep.Tiles(static_cast<uint64_t>(prep.size(0) / (3 * kPixelGrain)));
}

struct ColourSpace : functors::ColourSpacePlan {
  int32_t Prepare(Prep& prep) {
    const int32_t code = ColourSpacePlan::Prepare(prep);
    if (code == WEIR_OK) TilePixels(prep);
    return code;
  }
};

struct RgbToHsv : ColourSpace {
  template <class T>
  void Run(Env& env, View<const T> x, View<T> y) const {
    ForPixels(env, x, y, [](const Pixel<Compute<T>>& rgb) { return HsvOf(rgb); });
  }
};
struct HsvToRgb : ColourSpace {
  template <class T>
  void Run(Env& env, View<const T> x, View<T> y) const {
    ForPixels(env, x, y, [](const Pixel<Compute<T>>& hsv) { return RgbOf(hsv); });
  }
};

int32_t PrepareRgb(Prep& prep, std::string_view name) {
  const int32_t code = functors::PlanAdjustment(prep, name);
  if (code == WEIR_OK) TilePixels(prep);
  return code;
}

struct AdjustHue {
  int32_t Prepare(Prep& prep) { return PrepareRgb(prep, "delta"); }
  template <class T>
  void Run(Env& env, View<const T> x, View<const float> delta, View<T> y) const {
    ForPixels(env, x, y, [turn = delta[0]](const Pixel<Compute<T>>& rgb) { return Turned(rgb, turn); });
  }
};

struct AdjustSaturation {
  int32_t Prepare(Prep& prep) { return PrepareRgb(prep, "scale"); }
  template <class T>
  void Run(Env& env, View<const T> x, View<const float> scale, View<T> y) const {
    ForPixels(env, x, y, [by = scale[0]](const Pixel<Compute<T>>& rgb) { return functors::Saturated(rgb, by); });
  }
};

/// Images [height, width, channels] after one another.
struct Contrast : functors::ContrastPlan {
  int32_t Plan(Prep& prep) {
    const int32_t code = ContrastPlan::Plan(prep);
    if (code == WEIR_OK && images > 0) prep.Scratch(static_cast<uint64_t>(channels) * sizeof(double));
    return code;
  }

  /// y[i] = limit((x[i] - mean) * factor + mean).
  template <class T, class R, class Limit>
  void Apply(const T* x, R* y, float factor, double* means, Limit limit) const {
    for (int64_t image = 0; image < images; ++image, x += pixels * channels, y += pixels * channels) {
      std::fill_n(means, channels, 0.0);
      for (int64_t i = 0; i < pixels; ++i) {
        for (int64_t c = 0; c < channels; ++c) means[c] += static_cast<double>(x[i * channels + c]);
      }
      for (int64_t c = 0; c < channels; ++c) means[c] /= static_cast<double>(pixels);
      for (int64_t i = 0; i < pixels; ++i) {
        WEIR_INDEPENDENT
        for (int64_t c = 0; c < channels; ++c) {
          const auto mean = static_cast<float>(means[c]);
          y[i * channels + c] = static_cast<R>(limit((static_cast<float>(x[i * channels + c]) - mean) * factor + mean));
        }
      }
    }
  }
};

struct AdjustContrastV2 : Contrast {
  int32_t Prepare(Prep& prep) {
    prep.MayAlias(0, 0);
    return Plan(prep);
  }
  template <class T>
  void Run(View<const T> x, View<const float> factor, View<T> y, sdk::Scratch<double> means) const {
    Apply(x.data(), y.data(), factor[0], means.data(), [](float value) { return value; });
  }
};

struct AdjustContrast : Contrast {
  int32_t Prepare(Prep& prep) {
    if (const int32_t code = ExpectImagesAnd(prep, 2, "min_value"); code != WEIR_OK) return code;
    if (const int32_t code = ExpectImagesAnd(prep, 3, "max_value"); code != WEIR_OK) return code;
    return Plan(prep);
  }
  template <class T>
  void Run(View<const T> x, View<const float> factor, View<const float> least, View<const float> most, View<float> y,
           sdk::Scratch<double> means) const {
    Apply(x.data(), y.data(), factor[0], means.data(),
          [low = least[0], high = most[0]](float value) { return std::max(std::min(value, high), low); });
  }
};

}  // namespace

void AddColours(sdk::KernelTable& k) {
  constexpr auto kImageTypes = sdk::Types<sdk::half, float>();
  constexpr auto kOldTypes = sdk::Types<uint8_t, int8_t, int16_t, int32_t, int64_t, float, double>();
  k.Add<RgbToHsv>("RGBToHSV", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 8);
  k.Add<HsvToRgb>("HSVToRGB", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 8);
  k.Add<AdjustContrast>("AdjustContrast", kOldTypes).Class(WEIR_CLASS_REDUCE, 4);
  k.Add<AdjustContrastV2>("AdjustContrastv2", kImageTypes).Class(WEIR_CLASS_REDUCE, 4);
  k.Add<AdjustHue>("AdjustHue", kImageTypes).Class(WEIR_CLASS_ELEMENTWISE, 12);
  k.Add<AdjustSaturation>("AdjustSaturation", kImageTypes).Class(WEIR_CLASS_ELEMENTWISE, 16);
}

}  // namespace weir::kernels_eigen
