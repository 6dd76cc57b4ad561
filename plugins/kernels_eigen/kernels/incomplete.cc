// Incomplete gamma and beta functions and their derivatives, in double precision.
#include <Eigen/Core>
#include <cmath>
#include <limits>
#include <unsupported/Eigen/SpecialFunctions>

#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "sdk/cpp/elementwise.h"

namespace weir::kernels_eigen {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

/// The limits at 0 and infinity, where the series do not end: NaN for operands without a value.
struct Igamma {
  static double Of(double a, double x) {
    if (!(a >= 0) || !(x >= 0)) return kNoNumber;
    if (x == 0) return 0;
    if (a == 0) return kNoNumber;
    if (std::isinf(a)) return std::isinf(x) ? kNoNumber : 0;
    if (std::isinf(x)) return 1;
    return Eigen::numext::igamma(a, x);
  }
  template <class T>
  T operator()(T a, T x) const {
    return static_cast<T>(Of(static_cast<double>(a), static_cast<double>(x)));
  }
};
struct Igammac {
  static double Of(double a, double x) {
    if (!(a > 0) || !(x >= 0)) return kNoNumber;
    if (x == 0) return 1;
    if (std::isinf(a)) return std::isinf(x) ? kNoNumber : 1;
    if (std::isinf(x)) return 0;
    return Eigen::numext::igammac(a, x);
  }
  template <class T>
  T operator()(T a, T x) const {
    return static_cast<T>(Of(static_cast<double>(a), static_cast<double>(x)));
  }
};
struct IgammaGradA {
  static double Of(double a, double x) {
    if (x == 0) return 0;
    if (!(a > 0) || !(x >= 0) || std::isinf(a) || std::isinf(x)) return kNoNumber;
    return Eigen::numext::igamma_der_a(a, x);
  }
  template <class T>
  T operator()(T a, T x) const {
    return static_cast<T>(Of(static_cast<double>(a), static_cast<double>(x)));
  }
};
struct RandomGammaGrad {
  static double Of(double alpha, double sample) {
    if (sample == 0) return 0;
    if (!(alpha > 0) || !(sample >= 0) || std::isinf(alpha) || std::isinf(sample)) return kNoNumber;
    return Eigen::numext::gamma_sample_der_alpha(alpha, sample);
  }
  template <class T>
  T operator()(T alpha, T sample) const {
    return static_cast<T>(Of(static_cast<double>(alpha), static_cast<double>(sample)));
  }
};

/// Operands of one shape, except that each may be a scalar.
struct Betainc {
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

  static double Of(double a, double b, double x) {
    if (!(a > 0) || !(b > 0) || !(x >= 0) || x > 1 || std::isinf(a) || std::isinf(b)) return kNoNumber;
    return x == 0 || x == 1 ? x : Eigen::numext::betainc(a, b, x);
  }
  template <class T>
  void Run(sdk::View<const T> a, sdk::View<const T> b, sdk::View<const T> x, sdk::View<T> z) const {
    const auto at = [](const sdk::View<const T>& v, bool scalar, int64_t i) {
      return static_cast<double>(v[scalar ? 0 : i]);
    };
    for (int64_t i = 0, n = z.size(); i < n; ++i) {
      z[i] = static_cast<T>(Of(at(a, fixed[0], i), at(b, fixed[1], i), at(x, fixed[2], i)));
    }
  }
};

}  // namespace

void AddIncomplete(sdk::KernelTable& k) {
  k.Binary<Igamma>("Igamma", kFloat).Class(WEIR_CLASS_ELEMENTWISE, 500);
  k.Binary<Igammac>("Igammac", kFloat).Class(WEIR_CLASS_ELEMENTWISE, 500);
  k.Binary<IgammaGradA>("IgammaGradA", kFloat).Class(WEIR_CLASS_ELEMENTWISE, 1000);
  k.Binary<RandomGammaGrad>("RandomGammaGrad", kFloat).Class(WEIR_CLASS_ELEMENTWISE, 1000);
  k.Add<Betainc>("Betainc", kFloat).Class(WEIR_CLASS_ELEMENTWISE, 500);
}

}  // namespace weir::kernels_eigen
