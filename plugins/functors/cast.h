// Conversions between element types.
#ifndef WEIR_PLUGINS_FUNCTORS_CAST_H_
#define WEIR_PLUGINS_FUNCTORS_CAST_H_

#include <algorithm>
#include <complex>
#include <concepts>
#include <limits>
#include <type_traits>

#include "plugins/functors/scalar.h"

namespace weir::functors {

/// What elements are converted through: int64, uint64, double, or a complex number of doubles.
enum class Kind { kNone, kSigned, kUnsigned, kReal, kComplex };

/// Four-bit integers, one to a byte.
struct int4 {
  int8_t value;
};
struct uint4 {
  uint8_t value;
};

// Converts to the integer type D, truncating towards zero. These are TensorFlow's results on x86, as far as they do not
// depend on an element's position in its vectors. For a signed D of 32 or 64 bits, NaN and values out of range become
// the least value. For an unsigned D, negative values in range of the signed type of its width wrap, and NaN and other
// values out of range become the highest bit alone. Narrow integers saturate from int32.
template <class D, class W>
WEIR_HD D Cut(W x) {
  if constexpr (sizeof(D) < 4) {
    using Limits = std::numeric_limits<D>;
    return static_cast<D>(std::clamp<int32_t>(Cut<int32_t>(x), Limits::min(), Limits::max()));
  } else {
    using Signed = std::make_signed_t<D>;
    const W least = static_cast<W>(std::numeric_limits<Signed>::min());
    if constexpr (std::is_same_v<D, uint32_t>) {
      const W held = x >= least && x < -2 * least ? x : least;
      return static_cast<D>(static_cast<int64_t>(held));
    } else if constexpr (std::is_same_v<D, uint64_t>) {
      return x >= -least && x < -2 * least ? static_cast<D>(x) : static_cast<D>(Cut<Signed>(x));
    } else {
      return static_cast<D>(x >= least && x < -least ? x : least);
    }
  }
}

// Converts from a wide type to the element type D. Complex numbers are converted by their real part.
template <class D, class W>
WEIR_HD D Convert(W x) {
  if constexpr (std::is_same_v<W, sdk::complex128>) {
    if constexpr (std::is_same_v<D, sdk::complex64> || std::is_same_v<D, sdk::complex128>) {
      return D(x);
    } else {
      return Convert<D>(x.real());
    }
  } else if constexpr (std::is_same_v<D, sdk::boolean>) {
    return x != 0;
  } else if constexpr (std::is_same_v<D, int4>) {
    return {static_cast<int8_t>(static_cast<int8_t>(static_cast<uint8_t>(Convert<int64_t>(x)) << 4) >> 4)};
  } else if constexpr (std::is_same_v<D, uint4>) {
    return {static_cast<uint8_t>(Convert<int64_t>(x) & 15)};
  } else if constexpr (std::integral<D> && std::floating_point<W>) {
    return Cut<D>(x);
  } else if constexpr (std::is_same_v<D, sdk::complex64>) {
    return D(static_cast<float>(x), 0.0f);
  } else if constexpr (std::is_same_v<D, sdk::complex128>) {
    return D(static_cast<double>(x), 0.0);
  } else if constexpr (std::is_arithmetic_v<D>) {
    return static_cast<D>(x);
  } else {
    return D(static_cast<float>(x));
  }
}

WEIR_HD inline int64_t Value(int4 x) { return static_cast<int8_t>(static_cast<uint8_t>(x.value) << 4) >> 4; }
WEIR_HD inline int64_t Value(uint4 x) { return x.value & 15; }
inline int64_t Value(sdk::boolean x) { return x ? 1 : 0; }
template <class T>
WEIR_HD T Value(T x) {
  return x;
}

template <class S>
constexpr Kind KindOf() {
  if constexpr (std::is_same_v<S, sdk::complex64> || std::is_same_v<S, sdk::complex128>) {
    return Kind::kComplex;
  } else if constexpr (std::is_same_v<S, uint64_t>) {
    return Kind::kUnsigned;
  } else if constexpr (std::integral<S> || std::is_same_v<S, sdk::boolean> || std::is_same_v<S, int4> ||
                       std::is_same_v<S, uint4>) {
    return Kind::kSigned;
  } else {
    return Kind::kReal;
  }
}
template <Kind kind>
struct CastTypeOf {
  using Type = double;
};
template <>
struct CastTypeOf<Kind::kSigned> {
  using Type = int64_t;
};
template <>
struct CastTypeOf<Kind::kUnsigned> {
  using Type = uint64_t;
};
template <>
struct CastTypeOf<Kind::kComplex> {
  using Type = sdk::complex128;
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_CAST_H_
