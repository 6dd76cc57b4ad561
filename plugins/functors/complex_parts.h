// Complex numbers from their parts, and their parts, lengths and angles, element by element.
#ifndef WEIR_PLUGINS_FUNCTORS_COMPLEX_PARTS_H_
#define WEIR_PLUGINS_FUNCTORS_COMPLEX_PARTS_H_

#include <cmath>
#include <complex>

#include "plugins/functors/scalar.h"

namespace weir::functors {

struct JoinParts {
  template <class R>
  std::complex<R> operator()(R re, R im) const {
    return {re, im};
  }
};
struct RealPart {
  template <class R>
  R operator()(std::complex<R> x) const {
    return x.real();
  }
  template <class R>
  WEIR_HD R operator()(Complex<R> x) const {
    return x.re;
  }
};
struct ImaginaryPart {
  template <class R>
  R operator()(std::complex<R> x) const {
    return x.imag();
  }
  template <class R>
  WEIR_HD R operator()(Complex<R> x) const {
    return x.im;
  }
};
struct Length {
  template <class R>
  R operator()(std::complex<R> x) const {
    return std::hypot(x.real(), x.imag());
  }
  template <class R>
  WEIR_HD R operator()(Complex<R> x) const {
    return std::hypot(x.re, x.im);
  }
};
struct Angle {
  template <class R>
  R operator()(std::complex<R> x) const {
    return std::atan2(x.imag(), x.real());
  }
  template <class R>
  WEIR_HD R operator()(Complex<R> x) const {
    return std::atan2(x.im, x.re);
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_COMPLEX_PARTS_H_
