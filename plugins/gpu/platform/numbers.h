// Conversions of weir's storage types for code of the device: the same bits as sdk/cpp/types.h gives on the host.
#ifndef WEIR_PLUGINS_GPU_PLATFORM_NUMBERS_H_
#define WEIR_PLUGINS_GPU_PLATFORM_NUMBERS_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "plugins/gpu/platform/platform.h"
#include "sdk/cpp/types.h"

namespace weir::gpu {

template <class To, class From>
WEIR_GPU_BOTH To Bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

/// The type used for arithmetic on T: float for half and bfloat16, bool for boolean, else T.
template <class T>
struct WideType {
  using Type = T;
};
template <>
struct WideType<sdk::half> {
  using Type = float;
};
template <>
struct WideType<sdk::bfloat16> {
  using Type = float;
};
template <>
struct WideType<sdk::boolean> {
  using Type = bool;
};
template <class T>
using WideOf = typename WideType<T>::Type;

/// A stored value as its wide type.
template <class T>
WEIR_GPU_BOTH WideOf<T> Wide(T value) {
  if constexpr (std::is_same_v<T, sdk::half>) {
    const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16, rest = value.bits & 0x7fffu;
    if (rest >= 0x7c00u) return Bits<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    if (rest >= 0x400u) return Bits<float>(sign | ((rest << 13) + 0x38000000u));
    const float magnitude = static_cast<float>(rest) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  } else if constexpr (std::is_same_v<T, sdk::bfloat16>) {
    return Bits<float>(static_cast<uint32_t>(value.bits) << 16);
  } else if constexpr (std::is_same_v<T, sdk::boolean>) {
    return value.bits != 0;
  } else {
    return value;
  }
}

/// The stored form of a wide value: rounded to nearest, ties to even.
template <class T>
WEIR_GPU_BOTH T Narrow(WideOf<T> value) {
  if constexpr (std::is_same_v<T, sdk::half>) {
    T stored;
    uint32_t x = Bits<uint32_t>(value);
    const uint32_t sign = (x >> 16) & 0x8000u;
    x &= 0x7fffffffu;
    if (x >= 0x47800000u) {
      x = x > 0x7f800000u ? 0x7e00u : 0x7c00u;
    } else if (x < 0x38800000u) {  // subnormal: the addition rounds at the place of the last bit
      x = Bits<uint32_t>(Bits<float>(x) + 0.5f) - 0x3f000000u;
    } else {
      x = (x + 0xc8000fffu + ((x >> 13) & 1u)) >> 13;
    }
    stored.bits = static_cast<uint16_t>(sign | x);
    return stored;
  } else if constexpr (std::is_same_v<T, sdk::bfloat16>) {
    T stored;
    const uint32_t x = Bits<uint32_t>(value);
    const bool nan = (x & 0x7fffffffu) > 0x7f800000u;
    stored.bits = static_cast<uint16_t>(nan ? (x >> 16) | 0x40u : (x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
    return stored;
  } else if constexpr (std::is_same_v<T, sdk::boolean>) {
    T stored;
    stored.bits = value ? 1 : 0;
    return stored;
  } else {
    return value;
  }
}

}  // namespace weir::gpu

#endif  // WEIR_PLUGINS_GPU_PLATFORM_NUMBERS_H_
