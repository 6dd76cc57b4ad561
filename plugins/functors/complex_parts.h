// Complex numbers from their parts, and their parts, lengths and angles, element by element. On the host only.
#ifndef WEIR_PLUGINS_FUNCTORS_COMPLEX_PARTS_H_
#define WEIR_PLUGINS_FUNCTORS_COMPLEX_PARTS_H_

#include <cmath>
#include <complex>

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
};
struct ImaginaryPart {
  template <class R>
  R operator()(std::complex<R> x) const {
    return x.imag();
  }
};
struct Length {
  template <class R>
  R operator()(std::complex<R> x) const {
    return std::hypot(x.real(), x.imag());
  }
};
struct Angle {
  template <class R>
  R operator()(std::complex<R> x) const {
    return std::atan2(x.imag(), x.real());
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_COMPLEX_PARTS_H_
