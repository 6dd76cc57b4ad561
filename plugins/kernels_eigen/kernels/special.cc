// Special functions.
#include <cmath>
#include <complex>
#include <concepts>
#include <limits>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "sdk/cpp/elementwise.h"

namespace weir::kernels_eigen {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The quantile of the standard normal distribution for p in (0, 1/2]: a first guess with an error below 4.5e-4
/// (Abramowitz and Stegun, 26.2.23), then Halley steps on log(P(x)), which double the digits and more.
double LowerQuantile(double p) {
  const double t = std::sqrt(-2 * std::log(p));
  double x = (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
  for (int step = 0; step < 3; ++step) {
    const double below = 0.5 * std::erfc(-x / std::sqrt(2.0));
    const double density = std::exp(-0.5 * x * x) / std::sqrt(2 * kPi);
    if (density == 0) break;
    const double error = (below - p) / density;
    x -= error / (1 + 0.5 * x * error);
  }
  return x;
}

double Quantile(double p) {
  if (!(p >= 0 && p <= 1)) return kNan;
  if (p == 0 || p == 1) return p == 0 ? -kInfinity : kInfinity;
  return p <= 0.5 ? LowerQuantile(p) : -LowerQuantile(1 - p);
}

/// Newton's method on erf for small |x|, the quantile of the nearer tail for others.
double InverseErf(double x) {
  if (!(x >= -1 && x <= 1)) return kNan;
  if (x == 1 || x == -1) return x * kInfinity;
  if (std::fabs(x) < 0.5) {
    double y = 0.5 * std::sqrt(kPi) * x;
    for (int step = 0; step < 5; ++step) y -= (std::erf(y) - x) * 0.5 * std::sqrt(kPi) * std::exp(y * y);
    return y;
  }
  const double y = -LowerQuantile(0.5 * (1 - std::fabs(x))) / std::sqrt(2.0);
  return std::copysign(y, x);
}

/// The asymptotic series for x >= 10, which the recurrence psi(x) = psi(x + 1) - 1 / x reaches.
double Psi(double x) {
  if (x <= 0 && x == std::floor(x)) return kNan;
  if (x < 0) return Psi(1 - x) - kPi / std::tan(kPi * (x - std::floor(x)));
  double sum = 0;
  for (; x < 10; ++x) sum -= 1 / x;
  const double y = 1 / (x * x);
  const double tail =
      y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132 - y * 691.0 / 32760)))));
  return sum + std::log(x) - 0.5 / x - tail;
}

/// Hurwitz' zeta function by Euler's and Maclaurin's sum, from the twelfth term on.
double HurwitzZeta(double x, double q) {
  if (x != x || q != q) return kNan;
  if (x == 1) return kInfinity;
  if (x < 1) return kNan;
  if (q <= 0) {
    if (q == std::floor(q)) return kInfinity;
    if (x != std::floor(x)) return kNan;
  }
  double sum = 0;
  int terms = 0;
  for (; terms < 12 || q < 9; ++terms, ++q) {
    const double term = std::pow(q, -x);
    sum += term;
    if (q > 0 && std::fabs(term) < 1e-17 * std::fabs(sum)) return sum;
  }
  sum += std::pow(q, 1 - x) / (x - 1) + 0.5 * std::pow(q, -x);
  // Bernoulli numbers B(2k) over (2k)!.
  constexpr double kOver[] = {1.0 / 12,          -1.0 / 720,
                              1.0 / 30240,       -1.0 / 1209600,
                              1.0 / 47900160,    -691.0 / 1307674368000,
                              1.0 / 74724249600, -3617.0 / 10670622842880000};
  double factor = x * std::pow(q, -x - 1);
  for (int k = 0; k < 8; ++k) {
    const double term = kOver[k] * factor;
    sum += term;
    if (std::fabs(term) < 1e-17 * std::fabs(sum)) break;
    factor *= (x + 2 * k + 1) * (x + 2 * k + 2) / (q * q);
  }
  return sum;
}

struct Erf {
  template <class T>
  T operator()(T x) const {
    return std::erf(x);
  }
};
struct Erfc {
  template <class T>
  T operator()(T x) const {
    return std::erfc(x);
  }
};
struct Erfinv {
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(InverseErf(static_cast<double>(x)));
  }
};
struct Ndtri {
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(Quantile(static_cast<double>(x)));
  }
};
/// std::lgamma writes the sign to a global variable.
struct Lgamma {
  template <class T>
  T operator()(T x) const {
    int sign = 0;
    return static_cast<T>(lgamma_r(static_cast<double>(x), &sign));
  }
};
struct Digamma {
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(Psi(static_cast<double>(x)));
  }
};
struct Zeta {
  template <class T>
  T operator()(T x, T q) const {
    return static_cast<T>(HurwitzZeta(static_cast<double>(x), static_cast<double>(q)));
  }
};
struct Polygamma {
  template <class T>
  T operator()(T order, T x) const {
    const auto n = static_cast<double>(order);
    if (!(n >= 0) || n != std::floor(n)) return static_cast<T>(kNan);
    if (n == 0) return Digamma{}(x);
    int sign = 0;
    const double factorial = std::exp(lgamma_r(n + 1, &sign));
    const double value = factorial * HurwitzZeta(n + 1, static_cast<double>(x));
    return static_cast<T>(std::fmod(n, 2) == 1 ? value : -value);
  }
};

struct Xlogy {
  template <class T>
  T operator()(T x, T y) const {
    return x == T(0) ? T(0) : x * std::log(y);
  }
};
struct Xlog1py {
  template <class T>
  T operator()(T x, T y) const {
    return x == T(0) ? T(0) : x * std::log1p(y);
  }
  template <class R>
  std::complex<R> operator()(std::complex<R> x, std::complex<R> y) const {
    return x == std::complex<R>() ? x : x * std::log(std::complex<R>(1) + y);
  }
};
struct Xdivy {
  template <class T>
  T operator()(T x, T y) const {
    return x == T(0) ? T(0) : x / y;
  }
};

}  // namespace

void AddSpecial(sdk::KernelTable& k) {
  k.Unary<Erf>("Erf", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Unary<Erfc>("Erfc", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 30);
  k.Unary<Erfinv>("Erfinv", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 200);
  k.Unary<Ndtri>("Ndtri", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 200);
  k.Unary<Lgamma>("Lgamma", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 50);
  k.Unary<Digamma>("Digamma", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 100);
  k.Binary<Polygamma>("Polygamma", kFloat).Class(WEIR_CLASS_ELEMENTWISE, 500);
  k.Binary<Zeta>("Zeta", kFloat).Class(WEIR_CLASS_ELEMENTWISE, 500);
  k.Binary<Xlogy>("Xlogy", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 15);
  k.Binary<Xlog1py>("Xlog1py", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 25);
  k.Binary<Xdivy>("Xdivy", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 2);
}

}  // namespace weir::kernels_eigen
