// Elementwise functions of two operands. All broadcast, except the gradient ops.
#include "plugins/functors/binary.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "sdk/cpp/elementwise.h"

namespace weir::kernels_eigen {

void AddMathBinary(sdk::KernelTable& k) {
  k.Binary<functors::Add>("Add", kNumbers);
  k.Binary<functors::Add>("AddV2", kNumbers);
  k.Binary<functors::Sub>("Sub", kNumbers);
  k.Binary<functors::Mul>("Mul", kNumbers);
  k.Binary<functors::Div>("Div", kNumbers);
  k.Binary<functors::Div>("RealDiv", kFloatingOrComplex);
  k.Binary<functors::DivNoNan>("DivNoNan", kFloatingOrComplex);
  k.Binary<functors::FloorDiv>("FloorDiv", kReal);
  k.Binary<functors::FloorMod>("FloorMod", kReal).Class(WEIR_CLASS_ELEMENTWISE, 10);
  k.Binary<functors::TruncateDiv>("TruncateDiv", kReal);
  k.Binary<functors::TruncateMod>("TruncateMod", kFloating + kIndex).Class(WEIR_CLASS_ELEMENTWISE, 10);
  k.Binary<functors::TruncateMod>("Mod", kFloating + kIndex).Class(WEIR_CLASS_ELEMENTWISE, 10);
  k.Binary<functors::Atan2>("Atan2", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 25);
  k.Binary<functors::NextAfter>("NextAfter", kFloat).Class(WEIR_CLASS_ELEMENTWISE, 4);
  k.Binary<functors::SquaredDifference>("SquaredDifference", kFloatingOrComplex + kIndex)
      .Class(WEIR_CLASS_ELEMENTWISE, 2);
  k.Binary<functors::Pow>("Pow", kFloatingOrComplex + kSigned).Class(WEIR_CLASS_ELEMENTWISE, 50);
  k.Binary<functors::Maximum>("Maximum", kReal);
  k.Binary<functors::Minimum>("Minimum", kReal);
  k.Pairwise<functors::TanhGrad>("TanhGrad", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 3);
  k.Pairwise<functors::SigmoidGrad>("SigmoidGrad", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 3);
  k.Pairwise<functors::ReciprocalGrad>("InvGrad", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 3);
  k.Pairwise<functors::ReciprocalGrad>("ReciprocalGrad", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 3);
  k.Pairwise<functors::SqrtGrad>("SqrtGrad", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 3);
  k.Pairwise<functors::RsqrtGrad>("RsqrtGrad", kFloatingOrComplex).Class(WEIR_CLASS_ELEMENTWISE, 4);
}

}  // namespace weir::kernels_eigen
