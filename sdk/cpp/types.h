// Element types of tensors as C++ types, their numbers, and lists of them.
#ifndef WEIR_SDK_CPP_TYPES_H_
#define WEIR_SDK_CPP_TYPES_H_

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "sdk/abi/types.h"

namespace weir::sdk {

namespace internal {

// Round to nearest, ties to even; overflow gives infinity.
inline uint16_t HalfFromFloat(float value) {
  uint32_t x = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((x >> 16) & 0x8000u);
  x &= 0x7fffffffu;
  if (x >= 0x47800000u) return sign | (x > 0x7f800000u ? 0x7e00u : 0x7c00u);
  if (x < 0x38800000u) {  // adding 0.5 leaves the subnormal's bits, rounded, in the mantissa
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(std::bit_cast<float>(x) + 0.5f) - 0x3f000000u);
  }
  x += 0xc8000fffu + ((x >> 13) & 1u);
  return sign | static_cast<uint16_t>(x >> 13);
}

inline float FloatFromHalf(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  uint32_t x = static_cast<uint32_t>(bits & 0x7fffu) << 13;
  const uint32_t exponent = x & 0x0f800000u;
  x += 0x38000000u;
  if (exponent == 0x0f800000u) x += 0x38000000u;
  if (exponent == 0) {
    x = std::bit_cast<uint32_t>(std::bit_cast<float>(x + 0x00800000u) - std::bit_cast<float>(0x38800000u));
  }
  return std::bit_cast<float>(x | sign);
}

// An 8-bit float with kExp exponent and kMan mantissa bits; kFinite has no infinity and one NaN per sign, all bits set.
template <int kExp, int kMan, bool kFinite>
uint8_t Float8FromFloat(float value) {
  constexpr int kBias = (1 << (kExp - 1)) - 1;
  constexpr int kSpecial = kFinite ? 0x7f : ((1 << kExp) - 1) << kMan;  // NaN, or infinity
  const int sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return static_cast<uint8_t>(sign | (kFinite ? 0x7f : kSpecial | (1 << (kMan - 1))));
  const float magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return static_cast<uint8_t>(sign | kSpecial);
  if (magnitude == 0) return static_cast<uint8_t>(sign);
  int exponent = std::ilogb(magnitude);
  if (exponent < 1 - kBias) exponent = 1 - kBias;
  if (exponent > kBias + 1) return static_cast<uint8_t>(sign | kSpecial);
  const int mantissa = static_cast<int>(std::nearbyint(std::ldexp(magnitude, kMan - exponent)));
  const int code = ((exponent + kBias) << kMan) + mantissa - (1 << kMan);
  return static_cast<uint8_t>(sign | (code >= kSpecial ? kSpecial : code));
}

template <int kExp, int kMan, bool kFinite>
float FloatFromFloat8(uint8_t bits) {
  constexpr int kBias = (1 << (kExp - 1)) - 1;
  const int code = bits & 0x7f, exponent = code >> kMan, mantissa = code & ((1 << kMan) - 1);
  float value;
  if (kFinite ? code == 0x7f : exponent == (1 << kExp) - 1) {
    value =
        (kFinite || mantissa != 0) ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(mantissa), 1 - kBias - kMan);
  } else {
    value = std::ldexp(static_cast<float>(mantissa + (1 << kMan)), exponent - kBias - kMan);
  }
  return (bits & 0x80) ? -value : value;
}

}  // namespace internal

/// IEEE half. Storage only: arithmetic is done in float.
struct half {
  uint16_t bits = 0;
  half() = default;
  explicit half(float value) : bits(internal::HalfFromFloat(value)) {}
  operator float() const { return internal::FloatFromHalf(bits); }
};

