// Axes in another order or direction: Transpose, ConjugateTranspose, ReverseV2; InvertPermutation.
#include <complex>

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

struct ConjugateTranspose : functors::TransposePlan<StridedCopy> {
  void Run(AnyInput x, HostIntegers, AnyOutput y) const {
    copy.Run(x.data(), y.data());
    if (y.dtype() == WEIR_COMPLEX64) Conjugate(static_cast<sdk::complex64*>(y.data()), y.size());
    if (y.dtype() == WEIR_COMPLEX128) Conjugate(static_cast<sdk::complex128*>(y.data()), y.size());
  }
  template <class C>
  static void Conjugate(C* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::conj(y[i]);
  }
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
  k.Add<ConjugateTranspose>("ConjugateTranspose").Restrict("T", kPlainSet | kFloat8Set).Class(WEIR_CLASS_GATHER);
  k.Add<Reverse>("ReverseV2").Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
  k.Add<InvertPermutation>("InvertPermutation", sdk::Types<int32_t, int64_t>()).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::kernels_eigen
