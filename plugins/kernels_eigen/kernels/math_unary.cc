// Elementwise functions of one operand.
#include "plugins/functors/complex_parts.h"
#include "plugins/functors/unary.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/vector_math.h"
#include "sdk/cpp/elementwise.h"

namespace weir::kernels_eigen {
namespace {

// The functors whose arrays are computed by vector packets.
struct ExpOf : functors::Exp {
  template <class T>
  static void Array(const T* x, T* y, int64_t n) requires std::floating_point<T> {
    ExpArray(x, y, n);
  }
};
struct Expm1Of : functors::Expm1 {
  template <class T>
  static void Array(const T* x, T* y, int64_t n) requires std::floating_point<T> {
    Expm1Array(x, y, n);
  }
};
struct LogOf : functors::Log {
  template <class T>
  static void Array(const T* x, T* y, int64_t n) requires std::floating_point<T> {
    LogArray(x, y, n);
  }
};
struct Log1pOf : functors::Log1p {
  template <class T>
  static void Array(const T* x, T* y, int64_t n) requires std::floating_point<T> {
    Log1pArray(x, y, n);
  }
};
struct TanhOf : functors::Tanh {
  template <class T>
  static void Array(const T* x, T* y, int64_t n) requires std::floating_point<T> {
    TanhArray(x, y, n);
  }
};
struct SigmoidOf : functors::Sigmoid {
  template <class T>
  static void Array(const T* x, T* y, int64_t n) requires std::floating_point<T> {
    SigmoidArray(x, y, n);
  }
};

#if !defined(WEIR_KERNEL_DTYPES_SHORT)
/// Kernels of one type of complex numbers, by number and element, and that of their parts. Both types are attributes.
template <class C>
void AddParts(sdk::KernelTable& k, uint32_t whole, uint32_t part) {
  constexpr sdk::Types<C> kType;
  k.Binary<functors::JoinParts>("Complex", sdk::Types<typename C::value_type>()).Restrict("Tout", {whole});
  k.Unary<functors::RealPart>("Real", kType).Restrict("Tout", {part});
  k.Unary<functors::ImaginaryPart>("Imag", kType).Restrict("Tout", {part});
  k.Unary<functors::Length>("ComplexAbs", kType).Restrict("Tout", {part}).Class(WEIR_CLASS_ELEMENTWISE, 10);
  k.Unary<functors::Angle>("Angle", kType).Restrict("Tout", {part}).Class(WEIR_CLASS_ELEMENTWISE, 30);
}
#endif

}  // namespace

void AddMathUnary(sdk::KernelTable& k) {
  k.Unary<functors::Neg>("Neg", kFloatingOrComplex + kSigned);
  k.Unary<functors::Abs>("Abs", kFloating + kSigned);
  k.Unary<functors::Sign>("Sign", kFloatingOrComplex + kSigned);
#if !defined(WEIR_KERNEL_DTYPES_SHORT)
  k.Unary<functors::Conj>("Conj", kComplex);
  AddParts<sdk::complex64>(k, WEIR_COMPLEX64, WEIR_FLOAT32);
  AddParts<sdk::complex128>(k, WEIR_COMPLEX128, WEIR_FLOAT64);
#endif
  k.Unary<functors::Square>("Square", kNumbers);
  k.Unary<functors::Reciprocal>("Reciprocal", kFloatingOrComplex);
  k.Unary<functors::Reciprocal>("Inv", kFloatingOrComplex);
  k.Unary<functors::Sqrt>("Sqrt", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 4);
  k.Unary<functors::Rsqrt>("Rsqrt", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 8);
  k.Unary<functors::Floor>("Floor", kFloating);
  k.Unary<functors::Ceil>("Ceil", kFloating);
  k.Unary<functors::Round>("Rint", kFloating);
  k.Unary<functors::Round>("Round", kFloating + kIndex);
  k.Unary<ExpOf>("Exp", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 10);
  k.Unary<Expm1Of>("Expm1", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Unary<LogOf>("Log", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 10);
  k.Unary<Log1pOf>("Log1p", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Unary<TanhOf>("Tanh", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 15);
  k.Unary<SigmoidOf>("Sigmoid", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 15);
  k.Unary<functors::Sin>("Sin", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Unary<functors::Cos>("Cos", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Unary<functors::Tan>("Tan", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 30);
  k.Unary<functors::Asin>("Asin", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Unary<functors::Acos>("Acos", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Unary<functors::Atan>("Atan", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Unary<functors::Sinh>("Sinh", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 25);
  k.Unary<functors::Cosh>("Cosh", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 25);
  k.Unary<functors::Asinh>("Asinh", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 30);
  k.Unary<functors::Acosh>("Acosh", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 30);
  k.Unary<functors::Atanh>("Atanh", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 30);
  k.Unary<functors::LogicalNot>("LogicalNot", sdk::Attr("", kBool));
}

}  // namespace weir::kernels_eigen
