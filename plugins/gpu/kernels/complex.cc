// Functions of complex numbers that are more than arithmetic, and their parts. Both types are computed in double
// precision by one instance each.
#include "plugins/functors/complex_functions.h"
#include "plugins/functors/complex_parts.h"
#include "plugins/functors/special.h"
#include "plugins/gpu/kernels/elementwise.h"
#include "plugins/gpu/kernels/families.h"

namespace weir::gpu {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;

template <class F>
struct ComplexUnary {
  void Prepare(sdk::Prep& prep) { prep.MayAlias(0, 0); }
  int32_t Run(Env& env, AnyInput x, AnyOutput y) const {
    return Launch(env, y.size(), UnaryWork<F, AnyComplex>{From(x), To(y), AnyComplex::Of(y)});
  }
};

/// The plan of `Binary`; one kernel, since the search of places costs little beside these functions.
template <class F>
struct ComplexBinary : Binary<F, kComplexes> {
  int32_t Run(Env& env, AnyInput x, AnyInput y, AnyOutput z) const {
    return Launch(env, z.size(),
                  BroadcastWork<F, AnyComplex>{From(x), From(y), To(z), AnyComplex::Of(z), this->places});
  }
};

template <class F>
struct PartWork {
  Ptr<const char> x;
  Ptr<char> y;
  AnyComplex whole;
  AnyFloat part;
  WEIR_GPU_FN void operator()(int64_t i) const { part.Store(y.get(), i, F{}(whole.Load(x.get(), i))); }
};
template <class F>
struct Part {
  int32_t Run(Env& env, AnyInput x, AnyOutput y) const {
    return Launch(env, y.size(), PartWork<F>{From(x), To(y), AnyComplex::Of(x), {y.dtype()}});
  }
};

struct JoinWork {
  Ptr<const char> re, im;
  Ptr<char> z;
  AnyFloat part;
  AnyComplex whole;
  Broadcasting<2> places;
  WEIR_GPU_FN void operator()(int64_t i) const {
    int64_t at[2];
    places.At(i, at);
    whole.Store(z.get(), i, Complex128(part.Load(re.get(), at[0]), part.Load(im.get(), at[1])));
  }
};
struct Join {
  Broadcasting<2> places;

  int32_t Prepare(sdk::Prep& prep) {
    if (places.Plan({prep.shape(0), prep.shape(1)}, prep.output(0).shape)) return WEIR_OK;
    return prep.error().InvalidArgument("Incompatible shapes: ", prep.shape(0), " vs. ", prep.shape(1));
  }
  int32_t Run(Env& env, AnyInput re, AnyInput im, AnyOutput z) const {
    return Launch(env, z.size(), JoinWork{From(re), From(im), To(z), {re.dtype()}, AnyComplex::Of(z), places});
  }
};

#if !defined(WEIR_KERNEL_DTYPES_SHORT)  // which has no complex types
template <class F>
void AddFunction(sdk::KernelTable& k, const char* op, double flops) {
  k.Add<ComplexUnary<F>>(op).Restrict("T", kComplexBits).Class(WEIR_CLASS_ELEMENTWISE, flops);
}
template <class F>
void AddPairFunction(sdk::KernelTable& k, const char* op, double flops) {
  k.Add<ComplexBinary<F>>(op).Restrict("T", kComplexBits).Class(WEIR_CLASS_ELEMENTWISE, flops);
}

void AddFunctions(sdk::KernelTable& k) {
  namespace f = functors;
  AddFunction<f::ComplexSign>(k, "Sign", 10);
  AddFunction<f::ComplexSqrt>(k, "Sqrt", 20);
  AddFunction<f::ComplexRsqrt>(k, "Rsqrt", 30);
  AddFunction<f::ComplexExp>(k, "Exp", 50);
  AddFunction<f::ComplexExpm1>(k, "Expm1", 80);
  AddFunction<f::ComplexLog>(k, "Log", 60);
  AddFunction<f::ComplexLog1p>(k, "Log1p", 60);
  AddFunction<f::ComplexTanh>(k, "Tanh", 80);
  AddFunction<f::ComplexSigmoid>(k, "Sigmoid", 60);
  AddFunction<f::ComplexSin>(k, "Sin", 80);
  AddFunction<f::ComplexCos>(k, "Cos", 80);
  AddFunction<f::ComplexTan>(k, "Tan", 80);
  AddFunction<f::ComplexAsin>(k, "Asin", 120);
  AddFunction<f::ComplexAcos>(k, "Acos", 120);
  AddFunction<f::ComplexAtan>(k, "Atan", 80);
  AddFunction<f::ComplexSinh>(k, "Sinh", 80);
  AddFunction<f::ComplexCosh>(k, "Cosh", 80);
  AddFunction<f::ComplexAsinh>(k, "Asinh", 120);
  AddFunction<f::ComplexAcosh>(k, "Acosh", 120);
  AddFunction<f::ComplexAtanh>(k, "Atanh", 80);
  AddPairFunction<f::ComplexPow>(k, "Pow", 150);
  AddPairFunction<f::ComplexSquaredDifference>(k, "SquaredDifference", 6);
  AddPairFunction<f::MulNoNan>(k, "MulNoNan", 8);
  AddPairFunction<f::ComplexXlogy>(k, "Xlogy", 80);
  AddPairFunction<f::ComplexXlog1py>(k, "Xlog1py", 80);
}

void AddParts(sdk::KernelTable& k, uint32_t whole, uint32_t part) {
  const auto add = [&](sdk::Kernel& kernel, double flops) {
    kernel.Restrict("T", {whole}).Restrict("Tout", {part}).Class(WEIR_CLASS_ELEMENTWISE, flops);
  };
  k.Add<Join>("Complex").Restrict("T", {part}).Restrict("Tout", {whole}).Class(WEIR_CLASS_ELEMENTWISE, 1);
  add(k.Add<Part<functors::RealPart>>("Real"), 1);
  add(k.Add<Part<functors::ImaginaryPart>>("Imag"), 1);
  add(k.Add<Part<functors::Length>>("ComplexAbs"), 10);
  add(k.Add<Part<functors::Angle>>("Angle"), 30);
}
#endif

}  // namespace

void AddComplex([[maybe_unused]] sdk::KernelTable& k) {
#if !defined(WEIR_KERNEL_DTYPES_SHORT)
  AddFunctions(k);
  AddParts(k, WEIR_COMPLEX64, WEIR_FLOAT32);
  AddParts(k, WEIR_COMPLEX128, WEIR_FLOAT64);
#endif
}

}  // namespace weir::gpu
