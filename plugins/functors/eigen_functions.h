// Special functions that Eigen computes on hosts and devices, in double precision.
#ifndef WEIR_PLUGINS_FUNCTORS_EIGEN_FUNCTIONS_H_
#define WEIR_PLUGINS_FUNCTORS_EIGEN_FUNCTIONS_H_

#include <Eigen/Core>
#include <cmath>
#include <limits>
#include <unsupported/Eigen/SpecialFunctions>

#include "plugins/functors/scalar.h"
#include "sdk/cpp/prepare.h"

namespace weir::functors {

/// The quantile of the standard normal distribution; NaN outside of [0, 1], where Eigen's is infinite.
WEIR_HD inline double Quantile(double p) {
  return p >= 0 && p <= 1 ? Eigen::numext::ndtri(p) : std::numeric_limits<double>::quiet_NaN();
}

/// Newton's method on erf for small |x|, the normal quantile of the nearer tail for others.
WEIR_HD inline double InverseErf(double x) {
  constexpr double kHalfRootPi = 0.8862269254527580;
  if (std::fabs(x) >= 0.5) return std::copysign(-Quantile(0.5 * (1 - std::fabs(x))) / std::sqrt(2.0), x);
  double y = kHalfRootPi * x;
  for (int step = 0; step < 5; ++step) y -= (std::erf(y) - x) * kHalfRootPi * std::exp(y * y);
  return y;
}

struct Erfinv {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return static_cast<T>(InverseErf(static_cast<double>(x)));
  }
};
struct Ndtri {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return static_cast<T>(Quantile(static_cast<double>(x)));
  }
};
struct Digamma {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return static_cast<T>(Eigen::numext::digamma(static_cast<double>(x)));
  }
};
struct Zeta {
  template <class T>
  WEIR_HD T operator()(T x, T q) const {
    if (std::isinf(static_cast<double>(q)) && q > T(0) && x > T(1)) return T(0);
    return static_cast<T>(Eigen::numext::zeta(static_cast<double>(x), static_cast<double>(q)));
  }
};
struct Polygamma {
  template <class T>
  WEIR_HD T operator()(T order, T x) const {
    return static_cast<T>(Eigen::numext::polygamma(static_cast<double>(order), static_cast<double>(x)));
  }
};

inline constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

/// The limits at 0 and infinity, where the series do not end: NaN for operands without a value.
struct Igamma {
  WEIR_HD static double Of(double a, double x) {
    if (!(a >= 0) || !(x >= 0)) return kNoNumber;
    if (x == 0) return 0;
    if (a == 0) return kNoNumber;
    if (std::isinf(a)) return std::isinf(x) ? kNoNumber : 0;
    if (std::isinf(x)) return 1;
    return Eigen::numext::igamma(a, x);
  }
  template <class T>
  WEIR_HD T operator()(T a, T x) const {
    return static_cast<T>(Of(static_cast<double>(a), static_cast<double>(x)));
  }
};
struct Igammac {
  WEIR_HD static double Of(double a, double x) {
    if (!(a > 0) || !(x >= 0)) return kNoNumber;
    if (x == 0) return 1;
    if (std::isinf(a)) return std::isinf(x) ? kNoNumber : 1;
    if (std::isinf(x)) return 0;
    return Eigen::numext::igammac(a, x);
  }
  template <class T>
  WEIR_HD T operator()(T a, T x) const {
    return static_cast<T>(Of(static_cast<double>(a), static_cast<double>(x)));
  }
};
struct IgammaGradA {
  WEIR_HD static double Of(double a, double x) {
    if (x == 0) return 0;
    if (!(a > 0) || !(x >= 0) || std::isinf(a) || std::isinf(x)) return kNoNumber;
    return Eigen::numext::igamma_der_a(a, x);
  }
  template <class T>
  WEIR_HD T operator()(T a, T x) const {
    return static_cast<T>(Of(static_cast<double>(a), static_cast<double>(x)));
  }
};
struct RandomGammaGrad {
  WEIR_HD static double Of(double alpha, double sample) {
    if (sample == 0) return 0;
    if (!(alpha > 0) || !(sample >= 0) || std::isinf(alpha) || std::isinf(sample)) return kNoNumber;
    return Eigen::numext::gamma_sample_der_alpha(alpha, sample);
  }
  template <class T>
  WEIR_HD T operator()(T alpha, T sample) const {
    return static_cast<T>(Of(static_cast<double>(alpha), static_cast<double>(sample)));
  }
};

/// Betainc: operands of one shape, except that each may be a scalar.
struct BetaincPlan {
  bool fixed[3] = {};

  int32_t Prepare(sdk::Prep& prep) {
    constexpr const char* kNames[] = {"a", "b", "x"};
    const weir_shape* common = nullptr;
    uint32_t from = 0;
    for (uint32_t i = 0; i < 3; ++i) {
      const weir_shape& shape = prep.shape(i);
      fixed[i] = shape.rank == 0;
      if (fixed[i]) continue;
      if (common != nullptr && !sdk::SameShape(*common, shape)) {
        return prep.error().InvalidArgument("Shapes of ", kNames[from], " and ", kNames[i],
                                            " are inconsistent: ", *common, " vs. ", shape);
      }
      if (common == nullptr) {
        common = &shape;
        from = i;
      }
    }
    return WEIR_OK;
  }

  WEIR_HD static double Of(double a, double b, double x) {
    if (!(a > 0) || !(b > 0) || !(x >= 0) || x > 1 || std::isinf(a) || std::isinf(b)) return kNoNumber;
    return x == 0 || x == 1 ? x : Eigen::numext::betainc(a, b, x);
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_EIGEN_FUNCTIONS_H_
