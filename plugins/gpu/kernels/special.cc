// Special functions, in double precision as on the CPU.
#include "plugins/functors/eigen_functions.h"
#include "plugins/gpu/kernels/elementwise.h"
#include "plugins/gpu/kernels/families.h"

namespace weir::gpu {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;

template <class S>
struct BetaincWork {
  Ptr<const char> a, b, x;
  Ptr<char> z;
  int64_t steps[3];  // 0: a scalar
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const auto at = [&](const Ptr<const char>& from, int64_t step) {
      return static_cast<double>(storage.Load(from.get(), i * step));
    };
    const double value = functors::BetaincPlan::Of(at(a, steps[0]), at(b, steps[1]), at(x, steps[2]));
    storage.Store(z.get(), i, static_cast<typename S::C>(value));
  }
};
struct Betainc : functors::BetaincPlan {
  int32_t Run(sdk::Env& env, AnyInput a, AnyInput b, AnyInput x, AnyOutput z) const {
    int32_t code = WEIR_OK;
    WithStorage<kFloats | kWide>(z.dtype(), [&](auto storage) {
      BetaincWork<decltype(storage)> work{From(a), From(b), From(x), To(z), {}, storage};
      for (int k = 0; k < 3; ++k) work.steps[k] = fixed[k] ? 0 : 1;
      code = Launch(env, z.size(), work);
    });
    return code;
  }
};

}  // namespace

void AddSpecial(sdk::KernelTable& k) {
  AddUnary<functors::Erfinv, kFloats>(k, "Erfinv", kFloatingBits, 200);
  AddUnary<functors::Ndtri, kFloats>(k, "Ndtri", kFloatingBits, 200);
  AddUnary<functors::Digamma, kFloats>(k, "Digamma", kFloatingBits, 100);
  AddBinary<functors::Polygamma, kFloats | kWide>(k, "Polygamma", kFloatBits, 500);
  AddBinary<functors::Zeta, kFloats | kWide>(k, "Zeta", kFloatBits, 500);
  AddBinary<functors::Igamma, kFloats | kWide>(k, "Igamma", kFloatBits, 500);
  AddBinary<functors::Igammac, kFloats | kWide>(k, "Igammac", kFloatBits, 500);
  AddBinary<functors::IgammaGradA, kFloats | kWide>(k, "IgammaGradA", kFloatBits, 1000);
  AddBinary<functors::RandomGammaGrad, kFloats | kWide>(k, "RandomGammaGrad", kFloatBits, 1000);
  k.Add<Betainc>("Betainc").Restrict("T", kFloatBits).Class(WEIR_CLASS_ELEMENTWISE, 500);
}

}  // namespace weir::gpu
