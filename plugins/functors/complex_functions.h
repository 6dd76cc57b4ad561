// Elementary functions of complex numbers that run on devices, with the branches and signs of zeros of C's functions.
// The formulas are those of W. Kahan, "Branch cuts for complex elementary functions" (1987).
#ifndef WEIR_PLUGINS_FUNCTORS_COMPLEX_FUNCTIONS_H_
#define WEIR_PLUGINS_FUNCTORS_COMPLEX_FUNCTIONS_H_

#include <cmath>

#include "plugins/functors/scalar.h"

namespace weir::functors {

/// i z and -i z.
template <class R>
WEIR_HD Complex<R> TimesI(Complex<R> z) {
  return Complex<R>(-z.im, z.re);
}
template <class R>
WEIR_HD Complex<R> OverI(Complex<R> z) {
  return Complex<R>(z.im, -z.re);
}

struct ComplexExp {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> z) const {
    const R length = std::exp(z.re);
    if (z.im == 0) return Complex<R>(length, z.im);
    if (!std::isfinite(z.im) && length == 0) return Complex<R>();
    if (!std::isfinite(z.im) && std::isinf(length)) return Complex<R>(length, std::sin(z.im));
    return Complex<R>(length * std::cos(z.im), length * std::sin(z.im));
  }
};

/// Near the unit circle by log1p, since the logarithm of a rounded length loses its digits there.
struct ComplexLog {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> z) const {
    const R a = std::fabs(z.re), b = std::fabs(z.im), larger = a > b ? a : b, smaller = a > b ? b : a;
    const R angle = std::atan2(z.im, z.re);
    if (larger > R(0.5) && larger < R(1.5)) {
      return Complex<R>(R(0.5) * std::log1p((larger - 1) * (larger + 1) + smaller * smaller), angle);
    }
    return Complex<R>(std::log(std::hypot(a, b)), angle);
  }
};

struct ComplexSqrt {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> z) const {
    if (z.re == 0 && z.im == 0) return Complex<R>(0, z.im);
    if (std::isinf(z.im)) return Complex<R>(std::fabs(z.im), z.im);
    // Scaled, so that the sum below does not overflow.
    const R a = std::fabs(z.re) / 8, b = std::fabs(z.im) / 8;
    const R side = 2 * std::sqrt(a + std::hypot(a, b)), other = std::fabs(z.im) / (2 * side);
    return z.re >= 0 ? Complex<R>(side, std::copysign(other, z.im)) : Complex<R>(other, std::copysign(side, z.im));
  }
};

struct ComplexRsqrt {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> z) const {
    return Complex<R>(1) / ComplexSqrt()(z);
  }
};

struct ComplexExpm1 {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> z) const {
    const R half_sine = std::sin(z.im / 2);
    return Complex<R>(std::expm1(z.re) * std::cos(z.im) - 2 * half_sine * half_sine, std::exp(z.re) * std::sin(z.im));
  }
};

struct ComplexLog1p {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> z) const {
    const R a = z.re, b = z.im;
    return Complex<R>(R(0.5) * std::log1p(2 * a + a * a + b * b), std::atan2(b, 1 + a));
  }
};

struct ComplexSinh {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> z) const {
    if (z.im == 0) return Complex<R>(std::sinh(z.re), z.im);  // the other factor may be infinite
    return Complex<R>(std::sinh(z.re) * std::cos(z.im), std::cosh(z.re) * std::sin(z.im));
  }
};

struct ComplexCosh {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> z) const {
    if (z.im == 0) return Complex<R>(std::cosh(z.re), std::copysign(R(1), z.re) * z.im);
    return Complex<R>(std::cosh(z.re) * std::cos(z.im), std::sinh(z.re) * std::sin(z.im));
  }
};

struct ComplexTanh {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> z) const {
    constexpr R kLarge = 20;  // tanh is 1 in double precision from here on
    if (std::fabs(z.re) > kLarge) {
      const R wave = std::isfinite(z.im) ? 4 * std::sin(z.im) * std::cos(z.im) : std::copysign(R(1), z.im);
      const R rest = wave * std::exp(-2 * std::fabs(z.re));
      return Complex<R>(std::copysign(R(1), z.re), rest);
    }
    const R t = std::tan(z.im), wide = 1 + t * t, s = std::sinh(z.re), c = std::sqrt(1 + s * s);
    const R divisor = 1 + wide * s * s;
    return Complex<R>(wide * c * s / divisor, t / divisor);
  }
};

