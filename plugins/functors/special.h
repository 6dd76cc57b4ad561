// Special functions of <cmath>, and products with logarithms that are 0 where the factor is.
#ifndef WEIR_PLUGINS_FUNCTORS_SPECIAL_H_
#define WEIR_PLUGINS_FUNCTORS_SPECIAL_H_

#include <cmath>
#include <complex>

#include "plugins/functors/scalar.h"

namespace weir::functors {

struct Erf {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return std::erf(x);
  }
};
struct Erfc {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return std::erfc(x);
  }
};
/// std::lgamma writes the sign to a global variable on the host.
struct Lgamma {
  template <class T>
  WEIR_HD T operator()(T x) const {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
    return static_cast<T>(::lgamma(static_cast<double>(x)));
#else
    int sign = 0;
    return static_cast<T>(lgamma_r(static_cast<double>(x), &sign));
#endif
  }
};

struct MulNoNan {
  template <class T>
  WEIR_HD T operator()(T x, T y) const {
    return y == T(0) ? T(0) : x * y;
  }
};
struct Xlogy {
  template <class T>
  WEIR_HD T operator()(T x, T y) const {
    return x == T(0) ? T(0) : x * std::log(y);
  }
};
struct Xlog1py {
  template <class T>
  WEIR_HD T operator()(T x, T y) const {
    return x == T(0) ? T(0) : x * std::log1p(y);
  }
  template <class R>
  std::complex<R> operator()(std::complex<R> x, std::complex<R> y) const {
    return x == std::complex<R>() ? x : x * std::log(std::complex<R>(1) + y);
  }
};
struct Xdivy {
  template <class T>
  WEIR_HD T operator()(T x, T y) const {
    return x == T(0) ? T(0) : x / y;
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_SPECIAL_H_
