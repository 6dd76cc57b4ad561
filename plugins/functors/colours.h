// Colours of pixels, in other spaces, turned and saturated; checks of the ops on them.
#ifndef WEIR_PLUGINS_FUNCTORS_COLOURS_H_
#define WEIR_PLUGINS_FUNCTORS_COLOURS_H_

#include <cmath>
#include <string_view>

#include "plugins/functors/operands.h"
#include "plugins/functors/scalar.h"

namespace weir::functors {

/// Three channels of one pixel: red, green and blue, or hue, saturation and value.
template <class C>
struct Pixel {
  C a, b, c;
};

template <class C>
WEIR_HD C Most(const Pixel<C>& x) {
  const C pair = x.b < x.c ? x.c : x.b;
  return x.a < pair ? pair : x.a;
}
template <class C>
WEIR_HD C Least(const Pixel<C>& x) {
  const C pair = x.c < x.b ? x.c : x.b;
  return pair < x.a ? pair : x.a;
}
template <class C>
WEIR_HD C Within01(C x) {
  return x < C(0) ? C(0) : C(1) < x ? C(1) : x;
}

template <class C>
WEIR_HD Pixel<C> HsvOf(const Pixel<C>& rgb) {
  const C r = rgb.a, g = rgb.b, b = rgb.c;
  const C value = Most(rgb), range = value - Least(rgb);
  const C saturation = value > C(0) ? range / value : C(0);
  const C sixth = C(1) / (C(6) * range);
  C hue = r == value ? sixth * (g - b) : g == value ? sixth * (b - r) + C(2) / C(6) : sixth * (r - g) + C(4) / C(6);
  hue = range > C(0) ? hue : C(0);
  return {hue < C(0) ? hue + C(1) : hue, saturation, value};
}

template <class C>
WEIR_HD Pixel<C> RgbOf(const Pixel<C>& hsv) {
  const C hue = hsv.a, saturation = hsv.b, value = hsv.c;
  const C turn = hue * C(6);
  const C r = Within01(std::fabs(turn - C(3)) - C(1));
  const C g = Within01(C(2) - std::fabs(turn - C(2)));
  const C b = Within01(C(2) - std::fabs(turn - C(4)));
  const C white = C(1) - saturation;
  return {(white + saturation * r) * value, (white + saturation * g) * value, (white + saturation * b) * value};
}

/// The hue turned by `delta`; the largest and the smallest channel stay what they are.
template <class C>
WEIR_HD Pixel<C> Turned(const Pixel<C>& rgb, C delta) {
  const C r = rgb.a, g = rgb.b, b = rgb.c;
  const C most = Most(rgb), least = Least(rgb), range = most - least;
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

/// The saturation times `by`.
template <class C>
WEIR_HD Pixel<C> Saturated(const Pixel<C>& rgb, C by) {
  Pixel<C> hsv = HsvOf(rgb);
  const C scaled = hsv.b * by, above = C(0) < scaled ? scaled : C(0);
  hsv.b = above < C(1) ? above : C(1);
  return RgbOf(hsv);
}

/// RGBToHSV and HSVToRGB.
struct ColourSpacePlan {
  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape& shape = prep.shape(0);
    if (shape.rank < 1) return prep.error().InvalidArgument("input must be at least 1D", shape);
    const int64_t channels = shape.dims[shape.rank - 1];
    if (channels != 3) {
      return prep.error().Fail(WEIR_FAILED_PRECONDITION, "input must have 3 channels but input only has ", channels,
                               " channels.");
    }
    prep.MayAlias(0, 0);
    return WEIR_OK;
  }
};

/// InvalidArgument unless input 0 is images and input i a scalar.
inline int32_t ExpectImagesAnd(const sdk::Prep& prep, uint32_t i, std::string_view name) {
  if (prep.shape(0).rank < 3) {
    return prep.error().InvalidArgument("input must be at least 3-D, got shape", prep.shape(0));
  }
  if (prep.shape(i).rank == 0) return WEIR_OK;
  return prep.error().InvalidArgument(name, " must be scalar: ", prep.shape(i));
}

/// AdjustHue and AdjustSaturation; `name`: input 1, a scalar.
inline int32_t PlanAdjustment(sdk::Prep& prep, std::string_view name) {
  if (const int32_t code = ExpectImagesAnd(prep, 1, name); code != WEIR_OK) return code;
  const weir_shape& shape = prep.shape(0);
  const int64_t channels = shape.dims[shape.rank - 1];
  if (channels != 3) {
    return prep.error().InvalidArgument("input must have 3 channels but instead has ", channels, " channels.");
  }
  prep.MayAlias(0, 0);
  return WEIR_OK;
}

/// Images [height, width, channels] after one another.
struct ContrastPlan {
  int64_t images = 0, pixels = 0, channels = 0;

  int32_t Plan(sdk::Prep& prep) {
    if (const int32_t code = ExpectImagesAnd(prep, 1, "contrast_factor"); code != WEIR_OK) return code;
    if (prep.size(0) == 0) return WEIR_OK;
    const weir_shape& shape = prep.shape(0);
    channels = shape.dims[shape.rank - 1];
    pixels = shape.dims[shape.rank - 2] * shape.dims[shape.rank - 3];
    images = SizeOf(shape, 0, shape.rank - 3);
    return WEIR_OK;
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_COLOURS_H_
