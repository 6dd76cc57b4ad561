// Bessel functions and integrals, in double precision as on the CPU: one instance serves all types.
#include "plugins/functors/bessel.h"

#include "plugins/gpu/kernels/elementwise.h"
#include "plugins/gpu/kernels/families.h"

namespace weir::gpu {
namespace {

template <class F>
struct InDouble {
  void Prepare(sdk::Prep& prep) { prep.MayAlias(0, 0); }
  int32_t Run(sdk::Env& env, sdk::AnyInput x, sdk::AnyOutput y) const {
    return Launch(env, y.size(), UnaryWork<F, AnyFloat>{From(x), To(y), {y.dtype()}});
  }
};

}  // namespace

void AddBessel(sdk::KernelTable& k) {
  functors::ForBessel([&](auto function, const char* op) {
    k.Add<InDouble<decltype(function)>>(op).Restrict("T", kFloatingBits).Class(WEIR_CLASS_ELEMENTWISE, 300);
  });
}

}  // namespace weir::gpu