/// The upper half of a float, rounded to nearest, ties to even. Storage only.
struct bfloat16 {
  uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(float value) {
    const uint32_t x = std::bit_cast<uint32_t>(value);
    const bool nan = (x & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<uint16_t>(nan ? (x >> 16) | 0x40u : (x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

struct float8_e5m2 {
  uint8_t bits = 0;
  float8_e5m2() = default;
  explicit float8_e5m2(float value) : bits(internal::Float8FromFloat<5, 2, false>(value)) {}
  operator float() const { return internal::FloatFromFloat8<5, 2, false>(bits); }
};

struct float8_e4m3fn {
  uint8_t bits = 0;
  float8_e4m3fn() = default;
  explicit float8_e4m3fn(float value) : bits(internal::Float8FromFloat<4, 3, true>(value)) {}
  operator float() const { return internal::FloatFromFloat8<4, 3, true>(bits); }
};

/// A stored bool: any non-zero byte reads as true, so that foreign data has defined behaviour.
struct boolean {
  uint8_t bits = 0;
  boolean() = default;
  boolean(bool value) : bits(value) {}
  operator bool() const { return bits != 0; }
};

using complex64 = std::complex<float>;
using complex128 = std::complex<double>;

/// Sixteen opaque bytes, for kernels that only move elements.
struct alignas(8) bits128 {
  uint64_t low, high;
};

/// The string type in type lists; elements are accessible through Context only.
struct Text {};

/// The element type number of a C++ type.
template <class T>
inline constexpr uint32_t kDType = WEIR_INVALID;
template <>
inline constexpr uint32_t kDType<float> = WEIR_FLOAT32;
template <>
inline constexpr uint32_t kDType<double> = WEIR_FLOAT64;
template <>
inline constexpr uint32_t kDType<half> = WEIR_FLOAT16;
template <>
inline constexpr uint32_t kDType<bfloat16> = WEIR_BFLOAT16;
template <>
inline constexpr uint32_t kDType<float8_e5m2> = WEIR_FLOAT8_E5M2;
template <>
inline constexpr uint32_t kDType<float8_e4m3fn> = WEIR_FLOAT8_E4M3FN;
template <>
inline constexpr uint32_t kDType<complex64> = WEIR_COMPLEX64;
template <>
inline constexpr uint32_t kDType<complex128> = WEIR_COMPLEX128;
template <>
inline constexpr uint32_t kDType<int8_t> = WEIR_INT8;
template <>
inline constexpr uint32_t kDType<int16_t> = WEIR_INT16;
template <>
inline constexpr uint32_t kDType<int32_t> = WEIR_INT32;
template <>
inline constexpr uint32_t kDType<int64_t> = WEIR_INT64;
template <>
inline constexpr uint32_t kDType<uint8_t> = WEIR_UINT8;
template <>
inline constexpr uint32_t kDType<uint16_t> = WEIR_UINT16;
template <>
inline constexpr uint32_t kDType<uint32_t> = WEIR_UINT32;
template <>
inline constexpr uint32_t kDType<uint64_t> = WEIR_UINT64;
template <>
inline constexpr uint32_t kDType<boolean> = WEIR_BOOL;
template <>
inline constexpr uint32_t kDType<Text> = WEIR_STRING;

/// Bytes of one element; 0 for types without plain elements.
constexpr uint32_t SizeOf(uint32_t dtype) {
  switch (dtype) {
    case WEIR_COMPLEX128:
      return 16;
    case WEIR_FLOAT64:
    case WEIR_INT64:
    case WEIR_UINT64:
    case WEIR_COMPLEX64:
      return 8;
    case WEIR_FLOAT32:
    case WEIR_INT32:
    case WEIR_UINT32:
    case WEIR_QINT32:
      return 4;
    case WEIR_FLOAT16:
    case WEIR_BFLOAT16:
    case WEIR_INT16:
    case WEIR_UINT16:
    case WEIR_QINT16:
    case WEIR_QUINT16:
      return 2;
    case WEIR_INVALID:
    case WEIR_STRING:
    case WEIR_RESOURCE:
    case WEIR_VARIANT:
      return 0;
    default:
      return dtype <= WEIR_UINT2 ? 1 : 0;
  }
}

/// An element type stored as another one: As<WEIR_QINT8, int8_t>. Types that share storage share the kernel's code.
template <uint32_t kNumber, class T>
struct As {};

/// A list of element types: C++ types, or As.
template <class... Elements>
struct Types {};

template <class... A, class... B>
constexpr Types<A..., B...> operator+(Types<A...>, Types<B...>) {
  return {};
}

/// A list for a type attribute with a name other than "T"; an empty name means that the op has no such attribute.
template <class List>
struct AttrTypes {
  const char* attr;
};
template <class... E>
constexpr AttrTypes<Types<E...>> Attr(const char* attr, Types<E...>) {
  return {attr};
}

template <class E>
struct Element {
  static constexpr uint32_t kNumber = kDType<E>;
  using Type = E;
};
template <uint32_t kDTypeNumber, class T>
struct Element<As<kDTypeNumber, T>> {
  static constexpr uint32_t kNumber = kDTypeNumber;
  using Type = T;
};

/// The type used for arithmetic on T.
template <class T>
struct ComputeType {
  using Type = T;
};
template <>
struct ComputeType<half> {
  using Type = float;
};
template <>
struct ComputeType<bfloat16> {
  using Type = float;
};
template <class T>
using Compute = typename ComputeType<T>::Type;

/// Conversion of arrays between 16-bit floats and float; `from` and `to` do not overlap.
inline void Widen(const half* from, float* to, int64_t n) {
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
#endif
  for (; i < n; ++i) to[i] = from[i];
}
inline void Narrow(const float* from, half* to, int64_t n) {
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  }
#endif
  for (; i < n; ++i) to[i] = half(from[i]);
}
inline void Widen(const bfloat16* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i];
}
inline void Narrow(const float* from, bfloat16* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = bfloat16(from[i]);
}

}  // namespace weir::sdk

#endif  // WEIR_SDK_CPP_TYPES_H_
