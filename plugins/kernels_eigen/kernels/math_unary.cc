// Elementwise functions of one operand.
#include <cmath>
#include <complex>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/vector_math.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/elementwise.h"

namespace weir::kernels_eigen {
namespace {

struct Neg {
  template <class T>
  T operator()(T x) const {
    return Negative(x);
  }
};
struct Abs {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::integral<T>) {
      return x < 0 ? Negative(x) : x;
    } else {
      return std::fabs(x);
    }
  }
};
struct Sign {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::integral<T>) {
      return static_cast<T>((x > 0) - (x < 0));
    } else {
      return x > 0 ? T(1) : x < 0 ? T(-1) : x;  // zeros and NaN are returned unchanged
    }
  }
  template <class R>
  std::complex<R> operator()(std::complex<R> x) const {
    const R length = std::abs(x);
    return length == 0 ? std::complex<R>() : x / length;
  }
};
struct Conj {
  template <class T>
  T operator()(T x) const {
    return Conjugated(x);
  }
};
struct Square {
  template <class T>
  T operator()(T x) const {
    return Product(x, x);
  }
};
struct Reciprocal {
  template <class T>
  T operator()(T x) const {
    return T(1) / x;
  }
};
struct Sqrt {
  template <class T>
  T operator()(T x) const {
    return std::sqrt(x);
  }
};
struct Rsqrt {
  template <class T>
  T operator()(T x) const {
    return T(1) / std::sqrt(x);
  }
};
struct Floor {
  template <class T>
  T operator()(T x) const {
    return std::floor(x);
  }
};
struct Ceil {
  template <class T>
  T operator()(T x) const {
    return std::ceil(x);
  }
};
/// Rounds to the nearest integer, halves to even.
struct Round {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::integral<T>) {
      return x;
    } else {
      return std::nearbyint(x);
    }
  }
};
struct Exp {
  template <class T>
  T operator()(T x) const {
    return std::exp(x);
  }
  template <class T>
  static void Array(const T* x, T* y, int64_t n) requires std::floating_point<T> {
    ExpArray(x, y, n);
  }
};
struct Expm1 {
  template <class T>
  T operator()(T x) const {
    return std::expm1(x);
  }
  template <class R>
  std::complex<R> operator()(std::complex<R> x) const {
    const R a = x.real(), b = x.imag(), half_sine = std::sin(b / 2);
    return {std::expm1(a) * std::cos(b) - 2 * half_sine * half_sine, std::exp(a) * std::sin(b)};
  }
  template <class T>
  static void Array(const T* x, T* y, int64_t n) requires std::floating_point<T> {
    Expm1Array(x, y, n);
  }
};
struct Log {
  template <class T>
  T operator()(T x) const {
    return std::log(x);
  }
  template <class T>
  static void Array(const T* x, T* y, int64_t n) requires std::floating_point<T> {
    LogArray(x, y, n);
  }
};
struct Log1p {
  template <class T>
  T operator()(T x) const {
    return std::log1p(x);
  }
  template <class R>
  std::complex<R> operator()(std::complex<R> x) const {
    const R a = x.real(), b = x.imag();
    return {R(0.5) * std::log1p(2 * a + a * a + b * b), std::atan2(b, 1 + a)};
  }
  template <class T>
  static void Array(const T* x, T* y, int64_t n) requires std::floating_point<T> {
    Log1pArray(x, y, n);
  }
};
struct Tanh {
  template <class T>
  T operator()(T x) const {
    return std::tanh(x);
  }
  template <class T>
  static void Array(const T* x, T* y, int64_t n) requires std::floating_point<T> {
    TanhArray(x, y, n);
  }
};
struct Sigmoid {
  template <class T>
  T operator()(T x) const {
    return T(1) / (T(1) + std::exp(-x));
  }
  template <class T>
  static void Array(const T* x, T* y, int64_t n) requires std::floating_point<T> {
    SigmoidArray(x, y, n);
  }
};
struct Sin {
  template <class T>
  T operator()(T x) const {
    return std::sin(x);
  }
};
struct Cos {
  template <class T>
  T operator()(T x) const {
    return std::cos(x);
  }
};
struct Tan {
  template <class T>
  T operator()(T x) const {
    return std::tan(x);
  }
};
struct Asin {
  template <class T>
  T operator()(T x) const {
    return std::asin(x);
  }
};
struct Acos {
  template <class T>
  T operator()(T x) const {
    return std::acos(x);
  }
};
struct Atan {
  template <class T>
  T operator()(T x) const {
    return std::atan(x);
  }
};
struct Sinh {
  template <class T>
  T operator()(T x) const {
    return std::sinh(x);
  }
};
struct Cosh {
  template <class T>
  T operator()(T x) const {
    return std::cosh(x);
  }
};
struct Asinh {
  template <class T>
  T operator()(T x) const {
    return std::asinh(x);
  }
};
struct Acosh {
  template <class T>
  T operator()(T x) const {
    return std::acosh(x);
  }
};
struct Atanh {
  template <class T>
  T operator()(T x) const {
    return std::atanh(x);
  }
};
struct LogicalNot {
  bool operator()(sdk::boolean x) const { return !x; }
};

}  // namespace

void AddMathUnary(sdk::KernelTable& k) {
  k.Unary<Neg>("Neg", kFloatingOrComplex + kSigned);
  k.Unary<Abs>("Abs", kFloating + kSigned);
  k.Unary<Sign>("Sign", kFloatingOrComplex + kSigned);
#if !defined(WEIR_KERNEL_DTYPES_SHORT)
  k.Unary<Conj>("Conj", kComplex);
#endif
  k.Unary<Square>("Square", kNumbers);
  k.Unary<Reciprocal>("Reciprocal", kFloatingOrComplex);
  k.Unary<Reciprocal>("Inv", kFloatingOrComplex);
  k.Unary<Sqrt>("Sqrt", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 4);
  k.Unary<Rsqrt>("Rsqrt", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 8);
  k.Unary<Floor>("Floor", kFloating);
  k.Unary<Ceil>("Ceil", kFloating);
  k.Unary<Round>("Rint", kFloating);
  k.Unary<Round>("Round", kFloating + kIndex);
  k.Unary<Exp>("Exp", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 10);
  k.Unary<Expm1>("Expm1", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Unary<Log>("Log", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 10);
  k.Unary<Log1p>("Log1p", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Unary<Tanh>("Tanh", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 15);
  k.Unary<Sigmoid>("Sigmoid", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 15);
  k.Unary<Sin>("Sin", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Unary<Cos>("Cos", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Unary<Tan>("Tan", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 30);
  k.Unary<Asin>("Asin", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Unary<Acos>("Acos", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Unary<Atan>("Atan", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Unary<Sinh>("Sinh", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 25);
  k.Unary<Cosh>("Cosh", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 25);
  k.Unary<Asinh>("Asinh", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 30);
  k.Unary<Acosh>("Acosh", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 30);
  k.Unary<Atanh>("Atanh", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 30);
  k.Unary<LogicalNot>("LogicalNot", sdk::Attr("", kBool));
}

}  // namespace weir::kernels_eigen
