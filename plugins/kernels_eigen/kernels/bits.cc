// Functions of the bits of integers.
#include "plugins/functors/bits.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "sdk/cpp/elementwise.h"

namespace weir::kernels_eigen {

void AddBits(sdk::KernelTable& k) {
  k.Binary<functors::BitAnd>("BitwiseAnd", kInts);
  k.Binary<functors::BitOr>("BitwiseOr", kInts);
  k.Binary<functors::BitXor>("BitwiseXor", kInts);
  k.Binary<functors::LeftShift>("LeftShift", kInts);
  k.Binary<functors::RightShift>("RightShift", kInts);
  k.Unary<functors::Invert>("Invert", kInts);
  k.Unary<functors::PopulationCount>("PopulationCount", kInts);
}

}  // namespace weir::kernels_eigen
