// A kernel set with kernels for the fused ops of core/fuse that decline all operands.
#include "sdk/cpp/kernel.h"
#include "sdk/cpp/plugin.h"

namespace {

using namespace weir::sdk;

struct Declines {
  int32_t Prepare(Prep& prep) { return prep.error().Unimplemented("not today"); }
  template <class T>
  int32_t Run(Env& env, Variable<T>, View<const T>, View<const T>, View<const T>) const {
    return env.error().Fail(WEIR_INTERNAL, "what was declined runs");
  }
};

void AddKernels(KernelTable& k) {
  k.Add<Declines>("_ApplyGradientDescentMatMul", Types<float>());
  k.Add<Declines>("_ResourceApplyGradientDescentMatMul", Types<float>());
}

}  // namespace

WEIR_PLUGIN("declining", "1.0.0", "weir", "cpu", Kernels<AddKernels>)
