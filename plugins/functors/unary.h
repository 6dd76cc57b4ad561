// Elementwise functions of one operand.
#ifndef WEIR_PLUGINS_FUNCTORS_UNARY_H_
#define WEIR_PLUGINS_FUNCTORS_UNARY_H_

#include <cmath>
#include <complex>

#include "plugins/functors/arithmetic.h"

namespace weir::functors {

struct Neg {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return Negative(x);
  }
};
struct Abs {
  template <class T>
  WEIR_HD T operator()(T x) const {
    if constexpr (std::integral<T>) {
      return x < 0 ? Negative(x) : x;
    } else {
      return std::fabs(x);
    }
  }
};
struct Sign {
  template <class T>
  WEIR_HD T operator()(T x) const {
    if constexpr (std::integral<T>) {
      return static_cast<T>((x > 0) - (x < 0));
    } else {
      return x > 0 ? T(1) : x < 0 ? T(-1) : x;  // zeros and NaN are returned unchanged
    }
  }
  template <class R>
  std::complex<R> operator()(std::complex<R> x) const {
    const R length = std::abs(x);
    return length == 0 ? std::complex<R>() : x / length;
  }
};
struct Conj {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return Conjugated(x);
  }
};
struct Square {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return Product(x, x);
  }
};
struct Reciprocal {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return T(1) / x;
  }
};
struct Sqrt {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return std::sqrt(x);
  }
};
struct Rsqrt {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return T(1) / std::sqrt(x);
  }
};
struct Floor {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return std::floor(x);
  }
};
struct Ceil {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return std::ceil(x);
  }
};
/// Rounds to the nearest integer, halves to even.
struct Round {
  template <class T>
  WEIR_HD T operator()(T x) const {
    if constexpr (std::integral<T>) {
      return x;
    } else {
      return std::nearbyint(x);
    }
  }
};
struct Exp {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return std::exp(x);
  }
};
struct Expm1 {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return std::expm1(x);
  }
  template <class R>
  std::complex<R> operator()(std::complex<R> x) const {
    const R a = x.real(), b = x.imag(), half_sine = std::sin(b / 2);
    return {std::expm1(a) * std::cos(b) - 2 * half_sine * half_sine, std::exp(a) * std::sin(b)};
  }
};
struct Log {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return std::log(x);
  }
};
struct Log1p {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return std::log1p(x);
  }
  template <class R>
  std::complex<R> operator()(std::complex<R> x) const {
    const R a = x.real(), b = x.imag();
    return {R(0.5) * std::log1p(2 * a + a * a + b * b), std::atan2(b, 1 + a)};
  }
};
struct Tanh {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return std::tanh(x);
  }
};
struct Sigmoid {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return T(1) / (T(1) + std::exp(-x));
  }
};
struct Sin {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return std::sin(x);
  }
};
struct Cos {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return std::cos(x);
  }
};
struct Tan {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return std::tan(x);
  }
};
struct Asin {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return std::asin(x);
  }
};
struct Acos {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return std::acos(x);
  }
};
struct Atan {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return std::atan(x);
  }
};
struct Sinh {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return std::sinh(x);
  }
};
struct Cosh {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return std::cosh(x);
  }
};
struct Asinh {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return std::asinh(x);
  }
};
struct Acosh {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return std::acosh(x);
  }
};
struct Atanh {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return std::atanh(x);
  }
};
struct LogicalNot {
  WEIR_HD bool operator()(bool x) const { return !x; }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_UNARY_H_
