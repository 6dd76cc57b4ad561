// Conversions between numbers and the integers that stand for them in a range.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_QUANTIZE_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_QUANTIZE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {

inline constexpr sdk::Types<sdk::As<WEIR_QUINT8, uint8_t>> kQuint8;
inline constexpr sdk::Types<sdk::As<WEIR_QINT32, int32_t>> kQint32;
/// Types of 8 bits.
inline constexpr sdk::Types<sdk::As<WEIR_QINT8, int8_t>, sdk::As<WEIR_QUINT8, uint8_t>> kQuantized8;
/// All quantised types, in every build.
inline constexpr auto kEveryQuantized =
    kQuantized8 + kQint32 + sdk::Types<sdk::As<WEIR_QINT16, int16_t>, sdk::As<WEIR_QUINT16, uint16_t>>();

/// The integers of T as numbers.
template <class T>
inline constexpr double kLeast = std::numeric_limits<T>::lowest();
template <class T>
inline constexpr double kMost = std::numeric_limits<T>::max();
/// How many integers T has.
template <class T>
inline constexpr double kIntegers = kMost<T> - kLeast<T> + 1;

/// `x` as an integer, without undefined behaviour: limited to those of T; NaN is 0.
template <class T>
T ToInteger(double x) {
  return x != x ? T(0) : static_cast<T>(std::clamp(x, kLeast<T>, kMost<T>));
}

/// The integer nearest to `x` in the range [low, high], which may lie outside T; 0 if the range is a point.
template <class T>
int64_t UnlimitedInteger(float x, float low, float high) {
  if (low == high) return 0;
  const double range = static_cast<double>(high - low) * (kIntegers<T> / (kIntegers<T> - 1));
  const double scale = kIntegers<T> / range;
  const double place = std::round(x * scale) - std::round(low * scale) + kLeast<T>;
  return ToInteger<int64_t>(place);
}

template <class T>
T NearestInteger(float x, float low, float high) {
  return ToInteger<T>(static_cast<double>(UnlimitedInteger<T>(x, low, high)));
}

/// The number that integer `x` stands for.
template <class T>
float NumberOf(T x, float low, float high) {
  if (low == high) return low;
  const double range = static_cast<double>(high - low) * (kIntegers<T> / (kIntegers<T> - 1));
  const double step = range / kIntegers<T>;
  const auto narrow = static_cast<float>(step);
  const double first = std::round(low / narrow) * narrow;
  return static_cast<float>(first + (static_cast<double>(x) - kLeast<T>)*step);
}

/// The distance between the numbers of neighbouring integers.
template <class T>
float StepOf(float low, float high) {
  return (high - low) / static_cast<float>(static_cast<int64_t>(kMost<T>) - static_cast<int64_t>(kLeast<T>));
}

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_QUANTIZE_H_
