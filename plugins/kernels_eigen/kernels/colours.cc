// Colour spaces, and adjustments of contrast, hue and saturation.
#include <algorithm>
#include <cmath>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Compute;
using sdk::Env;
using sdk::Prep;
using sdk::View;

/// Three channels of one pixel: red, green and blue, or hue, saturation and value.
template <class C>
struct Pixel {
  C a, b, c;
};

template <class C>
Pixel<C> HsvOf(const Pixel<C>& rgb) {
  const auto [r, g, b] = rgb;
  const C value = std::max(r, std::max(g, b)), range = value - std::min(r, std::min(g, b));
  const C saturation = value > C(0) ? range / value : C(0);
  const C sixth = C(1) / (C(6) * range);
  C hue = r == value ? sixth * (g - b) : g == value ? sixth * (b - r) + C(2) / C(6) : sixth * (r - g) + C(4) / C(6);
  hue = range > C(0) ? hue : C(0);
  return {hue < C(0) ? hue + C(1) : hue, saturation, value};
}

template <class C>
Pixel<C> RgbOf(const Pixel<C>& hsv) {
  const auto [hue, saturation, value] = hsv;
  const C turn = hue * C(6);
  const auto part = [](C x) { return std::clamp(x, C(0), C(1)); };
  const C r = part(std::fabs(turn - C(3)) - C(1));
  const C g = part(C(2) - std::fabs(turn - C(2)));
  const C b = part(C(2) - std::fabs(turn - C(4)));
  const C white = C(1) - saturation;
  return {(white + saturation * r) * value, (white + saturation * g) * value, (white + saturation * b) * value};
}

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
  prep.MayAlias(0, 0);
  prep.Tiles(static_cast<uint64_t>(prep.size(0) / (3 * kPixelGrain)));
}

struct ColourSpace {
  int32_t Prepare(Prep& prep) {
    const weir_shape& shape = prep.shape(0);
    if (shape.rank < 1) return prep.error().InvalidArgument("input must be at least 1D", shape);
    const int64_t channels = shape.dims[shape.rank - 1];
    if (channels != 3) {
      return prep.error().Fail(WEIR_FAILED_PRECONDITION, "input must have 3 channels but input only has ", channels,
                               " channels.");
    }
    TilePixels(prep);
    return WEIR_OK;
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

/// InvalidArgument unless input 0 is images and input i a scalar.
int32_t ExpectImagesAnd(const Prep& prep, uint32_t i, std::string_view name) {
  if (prep.shape(0).rank < 3) {
    return prep.error().InvalidArgument("input must be at least 3-D, got shape", prep.shape(0));
  }
  if (prep.shape(i).rank == 0) return WEIR_OK;
  return prep.error().InvalidArgument(name, " must be scalar: ", prep.shape(i));
}

int32_t PrepareRgb(Prep& prep, std::string_view name) {
  if (const int32_t code = ExpectImagesAnd(prep, 1, name); code != WEIR_OK) return code;
  const weir_shape& shape = prep.shape(0);
  const int64_t channels = shape.dims[shape.rank - 1];
  if (channels != 3) {
    return prep.error().InvalidArgument("input must have 3 channels but instead has ", channels, " channels.");
  }
  TilePixels(prep);
  return WEIR_OK;
}

/// The hue turned by `delta`; the largest and the smallest channel stay what they are.
template <class C>
Pixel<C> Turned(const Pixel<C>& rgb, C delta) {
  const auto [r, g, b] = rgb;
  const C most = std::max(r, std::max(g, b)), least = std::min(r, std::min(g, b)), range = most - least;
  if (!(range > C(0))) return rgb;
  C hue = r == most ? (g - b) / range : g == most ? (b - r) / range + C(2) : (r - g) / range + C(4);
  hue = std::fmod(hue + C(6) * delta, C(6));
  if (hue < C(0)) hue += C(6);
  if (!(hue < C(6))) hue = C(0);
  const int sector = static_cast<int>(hue);
  const C rest = hue - static_cast<C>(sector);
  const C middle = least + (sector % 2 == 0 ? rest : C(1) - rest) * range;
  switch (sector) {
    case 0:
      return {most, middle, least};
    case 1:
      return {middle, most, least};
    case 2:
      return {least, most, middle};
    case 3:
      return {least, middle, most};
    case 4:
      return {middle, least, most};
    default:
      return {most, least, middle};
  }
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
    ForPixels(env, x, y, [by = scale[0]](const Pixel<Compute<T>>& rgb) {
      Pixel<Compute<T>> hsv = HsvOf(rgb);
      hsv.b = std::min(1.0f, std::max(0.0f, hsv.b * by));
      return RgbOf(hsv);
    });
  }
};

/// Images [height, width, channels] after one another.
struct Contrast {
  int64_t images = 0, pixels = 0, channels = 0;

  int32_t Plan(Prep& prep) {
    if (const int32_t code = ExpectImagesAnd(prep, 1, "contrast_factor"); code != WEIR_OK) return code;
    if (prep.size(0) == 0) return WEIR_OK;
    const weir_shape& shape = prep.shape(0);
    channels = shape.dims[shape.rank - 1];
    pixels = shape.dims[shape.rank - 2] * shape.dims[shape.rank - 3];
    images = SizeOf(shape, 0, shape.rank - 3);
    prep.Scratch(static_cast<uint64_t>(channels) * sizeof(double));
    return WEIR_OK;
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
