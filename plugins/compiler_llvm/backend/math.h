// Functions of real numbers as IR without branches or calls, for float and double. Every step is one IEEE operation, so
// the bits are those of any processor with fused multiply-add. Bounds are measured against correctly rounded results by
// tests/unit/compiler_llvm.
#ifndef WEIR_PLUGINS_COMPILER_LLVM_BACKEND_MATH_H_
#define WEIR_PLUGINS_COMPILER_LLVM_BACKEND_MATH_H_

#include "plugins/compiler_llvm/backend/ir.h"

namespace weir::compiler_llvm {

V Exp(Ir& ir, V x);       // within 2 ulp, subnormal results included
V Expm1(Ir& ir, V x);     // within 3 ulp
V Log(Ir& ir, V x);       // within 2 ulp
V Log1p(Ir& ir, V x);     // within 3 ulp
V Tanh(Ir& ir, V x);      // within 4 ulp
V Sigmoid(Ir& ir, V x);   // within 4 ulp
V Softplus(Ir& ir, V x);  // within 4 ulp
V Erf(Ir& ir, V x);       // of float, within 4 ulp

}  // namespace weir::compiler_llvm

#endif  // WEIR_PLUGINS_COMPILER_LLVM_BACKEND_MATH_H_
