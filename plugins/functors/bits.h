// Functions of the bits of integers.
#ifndef WEIR_PLUGINS_FUNCTORS_BITS_H_
#define WEIR_PLUGINS_FUNCTORS_BITS_H_

#include <bit>
#include <concepts>
#include <type_traits>

#include "plugins/functors/arithmetic.h"

namespace weir::functors {

/// A shift beyond the type's bits shifts by all but one; a negative one does not shift.
template <class T>
WEIR_HD int ShiftOf(T y) {
  constexpr int kMost = static_cast<int>(sizeof(T)) * 8 - 1;
  if constexpr (std::signed_integral<T>) {
    if (y < 0) return 0;
  }
  return y > T(kMost) ? kMost : static_cast<int>(y);
}

struct BitAnd {
  template <class T>
  WEIR_HD T operator()(T x, T y) const {
    return static_cast<T>(x & y);
  }
};
struct BitOr {
  template <class T>
  WEIR_HD T operator()(T x, T y) const {
    return static_cast<T>(x | y);
  }
};
struct BitXor {
  template <class T>
  WEIR_HD T operator()(T x, T y) const {
    return static_cast<T>(x ^ y);
  }
};
struct LeftShift {
  template <class T>
  WEIR_HD T operator()(T x, T y) const {
    return static_cast<T>(static_cast<Unsigned<T>>(x) << ShiftOf(y));
  }
};
struct RightShift {
  template <class T>
  WEIR_HD T operator()(T x, T y) const {
    return static_cast<T>(x >> ShiftOf(y));
  }
};
struct Invert {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return static_cast<T>(~x);
  }
};
struct PopulationCount {
  template <class T>
  WEIR_HD uint8_t operator()(T x) const {
    return static_cast<uint8_t>(std::popcount(static_cast<std::make_unsigned_t<T>>(x)));
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_BITS_H_
