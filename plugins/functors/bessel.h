// Bessel functions of orders 0 and 1, and functions that are integrals, of double numbers.
#ifndef WEIR_PLUGINS_FUNCTORS_BESSEL_H_
#define WEIR_PLUGINS_FUNCTORS_BESSEL_H_

#include <cmath>
#include <limits>
#include <numbers>

#include "plugins/functors/scalar.h"

namespace weir::functors {

inline constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// The power series of I, whose terms are positive; x >= 0.
WEIR_HD inline double BesselISeries(int order, double x) {
  const double quarter = x / 2 * (x / 2);
  double term = order == 0 ? 1 : x / 2, sum = term;
  for (int k = 1; term > sum * 1e-18; ++k) {
    term *= quarter / (static_cast<double>(k) * (k + order));
    sum += term;
  }
  return sum;
}

/// Order 0 or 1; `scaled`: times e^-|x|. NaN at infinity unless scaled, as in TensorFlow.
WEIR_HD inline double BesselI(int order, double x, bool scaled) {
  constexpr double kFar = 30;  // the expansion has all digits from here on
  const double a = std::fabs(x), sign = order == 1 && x < 0 ? -1 : 1;
  if (std::isnan(x) || (std::isinf(x) && !scaled)) return kNotANumber;
  if (a <= kFar) return sign * BesselISeries(order, a) * (scaled ? std::exp(-a) : 1);
  double term = 1, sum = 1;
  for (int k = 1; k <= 30; ++k) {
    const double odd = 2 * k - 1;
    term *= (odd * odd - 4.0 * order) / (k * 8 * a);
    sum += term;
  }
  if (scaled) return sign * sum / std::sqrt(2 * std::numbers::pi * a);
  // In two factors, each of which fits where the product does.
  const double half = std::exp(a / 2);
  return sign * half * (sum / std::sqrt(2 * std::numbers::pi * a)) * half;
}

/// K for 0 < x <= 2, by the series around 0.
WEIR_HD inline double BesselKSeries(int order, double x) {
  const double quarter = x / 2 * (x / 2), logarithm = std::log(x / 2) + std::numbers::egamma;
  double term = 1, harmonic = 0, sum = 0;
  if (order == 0) {
    for (int k = 0; k < 20; ++k) {
      if (k > 0) {
        term *= quarter / (static_cast<double>(k) * k);
        harmonic += 1.0 / k;
      }
      sum += term * (harmonic - logarithm);
    }
    return sum;
  }
  for (int k = 0; k < 20; ++k) {
    if (k > 0) {
      term *= quarter / (static_cast<double>(k) * (k + 1));
      harmonic += 1.0 / k;
    }
    sum += term * (logarithm - harmonic - 0.5 / (k + 1));
  }
  return 1 / x + x / 2 * sum;
}

/// Order 0 or 1; `scaled`: times e^x. Infinite for x <= 0. Beyond 2 the integral of e^(-x cosh t) cosh(order t) over
/// t >= 0 by the trapezoidal rule, whose error falls exponentially with the step.
WEIR_HD inline double BesselK(int order, double x, bool scaled) {
  if (std::isnan(x)) return x;
  if (x <= 0) return kInfinite;
  if (std::isinf(x)) return 0;
  if (x <= 2) return BesselKSeries(order, x) * (scaled ? std::exp(x) : 1);
  const double step = x > 16 ? 0.5 / std::sqrt(x) : 0.125;
  double sum = 0.5;
  for (int k = 1; k < 64; ++k) {
    const double half = std::sinh(k * step / 2), rise = 2 * half * half;  // cosh t - 1
    const double part = std::exp(-x * rise) * (order == 0 ? 1 : 1 + rise);
    sum += part;
    if (part < 1e-18) break;
  }
  return sum * step * (scaled ? 1 : std::exp(-x));
}

/// J and Y of order 0 or 1 are NaN at infinity, as in TensorFlow; Y is infinite for x <= 0.
WEIR_HD inline double BesselJ(int order, double x) {
  if (std::isinf(x)) return kNotANumber;
  return order == 0 ? ::j0(x) : ::j1(x);
}
WEIR_HD inline double BesselY(int order, double x) {
  if (x <= 0) return -kInfinite;
  if (!std::isfinite(x)) return kNotANumber;
  return order == 0 ? ::y0(x) : ::y1(x);
}

/// e^-(x^2) times the integral of e^(t^2) from 0 to x: near 0 the power series, then a sum of shifted bells (Rybicki),
/// then the expansion for large arguments.
WEIR_HD inline double Dawson(double x) {
  const double a = std::fabs(x), square = x * x;
  if (a < 0.5) {
    double term = x, sum = x;
    for (int k = 1; k < 20; ++k) {
      term *= -2 * square / (2 * k + 1);
      sum += term;
    }
    return sum;
  }
  if (a > 12) {
    double term = 1 / (2 * x), sum = term;
    for (int k = 1; k < 12; ++k) {
      term *= (2 * k - 1) / (2 * square);
      sum += term;
    }
    return sum;
  }
  if (std::isnan(x)) return x;
  constexpr double kStep = 0.2;
  const auto middle = static_cast<int>(a / kStep + 0.5);
  double sum = 0;
  for (int n = middle - 45; n <= middle + 45; ++n) {
    const double distance = a - n * kStep;
    if (n % 2 != 0) sum += std::exp(-distance * distance) / n;
  }
  return std::copysign(sum / std::sqrt(std::numbers::pi), x);
}

/// The integral of e^t / t from -infinity to x, by its power series, from 40 on by its expansion; NaN below 0.
WEIR_HD inline double ExponentialIntegral(double x) {
  if (!(x >= 0)) return kNotANumber;
  if (x == 0) return -kInfinite;
  if (std::isinf(x)) return kNotANumber;
  double term = 1, sum = 0;
  if (x < 40) {
    for (int k = 1; k < 200; ++k) {
      term *= x / k;
      sum += term / k;
      if (term < sum * 1e-18) break;
    }
    return std::numbers::egamma + std::log(x) + sum;
  }
  sum = 1;
  for (int k = 1; k < 38; ++k) {
    term *= k / x;
    sum += term;
  }
  return std::exp(x) / x * sum;
}

/// The integrals of cos(pi / 2 t^2) and sin(pi / 2 t^2) from 0 to x.
struct FresnelPair {
  double cosine, sine;
};
/// Near 0 the power series, then the continued fraction of the complementary error function on a diagonal.
WEIR_HD inline FresnelPair Fresnel(double x) {
  const double a = std::fabs(x), sign = x < 0 ? -1 : 1, angle = std::numbers::pi / 2 * x * x;
  if (std::isnan(x)) return {x, x};
  if (a > 40000) return {sign * 0.5, sign * 0.5};
  if (a < 2.2) {
    double term = x;
    FresnelPair sum{0, 0};
    for (int k = 0; k < 40; ++k) {
      // term = x (pi / 2 x^2)^k / k!
      const double part = term / (2 * k + 1) * ((k / 2) % 2 == 0 ? 1 : -1);
      (k % 2 == 0 ? sum.cosine : sum.sine) += part;
      term *= angle / (k + 1);
    }
    return sum;
  }
  const double root = std::sqrt(std::numbers::pi);
  const Complex128 z(root / 2 * a, -root / 2 * a);
  Complex128 fraction = z;
  for (int k = 200; k > 0; --k) fraction = z + Complex128(k / 2.0) / fraction;
  const Complex128 turn(std::cos(angle), std::sin(angle));
  const Complex128 rest = turn / (Complex128(root) * fraction);
  const Complex128 sum = Complex128(0.5, 0.5) * (Complex128(1) - rest);
  return {sign * sum.re, sign * sum.im};
}

/// The dilogarithm for 0.5 <= x <= 1.5, by its series around 1.
WEIR_HD inline double DilogarithmNearOne(double x) {
  const double y = 1 - x;
  double power = y, sum = 0;
  for (int k = 1; k <= 60; ++k, power *= y) sum += power / (static_cast<double>(k) * k);
  return sum;
}
/// The same for 0 <= x <= 1.5, by reflection below 0.5.
WEIR_HD inline double DilogarithmInside(double x) {
  constexpr double kAtZero = std::numbers::pi * std::numbers::pi / 6;
  if (x == 0) return kAtZero;
  return x < 0.5 ? kAtZero - std::log(x) * std::log1p(-x) - DilogarithmNearOne(1 - x) : DilogarithmNearOne(x);
}
/// The integral of log(t) / (1 - t) from 1 to x; NaN below 0.
WEIR_HD inline double Dilogarithm(double x) {
  if (!(x >= 0) || std::isinf(x)) return kNotANumber;
  const double logarithm = x > 1.5 ? std::log(x) : 0;
  return x > 1.5 ? -logarithm * logarithm / 2 - DilogarithmInside(1 / x) : DilogarithmInside(x);
}

// The functions as functors, for elements of any floating type.
template <int kOrder, bool kScaled>
struct OfBesselI {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return static_cast<T>(BesselI(kOrder, static_cast<double>(x), kScaled));
  }
};
template <int kOrder, bool kScaled>
struct OfBesselK {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return static_cast<T>(BesselK(kOrder, static_cast<double>(x), kScaled));
  }
};
template <int kOrder>
struct OfBesselJ {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return static_cast<T>(BesselJ(kOrder, static_cast<double>(x)));
  }
};
template <int kOrder>
struct OfBesselY {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return static_cast<T>(BesselY(kOrder, static_cast<double>(x)));
  }
};
struct OfDawson {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return static_cast<T>(Dawson(static_cast<double>(x)));
  }
};
struct OfExponentialIntegral {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return static_cast<T>(ExponentialIntegral(static_cast<double>(x)));
  }
};
struct OfFresnelCosine {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return static_cast<T>(Fresnel(static_cast<double>(x)).cosine);
  }
};
struct OfFresnelSine {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return static_cast<T>(Fresnel(static_cast<double>(x)).sine);
  }
};
struct OfDilogarithm {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return static_cast<T>(Dilogarithm(static_cast<double>(x)));
  }
};

/// Calls add(functor, op) for each op of this file.
template <class Add>
void ForBessel(const Add& add) {
  add(OfBesselI<0, false>(), "BesselI0");
  add(OfBesselI<0, true>(), "BesselI0e");
  add(OfBesselI<1, false>(), "BesselI1");
  add(OfBesselI<1, true>(), "BesselI1e");
  add(OfBesselK<0, false>(), "BesselK0");
  add(OfBesselK<0, true>(), "BesselK0e");
  add(OfBesselK<1, false>(), "BesselK1");
  add(OfBesselK<1, true>(), "BesselK1e");
  add(OfBesselJ<0>(), "BesselJ0");
  add(OfBesselJ<1>(), "BesselJ1");
  add(OfBesselY<0>(), "BesselY0");
  add(OfBesselY<1>(), "BesselY1");
  add(OfDawson(), "Dawsn");
  add(OfExponentialIntegral(), "Expint");
  add(OfFresnelCosine(), "FresnelCos");
  add(OfFresnelSine(), "FresnelSin");
  add(OfDilogarithm(), "Spence");
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_BESSEL_H_
