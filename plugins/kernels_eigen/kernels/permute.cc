// Axes in another order or direction: Transpose, ReverseV2; InvertPermutation.
#include "plugins/functors/shape_args.h"
#include "plugins/functors/strided_plans.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/strided_copy.h"
#include "plugins/kernels_eigen/operands.h"

namespace weir::kernels_eigen {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::HostIntegers;

struct Transpose : functors::TransposePlan<StridedCopy> {
  void Run(AnyInput x, HostIntegers, AnyOutput y) const { copy.Run(x.data(), y.data()); }
};

struct Reverse : functors::ReversePlan<StridedCopy> {
  void Run(AnyInput tensor, HostIntegers, AnyOutput output) const { copy.Run(tensor.data(), output.data()); }
};

struct InvertPermutation {
  template <class T>
  int32_t Run(sdk::Env& env, sdk::View<const T> x, sdk::View<T> y) const {
    return functors::InvertPermutation(env, x, y);
  }
};

}  // namespace

void AddPermute(sdk::KernelTable& k) {
  k.Add<Transpose>("Transpose").Restrict("T", kPlainSet | kFloat8Set).Class(WEIR_CLASS_GATHER);
  k.Add<Reverse>("ReverseV2").Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
  k.Add<InvertPermutation>("InvertPermutation", sdk::Types<int32_t, int64_t>()).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::kernels_eigen
