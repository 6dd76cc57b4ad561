// Special functions, in double precision where Eigen's are.
#include <Eigen/Core>
#include <cmath>
#include <complex>
#include <unsupported/Eigen/SpecialFunctions>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "sdk/cpp/elementwise.h"

namespace weir::kernels_eigen {
namespace {

/// The quantile of the standard normal distribution; NaN outside of [0, 1], where Eigen's is infinite.
double Quantile(double p) { return p >= 0 && p <= 1 ? Eigen::numext::ndtri(p) : std::nan(""); }

/// Newton's method on erf for small |x|, the normal quantile of the nearer tail for others.
double InverseErf(double x) {
  constexpr double kHalfRootPi = 0.8862269254527580;
  if (std::fabs(x) >= 0.5) return std::copysign(-Quantile(0.5 * (1 - std::fabs(x))) / std::sqrt(2.0), x);
  double y = kHalfRootPi * x;
  for (int step = 0; step < 5; ++step) y -= (std::erf(y) - x) * kHalfRootPi * std::exp(y * y);
  return y;
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
    return static_cast<T>(Eigen::numext::digamma(static_cast<double>(x)));
  }
};
struct Zeta {
  template <class T>
  T operator()(T x, T q) const {
    return static_cast<T>(Eigen::numext::zeta(static_cast<double>(x), static_cast<double>(q)));
  }
};
struct Polygamma {
  template <class T>
  T operator()(T order, T x) const {
    return static_cast<T>(Eigen::numext::polygamma(static_cast<double>(order), static_cast<double>(x)));
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
