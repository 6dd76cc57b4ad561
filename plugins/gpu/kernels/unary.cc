// Elementwise functions of one operand.
#include "plugins/functors/unary.h"

#include "plugins/functors/activations.h"
#include "plugins/functors/comparison.h"
#include "plugins/functors/special.h"
#include "plugins/gpu/kernels/elementwise.h"
#include "plugins/gpu/kernels/families.h"

namespace weir::gpu {

void AddUnaryFunctions(sdk::KernelTable& k) {
  namespace f = functors;
  constexpr unsigned kNumbers = kFloats | kIntegers | kComplexes, kReals = kFloats | kIntegers,
                     kArithmetic = kFloats | kComplexes;
  AddUnary<f::Neg, kNumbers>(k, "Neg", ~uint64_t{0});
  AddUnary<f::Abs, kReals>(k, "Abs", kFloatingBits | kSignedBits);
  AddUnary<f::Sign, kReals>(k, "Sign", kFloatingBits | kSignedBits);
#if !defined(WEIR_KERNEL_DTYPES_SHORT)
  AddUnary<f::Conj, kComplexes>(k, "Conj", kComplexBits);
#endif
  AddUnary<f::Square, kNumbers>(k, "Square", kNumberBits);
  for (const char* op : {"Reciprocal", "Inv"}) AddUnary<f::Reciprocal, kArithmetic>(k, op, kNumberBits, 4);
  AddUnary<f::Sqrt, kFloats>(k, "Sqrt", kFloatingBits, 4);
  AddUnary<f::Rsqrt, kFloats>(k, "Rsqrt", kFloatingBits, 8);
  AddUnary<f::Floor, kFloats>(k, "Floor", kFloatingBits);
  AddUnary<f::Ceil, kFloats>(k, "Ceil", kFloatingBits);
  AddUnary<f::Round, kFloats>(k, "Rint", kFloatingBits);
  AddUnary<f::Round, kReals>(k, "Round", kFloatingBits | kIndexBits);
  AddUnary<f::Exp, kFloats>(k, "Exp", kFloatingBits, 10);
  AddUnary<f::Expm1, kFloats>(k, "Expm1", kFloatingBits, 20);
  AddUnary<f::Log, kFloats>(k, "Log", kFloatingBits, 10);
  AddUnary<f::Log1p, kFloats>(k, "Log1p", kFloatingBits, 20);
  AddUnary<f::Tanh, kFloats>(k, "Tanh", kFloatingBits, 15);
  AddUnary<f::Sigmoid, kFloats>(k, "Sigmoid", kFloatingBits, 15);
  AddUnary<f::Sin, kFloats>(k, "Sin", kFloatingBits, 20);
  AddUnary<f::Cos, kFloats>(k, "Cos", kFloatingBits, 20);
  AddUnary<f::Tan, kFloats>(k, "Tan", kFloatingBits, 30);
  AddUnary<f::Asin, kFloats>(k, "Asin", kFloatingBits, 20);
  AddUnary<f::Acos, kFloats>(k, "Acos", kFloatingBits, 20);
  AddUnary<f::Atan, kFloats>(k, "Atan", kFloatingBits, 20);
  AddUnary<f::Sinh, kFloats>(k, "Sinh", kFloatingBits, 25);
  AddUnary<f::Cosh, kFloats>(k, "Cosh", kFloatingBits, 25);
  AddUnary<f::Asinh, kFloats>(k, "Asinh", kFloatingBits, 30);
  AddUnary<f::Acosh, kFloats>(k, "Acosh", kFloatingBits, 30);
  AddUnary<f::Atanh, kFloats>(k, "Atanh", kFloatingBits, 30);
  AddUnary<f::Erf, kFloats>(k, "Erf", kFloatingBits, 20);
  AddUnary<f::Erfc, kFloats>(k, "Erfc", kFloatingBits, 30);
  AddUnary<f::Lgamma, kFloats>(k, "Lgamma", kFloatingBits, 50);
  k.Add<Unary<f::LogicalNot, kBools>>("LogicalNot").Class(WEIR_CLASS_ELEMENTWISE);
  AddUnary<f::IsFinite, kFloats>(k, "IsFinite", kFloatingBits);
  AddUnary<f::IsNan, kFloats>(k, "IsNan", kFloatingBits);
  AddUnary<f::IsInf, kFloats>(k, "IsInf", kFloatingBits);
  AddUnary<f::Relu, kReals>(k, "Relu", kRealBits);
  AddUnary<f::Relu6, kReals>(k, "Relu6", kRealBits);
  AddUnary<f::Elu, kFloats>(k, "Elu", kFloatingBits, 20);
  AddUnary<f::Selu, kFloats>(k, "Selu", kFloatingBits, 20);
  AddUnary<f::Softplus, kFloats>(k, "Softplus", kFloatingBits, 30);
  AddUnary<f::Softsign, kFloats>(k, "Softsign", kFloatingBits, 4);
}

}  // namespace weir::gpu
