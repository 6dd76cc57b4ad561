// Activation functions and their gradients.
#include <algorithm>
#include <concepts>

#include "plugins/functors/activations.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/vector_math.h"
#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

/// y[i] = f(x[i], t[i]), where t is what `fill(x, t, n)` gives. `y` may be `x`.
template <class T, class Fill, class F>
void ByTiles(const T* x, T* y, int64_t n, Fill fill, F f) {
  constexpr int64_t kTile = 512;
  alignas(64) T t[kTile];
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t count = std::min(kTile, n - i);
    fill(x + i, t, count);
    WEIR_INDEPENDENT
    for (int64_t j = 0; j < count; ++j) y[i + j] = f(x[i + j], t[j]);
  }
}

// The functors whose arrays are computed by vector packets.
struct EluOf : functors::Elu {
  template <std::floating_point T>
  static void Array(const T* x, T* y, int64_t n) {
    const auto fill = [](const T* from, T* to, int64_t count) { Expm1Array(from, to, count); };
    ByTiles(x, y, n, fill, [](T value, T below) { return value < T(0) ? below : value; });
  }
};
struct SeluOf : functors::Selu {
  template <std::floating_point T>
  static void Array(const T* x, T* y, int64_t n) {
    const auto fill = [](const T* from, T* to, int64_t count) { Expm1Array(from, to, count); };
    ByTiles(x, y, n, fill, [](T value, T below) {
      return value < T(0) ? functors::kSeluBelow<T> * below : functors::kSeluScale<T> * value;
    });
  }
};
struct SoftplusOf : functors::Softplus {
  template <std::floating_point T>
  static void Array(const T* x, T* y, int64_t n) {
    const auto fill = [](const T* from, T* to, int64_t count) {
      for (int64_t i = 0; i < count; ++i) to[i] = -std::fabs(from[i]);
      ExpArray(to, to, count);
      Log1pArray(to, to, count);
    };
    ByTiles(x, y, n, fill, [](T value, T rest) { return functors::Relu{}(value) + rest; });
  }
};

/// x where `of` is positive, else alpha * x. LeakyRelu passes its input twice.
struct LeakyBase {
  double alpha = 0;

  template <class T>
  void Apply(sdk::Env& env, const T* x, const T* of, T* y, int64_t n) const {
    using C = sdk::Compute<T>;
    const auto [begin, end] = env.Range(n);
    const C slope = static_cast<C>(alpha);
    WEIR_INDEPENDENT
    for (int64_t i = begin; i < end; ++i) {
      const C value = static_cast<C>(x[i]);
      y[i] = static_cast<T>(functors::Leaky(value, static_cast<C>(of[i]), slope));
    }
  }
};

struct LeakyRelu : LeakyBase {
  int32_t Prepare(sdk::Prep& prep) {
    alpha = prep.node().Float("alpha", 0.2);
    prep.MayAlias(0, 0);
    prep.Tiles(static_cast<uint64_t>(prep.size(0) / sdk::internal::kGrain));
    return WEIR_OK;
  }
  template <class T>
  void Run(sdk::Env& env, sdk::View<const T> x, sdk::View<T> y) const {
    Apply(env, x.data(), x.data(), y.data(), y.size());
  }
};

struct LeakyReluGrad : LeakyBase {
  int32_t Prepare(sdk::Prep& prep) {
    if (!sdk::SameShape(prep.shape(0), prep.shape(1))) {
      return prep.error().InvalidArgument("Inputs to operation ", prep.node().name(), " of type ", prep.node().op(),
                                          " must have the same size and shape.  Input 0: ", prep.shape(0),
                                          " != input 1: ", prep.shape(1));
    }
    alpha = prep.node().Float("alpha", 0.2);
    prep.MayAlias(0, 0);
    prep.MayAlias(1, 0);
    prep.Tiles(static_cast<uint64_t>(prep.size(0) / sdk::internal::kGrain));
    return WEIR_OK;
  }
  template <class T>
  void Run(sdk::Env& env, sdk::View<const T> dy, sdk::View<const T> x, sdk::View<T> dx) const {
    Apply(env, dy.data(), x.data(), dx.data(), dx.size());
  }
};

}  // namespace

void AddActivations(sdk::KernelTable& k) {
  k.Unary<functors::Relu>("Relu", kReal);
  k.Unary<functors::Relu6>("Relu6", kReal);
  k.Unary<EluOf>("Elu", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Unary<SeluOf>("Selu", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Unary<SoftplusOf>("Softplus", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 30);
  k.Unary<functors::Softsign>("Softsign", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 4);
  k.Add<LeakyRelu>("LeakyRelu", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 2);
  k.Pairwise<functors::ReluGrad>("ReluGrad", kReal);
  k.Pairwise<functors::Relu6Grad>("Relu6Grad", kReal);
  k.Pairwise<functors::EluGrad>("EluGrad", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 2);
  k.Pairwise<functors::SeluGrad>("SeluGrad", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 2);
  k.Pairwise<functors::SoftplusGrad>("SoftplusGrad", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 15);
  k.Pairwise<functors::SoftsignGrad>("SoftsignGrad", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 5);
  k.Add<LeakyReluGrad>("LeakyReluGrad", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 2);
}

}  // namespace weir::kernels_eigen
