// Activation functions of one element and their gradients.
#ifndef WEIR_PLUGINS_FUNCTORS_ACTIVATIONS_H_
#define WEIR_PLUGINS_FUNCTORS_ACTIVATIONS_H_

#include <cmath>

#include "plugins/functors/arithmetic.h"

namespace weir::functors {

/// max(x, 0); NaN stays NaN.
struct Relu {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return x < T(0) ? T(0) : x;
  }
};
struct Relu6 {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return x < T(0) ? T(0) : x > T(6) ? T(6) : x;
  }
};
struct Elu {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return x < T(0) ? std::expm1(x) : x;
  }
};

// The constants of self-normalising nets (Klambauer and others, 2017), with TensorFlow's digits.
template <class T>
inline constexpr T kSeluScale = T(1.0507009873554804934193349852946);
template <class T>
inline constexpr T kSeluBelow = T(1.7580993408473768599402175208123);

struct Selu {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return x < T(0) ? kSeluBelow<T> * std::expm1(x) : kSeluScale<T> * x;
  }
};
/// log(1 + e^x) as max(x, 0) + log(1 + e^-|x|), which never overflows.
struct Softplus {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return Relu{}(x) + std::log1p(std::exp(-std::fabs(x)));
  }
};
struct Softsign {
  template <class T>
  WEIR_HD T operator()(T x) const {
    return x / (T(1) + std::fabs(x));
  }
};

struct ReluGrad {
  static constexpr bool kSameShape = true;
  template <class T>
  WEIR_HD T operator()(T dy, T x) const {
    return Product(dy, T(x > T(0)));  // NaN stays NaN; an infinity becomes NaN if the derivative is 0
  }
};
struct Relu6Grad {
  static constexpr bool kSameShape = true;
  template <class T>
  WEIR_HD T operator()(T dy, T x) const {
    return Product(dy, T(x > T(0) && x < T(6)));
  }
};
struct EluGrad {
  static constexpr bool kSameShape = true;
  template <class T>
  WEIR_HD T operator()(T dy, T y) const {
    return y < T(0) ? (y + T(1)) * dy : dy;
  }
};
struct SeluGrad {
  static constexpr bool kSameShape = true;
  template <class T>
  WEIR_HD T operator()(T dy, T y) const {
    return y < T(0) ? (y + kSeluBelow<T>)*dy : dy * kSeluScale<T>;
  }
};
struct SoftplusGrad {
  static constexpr bool kSameShape = true;
  template <class T>
  WEIR_HD T operator()(T dy, T x) const {
    return dy / (std::exp(-x) + T(1));
  }
};
struct SoftsignGrad {
  static constexpr bool kSameShape = true;
  template <class T>
  WEIR_HD T operator()(T dy, T x) const {
    const T slope = T(1) + std::fabs(x);
    return dy / (slope * slope);
  }
};

/// x where `of` is positive, else slope * x. LeakyRelu passes its input twice.
template <class C>
WEIR_HD C Leaky(C x, C of, C slope) {
  return of > C(0) ? x : slope * x;
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_ACTIVATIONS_H_
