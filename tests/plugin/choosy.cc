// The only kernels of the asynchronous device in its folder: a check that the core also has for the host, and a kernel
// whose prepare declines more than two dimensions.
#include <algorithm>

#include "sdk/cpp/kernel.h"
#include "sdk/cpp/plugin.h"
#include "sdk/examples/async_device/async_kernels.h"

namespace {

using namespace weir::sdk;

/// CheckNumerics with a different text; it also refuses negative elements.
struct OwnCheck {
  int64_t n = 0;

  void Prepare(Prep& prep) { n = prep.size(0); }
  template <class T>
  int32_t Run(Env& env, View<const T> x, View<T> y) const {
    if (std::any_of(x.data(), x.data() + n, [](T value) { return !(value >= 0); })) {
      return env.error().Fail(WEIR_INVALID_ARGUMENT, "checked where the tensor lies");
    }
    std::copy(x.data(), x.data() + n, y.data());
    return WEIR_OK;
  }
};

struct AtMostMatrices {
  int64_t n = 0;

  int32_t Prepare(Prep& prep) {
    n = prep.size(0);
    return prep.shape(0).rank > 2 ? prep.error().Fail(WEIR_UNIMPLEMENTED, "more than 2 dimensions") : WEIR_OK;
  }
  template <class T>
  void Run(Env&, View<const T> x, View<T> y) const {
    std::transform(x.data(), x.data() + n, y.data(), [](T value) { return -value; });
  }
};

void AddKernels(KernelTable& k) {
  k.Add<OwnCheck>("CheckNumerics", Types<float>());
  k.Add<AtMostMatrices>("Neg", Types<float>());
}

}  // namespace

WEIR_PLUGIN("choosy", "1.0.0", "weir", WEIR_ASYNC_PLATFORM, async_device::AsyncKernels<AddKernels>)
