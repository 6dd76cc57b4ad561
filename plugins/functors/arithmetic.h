// Arithmetic of two numbers, shared by kernels of all devices. Integers wrap around as in TensorFlow, without C++'s
// undefined overflow.
#ifndef WEIR_PLUGINS_FUNCTORS_ARITHMETIC_H_
#define WEIR_PLUGINS_FUNCTORS_ARITHMETIC_H_

#include <complex>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "plugins/functors/scalar.h"

namespace weir::functors {

/// An unsigned type that is not promoted to a signed type.
template <std::integral T>
using Unsigned = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
WEIR_HD T Sum(T x, T y) {
  if constexpr (std::integral<T>) {
    return static_cast<T>(static_cast<Unsigned<T>>(x) + static_cast<Unsigned<T>>(y));
  } else {
    return x + y;
  }
}
template <class T>
WEIR_HD T Difference(T x, T y) {
  if constexpr (std::integral<T>) {
    return static_cast<T>(static_cast<Unsigned<T>>(x) - static_cast<Unsigned<T>>(y));
  } else {
    return x - y;
  }
}
template <class T>
WEIR_HD T Product(T x, T y) {
  if constexpr (std::integral<T>) {
    return static_cast<T>(static_cast<Unsigned<T>>(x) * static_cast<Unsigned<T>>(y));
  } else {
    return x * y;
  }
}
template <class T>
WEIR_HD T Negative(T x) {
  if constexpr (std::integral<T>) {
    return static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(x));
  } else {
    return -x;
  }
}
/// Integers are divided towards zero. Kernels refuse divisors of 0 beforehand. A divisor that becomes 0 later gives 0:
/// a scatter may divide a variable by itself.
template <class T>
WEIR_HD T Quotient(T x, T y) {
  if constexpr (std::integral<T>) {
    if (y == 0) return T(0);
  }
  if constexpr (std::signed_integral<T>) {
    if (y == -1) return Negative(x);
  }
  return static_cast<T>(x / y);
}

/// NaN if either operand is NaN.
template <class T>
WEIR_HD T Larger(T x, T y) {
  return x > y || x != x ? x : y;
}
template <class T>
WEIR_HD T Smaller(T x, T y) {
  return x < y || x != x ? x : y;
}

/// The complex conjugate; a real number is returned unchanged.
template <class T>
WEIR_HD T Conjugated(T x) {
  return x;
}
template <class R>
std::complex<R> Conjugated(std::complex<R> x) {
  return std::conj(x);
}
template <class R>
WEIR_HD Complex<R> Conjugated(Complex<R> x) {
  return Complex<R>(x.re, -x.im);
}

// The same operations as functors.
struct Add {
  template <class T>
  WEIR_HD T operator()(T x, T y) const {
    return Sum(x, y);
  }
};
struct Sub {
  template <class T>
  WEIR_HD T operator()(T x, T y) const {
    return Difference(x, y);
  }
};
struct Mul {
  template <class T>
  WEIR_HD T operator()(T x, T y) const {
    return Product(x, y);
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_ARITHMETIC_H_