struct ComplexSigmoid {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> z) const {
    return Complex<R>(1) / (Complex<R>(1) + ComplexExp()(-z));
  }
};

struct ComplexSin {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> z) const {
    return OverI(ComplexSinh()(TimesI(z)));
  }
};
struct ComplexCos {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> z) const {
    return ComplexCosh()(TimesI(z));
  }
};
struct ComplexTan {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> z) const {
    return OverI(ComplexTanh()(TimesI(z)));
  }
};

struct ComplexAsin {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> z) const {
    const Complex<R> below = ComplexSqrt()(Complex<R>(1 - z.re, -z.im));
    const Complex<R> above = ComplexSqrt()(Complex<R>(1 + z.re, z.im));
    return Complex<R>(std::atan2(z.re, below.re * above.re - below.im * above.im),
                      std::asinh(below.re * above.im - below.im * above.re));
  }
};

struct ComplexAcos {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> z) const {
    const Complex<R> below = ComplexSqrt()(Complex<R>(1 - z.re, -z.im));
    const Complex<R> above = ComplexSqrt()(Complex<R>(1 + z.re, z.im));
    return Complex<R>(2 * std::atan2(below.re, above.re), std::asinh(above.re * below.im - above.im * below.re));
  }
};

struct ComplexAcosh {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> z) const {
    const Complex<R> below = ComplexSqrt()(Complex<R>(z.re - 1, z.im));
    const Complex<R> above = ComplexSqrt()(Complex<R>(z.re + 1, z.im));
    return Complex<R>(std::asinh(below.re * above.re + below.im * above.im), 2 * std::atan2(below.im, above.re));
  }
};

struct ComplexAtanh {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> z) const {
    const R a = std::fabs(z.re), b = z.im;
    constexpr R kHuge = 1e100;
    if (a > kHuge || std::fabs(b) > kHuge) {  // squares would overflow: 1 / z, and a right angle
      const R quarter = std::copysign(R(1.5707963267948966), b);
      const bool infinite = std::isinf(a) || std::isinf(b);
      return Complex<R>(infinite ? std::copysign(R(0), z.re) : (Complex<R>(1) / z).re, quarter);
    }
    const R near = (1 - a) * (1 - a) + b * b;
    // The square of a tiny distance from 1 vanishes.
    const R size = near == 0 && b != 0 ? R(0.5) * std::log(2 / std::fabs(b)) : R(0.25) * std::log1p(4 * a / near);
    return Complex<R>(std::copysign(size, z.re), R(0.5) * std::atan2(2 * b, (1 - a) * (1 + a) - b * b));
  }
};

struct ComplexAsinh {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> z) const {
    return OverI(ComplexAsin()(TimesI(z)));
  }
};
struct ComplexAtan {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> z) const {
    return OverI(ComplexAtanh()(TimesI(z)));
  }
};

/// z on the unit circle; 0 stays.
struct ComplexSign {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> z) const {
    const R length = std::hypot(z.re, z.im);
    return length == 0 ? Complex<R>() : Complex<R>(z.re / length, z.im / length);
  }
};

/// x^y = e^(y log x), so that 0^0 is NaN, as in TensorFlow.
struct ComplexPow {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> x, Complex<R> y) const {
    return ComplexExp()(y * ComplexLog()(x));
  }
};

/// |x - y|^2
struct ComplexSquaredDifference {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> x, Complex<R> y) const {
    const Complex<R> d = x - y;
    return Complex<R>(d.re * d.re + d.im * d.im);
  }
};

// Products with a logarithm or a quotient, and 0 where x is.
struct ComplexXlogy {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> x, Complex<R> y) const {
    return x.re == 0 && x.im == 0 ? Complex<R>() : x * ComplexLog()(y);
  }
};
struct ComplexXlog1py {
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> x, Complex<R> y) const {
    return x.re == 0 && x.im == 0 ? Complex<R>() : x * ComplexLog1p()(y);
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_COMPLEX_FUNCTIONS_H_
