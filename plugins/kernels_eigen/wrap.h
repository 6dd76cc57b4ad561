// Arithmetic of two numbers that kernels share. Integers wrap around, as TensorFlow's do, where C++ leaves overflow
// undefined.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_WRAP_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_WRAP_H_

#include <complex>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace weir::kernels_eigen {

/// Unsigned and not promoted to a signed type.
template <std::integral T>
using Unsigned = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
T Sum(T x, T y) {
  if constexpr (std::integral<T>) {
    return static_cast<T>(static_cast<Unsigned<T>>(x) + static_cast<Unsigned<T>>(y));
  } else {
    return x + y;
  }
}
template <class T>
T Difference(T x, T y) {
  if constexpr (std::integral<T>) {
    return static_cast<T>(static_cast<Unsigned<T>>(x) - static_cast<Unsigned<T>>(y));
  } else {
    return x - y;
  }
}
template <class T>
T Product(T x, T y) {
  if constexpr (std::integral<T>) {
    return static_cast<T>(static_cast<Unsigned<T>>(x) * static_cast<Unsigned<T>>(y));
  } else {
    return x * y;
  }
}
template <class T>
T Negative(T x) {
  if constexpr (std::integral<T>) {
    return static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(x));
  } else {
    return -x;
  }
}
/// Integers are divided towards zero. Kernels refuse divisors of 0 before; one that comes up on the way gives 0: a
/// scatter may divide a variable by itself.
template <class T>
T Quotient(T x, T y) {
  if constexpr (std::integral<T>) {
    if (y == 0) return T(0);
  }
  if constexpr (std::signed_integral<T>) {
    if (y == -1) return Negative(x);
  }
  return static_cast<T>(x / y);
}

/// NaN when either operand is.
template <class T>
T Larger(T x, T y) {
  return x > y || x != x ? x : y;
}
template <class T>
T Smaller(T x, T y) {
  return x < y || x != x ? x : y;
}

/// The complex conjugate; real numbers are their own.
template <class T>
T Conjugated(T x) {
  return x;
}
template <class R>
std::complex<R> Conjugated(std::complex<R> x) {
  return std::conj(x);
}

// The same as functions of elements.
struct Add {
  template <class T>
  T operator()(T x, T y) const {
    return Sum(x, y);
  }
};
struct Sub {
  template <class T>
  T operator()(T x, T y) const {
    return Difference(x, y);
  }
};
struct Mul {
  template <class T>
  T operator()(T x, T y) const {
    return Product(x, y);
  }
};

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_WRAP_H_
