// Kernels of Bessel functions and integrals, computed in double precision.
#include "plugins/kernels_eigen/kernels/bessel.h"

#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/function_families.h"
#include "sdk/cpp/elementwise.h"

namespace weir::kernels_eigen {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Beyond this I overflows and K vanishes, and few terms of the expansion for large arguments suffice.
constexpr double kLarge = 700;

/// The expansion of I (with alternating signs) or K for large x, without the exponential factor and the root.
double AtInfinity(int order, double x, double sign) {
  double term = 1, sum = 1;
  for (int k = 1; k <= 8; ++k) {
    const double odd = 2 * k - 1;
    term *= sign * (4.0 * order * order - odd * odd) / (k * 8 * x);
    sum += term;
  }
  return sum;
}

}  // namespace

double BesselI(int order, double x, bool scaled) {
  const double a = std::fabs(x), sign = order == 1 && x < 0 ? -1 : 1;
  if (std::isnan(x) || (std::isinf(x) && !scaled)) return kNaN;
  if (a <= kLarge) return sign * std::cyl_bessel_i(order, a) * (scaled ? std::exp(-a) : 1);
  if (!scaled) return sign * std::exp(a - std::log(2 * std::numbers::pi * a) / 2) * AtInfinity(order, a, -1);
  return sign * AtInfinity(order, a, -1) / std::sqrt(2 * std::numbers::pi * a);
}

double BesselK(int order, double x, bool scaled) {
  if (std::isnan(x)) return x;
  if (x <= 0) return kInfinity;
  if (order == 1 && x < 1e-150) return 1 / x;
  if (x <= kLarge) return std::cyl_bessel_k(order, x) * (scaled ? std::exp(x) : 1);
  const double tail = std::sqrt(std::numbers::pi / (2 * x)) * AtInfinity(order, x, 1);
  return scaled ? tail : tail * std::exp(-x);
}

double BesselJ(int order, double x) {
  if (std::isinf(x)) return kNaN;
  return order == 0 ? ::j0(x) : ::j1(x);
}

double BesselY(int order, double x) {
  if (x <= 0) return -kInfinity;
  if (!std::isfinite(x)) return kNaN;
  return order == 0 ? ::y0(x) : ::y1(x);
}

/// Near 0 the power series, then a sum of shifted bells (Rybicki), then the expansion for large arguments.
double Dawson(double x) {
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
  constexpr double kStep = 0.2;
  const auto middle = static_cast<int>(std::lround(a / kStep));
  double sum = 0;
  for (int n = middle - 45; n <= middle + 45; ++n) {
    const double distance = a - n * kStep;
    if (n % 2 != 0) sum += std::exp(-distance * distance) / n;
  }
  return std::copysign(sum / std::sqrt(std::numbers::pi), x);
}

double ExponentialIntegral(double x) {
  if (!(x >= 0)) return kNaN;
  if (x == 0) return -kInfinity;
  return std::isinf(x) ? kNaN : std::expint(x);
}

/// Near 0 the power series, then the continued fraction of the complementary error function on a diagonal.
FresnelPair Fresnel(double x) {
  using Complex = std::complex<double>;
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
  const Complex z = Complex(1, -1) * (std::sqrt(std::numbers::pi) / 2 * a);
  Complex fraction = z;
  for (int k = 200; k > 0; --k) fraction = z + (k / 2.0) / fraction;
  const Complex turn(std::cos(angle), std::sin(angle));
  const Complex rest = turn / (std::sqrt(std::numbers::pi) * fraction);
  const Complex sum = Complex(0.5, 0.5) * (Complex(1) - rest);
  return {sign * sum.real(), sign * sum.imag()};
}

double Dilogarithm(double x) {
  constexpr double kAtZero = std::numbers::pi * std::numbers::pi / 6;
  if (!(x >= 0)) return kNaN;
  if (x == 0) return kAtZero;
  if (std::isinf(x)) return kNaN;
  const double logarithm = std::log(x);
  if (x > 1.5) return -logarithm * logarithm / 2 - Dilogarithm(1 / x);
  if (x < 0.5) return kAtZero - logarithm * std::log1p(-x) - Dilogarithm(1 - x);
  const double y = 1 - x;
  double power = y, sum = 0;
  for (int k = 1; k <= 60; ++k, power *= y) sum += power / (static_cast<double>(k) * k);
  return sum;
}

namespace {

/// A function of double for elements of any floating type.
template <double (*kFunction)(double)>
struct InDouble {
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(kFunction(static_cast<double>(x)));
  }
};

template <int kOrder, bool kScaled>
double OfI(double x) {
  return BesselI(kOrder, x, kScaled);
}
template <int kOrder, bool kScaled>
double OfK(double x) {
  return BesselK(kOrder, x, kScaled);
}
template <int kOrder>
double OfJ(double x) {
  return BesselJ(kOrder, x);
}
template <int kOrder>
double OfY(double x) {
  return BesselY(kOrder, x);
}
double OfFresnelCosine(double x) { return Fresnel(x).cosine; }
double OfFresnelSine(double x) { return Fresnel(x).sine; }

template <double (*kFunction)(double)>
void AddFunction(sdk::KernelTable& k, const char* op) {
  k.Unary<InDouble<kFunction>>(op, kFloating).Class(WEIR_CLASS_ELEMENTWISE, 300);
}

}  // namespace

void AddBessel(sdk::KernelTable& k) {
  AddFunction<OfI<0, false>>(k, "BesselI0");
  AddFunction<OfI<0, true>>(k, "BesselI0e");
  AddFunction<OfI<1, false>>(k, "BesselI1");
  AddFunction<OfI<1, true>>(k, "BesselI1e");
  AddFunction<OfK<0, false>>(k, "BesselK0");
  AddFunction<OfK<0, true>>(k, "BesselK0e");
  AddFunction<OfK<1, false>>(k, "BesselK1");
  AddFunction<OfK<1, true>>(k, "BesselK1e");
  AddFunction<OfJ<0>>(k, "BesselJ0");
  AddFunction<OfJ<1>>(k, "BesselJ1");
  AddFunction<OfY<0>>(k, "BesselY0");
  AddFunction<OfY<1>>(k, "BesselY1");
  AddFunction<Dawson>(k, "Dawsn");
  AddFunction<ExponentialIntegral>(k, "Expint");
  AddFunction<OfFresnelCosine>(k, "FresnelCos");
  AddFunction<OfFresnelSine>(k, "FresnelSin");
  AddFunction<Dilogarithm>(k, "Spence");
}

}  // namespace weir::kernels_eigen
