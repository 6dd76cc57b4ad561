// Elementwise functions of two operands. One that can fail takes `bool& fault` as its last parameter, sets it, and
// returns 0.
#ifndef WEIR_PLUGINS_FUNCTORS_BINARY_H_
#define WEIR_PLUGINS_FUNCTORS_BINARY_H_

#include <cmath>
#include <complex>

#include "plugins/functors/arithmetic.h"

namespace weir::functors {

inline constexpr const char* kDivisionByZero = "Integer division by zero";

struct Div {
  static constexpr const char* kFault = kDivisionByZero;
  template <std::integral T>
  WEIR_HD T operator()(T x, T y, bool& fault) const {
    if (y == 0) {
      fault = true;
      return 0;
    }
    return Quotient(x, y);
  }
  template <class T>
  WEIR_HD T operator()(T x, T y) const requires(!std::integral<T>) {
    return Quotient(x, y);
  }
};
struct DivNoNan {
  template <class T>
  WEIR_HD T operator()(T x, T y) const {
    return y == T(0) ? T(0) : x / y;
  }
};
struct FloorDiv {
  static constexpr const char* kFault = kDivisionByZero;
  template <std::integral T>
  WEIR_HD T operator()(T x, T y, bool& fault) const {
    if (y == 0) {
      fault = true;
      return 0;
    }
    if constexpr (std::signed_integral<T>) {
      if (y == -1) return Negative(x);
      return static_cast<T>(x / y - (x % y != 0 && (x < 0) != (y < 0) ? 1 : 0));
    } else {
      return static_cast<T>(x / y);
    }
  }
  template <std::floating_point T>
  WEIR_HD T operator()(T x, T y) const {
    return std::floor(x / y);
  }
};
/// The result has the sign of the divisor.
struct FloorMod {
  static constexpr const char* kFault = kDivisionByZero;
  template <std::integral T>
  WEIR_HD T operator()(T x, T y, bool& fault) const {
    if (y == 0) {
      fault = true;
      return 0;
    }
    if constexpr (std::signed_integral<T>) {
      if (y == -1) return 0;
      const T rest = static_cast<T>(x % y);
      return static_cast<T>(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
    } else {
      return static_cast<T>(x % y);
    }
  }
  template <std::floating_point T>
  WEIR_HD T operator()(T x, T y) const {
    const T rest = std::fmod(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  }
};
/// The result has the sign of the dividend.
struct TruncateMod {
  static constexpr const char* kFault = kDivisionByZero;
  template <std::integral T>
  WEIR_HD T operator()(T x, T y, bool& fault) const {
    if (y == 0) {
      fault = true;
      return 0;
    }
    return y == -1 ? T(0) : static_cast<T>(x % y);
  }
  template <std::floating_point T>
  WEIR_HD T operator()(T x, T y) const {
    return std::fmod(x, y);
  }
};
struct TruncateDiv {
  static constexpr const char* kFault = kDivisionByZero;
  template <std::integral T>
  WEIR_HD T operator()(T x, T y, bool& fault) const {
    return Div{}(x, y, fault);
  }
  template <std::floating_point T>
  WEIR_HD T operator()(T x, T y) const {
    return std::trunc(x / y);
  }
};
struct Atan2 {
  template <class T>
  WEIR_HD T operator()(T y, T x) const {
    return std::atan2(y, x);
  }
};
struct NextAfter {
  template <class T>
  WEIR_HD T operator()(T from, T to) const {
    return std::nextafter(from, to);
  }
};
struct SquaredDifference {
  template <class T>
  WEIR_HD T operator()(T x, T y) const {
    const T d = Difference(x, y);
    return Product(d, d);
  }
  template <class R>
  std::complex<R> operator()(std::complex<R> x, std::complex<R> y) const {
    return std::norm(x - y);
  }
};
struct Pow {
  static constexpr const char* kFault = "Integers to negative integer powers are not allowed";
  template <std::integral T>
  WEIR_HD T operator()(T x, T y, bool& fault) const {
    if (y < 0) {
      fault = true;
      return 0;
    }
    T power = 1;
    for (; y != 0; y = static_cast<T>(y >> 1)) {
      if (y & 1) power = Product(power, x);
      x = Product(x, x);
    }
    return power;
  }
  template <class T>
  WEIR_HD T operator()(T x, T y) const requires(!std::integral<T>) {
    return std::pow(x, y);
  }
};
struct Maximum {
  template <class T>
  WEIR_HD T operator()(T x, T y) const {
    return Larger(x, y);
  }
};
struct Minimum {
  template <class T>
  WEIR_HD T operator()(T x, T y) const {
    return Smaller(x, y);
  }
};
struct TanhGrad {
  template <class T>
  WEIR_HD T operator()(T y, T dy) const {
    return dy * (T(1) - y * y);
  }
};
struct SigmoidGrad {
  template <class T>
  WEIR_HD T operator()(T y, T dy) const {
    return dy * y * (T(1) - y);
  }
};
// A zero gradient gives zero, even if the function's derivative is infinite.
struct ReciprocalGrad {
  template <class T>
  WEIR_HD T operator()(T y, T dy) const {
    return dy == T(0) ? T(0) : -dy * Conjugated(y) * Conjugated(y);
  }
};
struct SqrtGrad {
  template <class T>
  WEIR_HD T operator()(T y, T dy) const {
    return dy == T(0) ? T(0) : T(0.5) * dy / Conjugated(y);
  }
};
struct RsqrtGrad {
  template <class T>
  WEIR_HD T operator()(T y, T dy) const {
    return dy == T(0) ? T(0) : T(-0.5) * (dy * Conjugated(y)) * (Conjugated(y) * Conjugated(y));
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_BINARY_H_
