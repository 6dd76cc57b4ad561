// Activation functions and their gradients.
#include <algorithm>
#include <cmath>
#include <concepts>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/vector_math.h"
#include "plugins/kernels_eigen/wrap.h"
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

/// max(x, 0); NaN stays NaN.
struct Relu {
  template <class T>
  T operator()(T x) const {
    return x < T(0) ? T(0) : x;
  }
};
struct Relu6 {
  template <class T>
  T operator()(T x) const {
    return x < T(0) ? T(0) : x > T(6) ? T(6) : x;
  }
};
struct Elu {
  template <class T>
  T operator()(T x) const {
    return x < T(0) ? std::expm1(x) : x;
  }
  template <std::floating_point T>
  static void Array(const T* x, T* y, int64_t n) {
    const auto fill = [](const T* from, T* to, int64_t count) { Expm1Array(from, to, count); };
    ByTiles(x, y, n, fill, [](T value, T below) { return value < T(0) ? below : value; });
  }
};

// The constants of self-normalising nets (Klambauer and others, 2017), with TensorFlow's digits.
template <class T>
constexpr T kSeluScale = T(1.0507009873554804934193349852946);
template <class T>
constexpr T kSeluBelow = T(1.7580993408473768599402175208123);

struct Selu {
  template <class T>
  T operator()(T x) const {
    return x < T(0) ? kSeluBelow<T> * std::expm1(x) : kSeluScale<T> * x;
  }
  template <std::floating_point T>
  static void Array(const T* x, T* y, int64_t n) {
    const auto fill = [](const T* from, T* to, int64_t count) { Expm1Array(from, to, count); };
    ByTiles(x, y, n, fill,
            [](T value, T below) { return value < T(0) ? kSeluBelow<T> * below : kSeluScale<T> * value; });
  }
};
/// log(1 + e^x) as max(x, 0) + log(1 + e^-|x|), which never overflows.
struct Softplus {
  template <class T>
  T operator()(T x) const {
    return Relu{}(x) + std::log1p(std::exp(-std::fabs(x)));
  }
  template <std::floating_point T>
  static void Array(const T* x, T* y, int64_t n) {
    const auto fill = [](const T* from, T* to, int64_t count) {
      for (int64_t i = 0; i < count; ++i) to[i] = -std::fabs(from[i]);
      ExpArray(to, to, count);
      Log1pArray(to, to, count);
    };
    ByTiles(x, y, n, fill, [](T value, T rest) { return Relu{}(value) + rest; });
  }
};
struct Softsign {
  template <class T>
  T operator()(T x) const {
    return x / (T(1) + std::fabs(x));
  }
};

struct ReluGrad {
  static constexpr bool kSameShape = true;
  template <class T>
  T operator()(T dy, T x) const {
    return Product(dy, T(x > T(0)));  // NaN stays NaN; an infinity becomes NaN if the derivative is 0
  }
};
struct Relu6Grad {
  static constexpr bool kSameShape = true;
  template <class T>
  T operator()(T dy, T x) const {
    return Product(dy, T(x > T(0) && x < T(6)));
  }
};
struct EluGrad {
  static constexpr bool kSameShape = true;
  template <class T>
  T operator()(T dy, T y) const {
    return y < T(0) ? (y + T(1)) * dy : dy;
  }
};
struct SeluGrad {
  static constexpr bool kSameShape = true;
  template <class T>
  T operator()(T dy, T y) const {
    return y < T(0) ? (y + kSeluBelow<T>)*dy : dy * kSeluScale<T>;
  }
};
struct SoftplusGrad {
  static constexpr bool kSameShape = true;
  template <class T>
  T operator()(T dy, T x) const {
    return dy / (std::exp(-x) + T(1));
  }
};
struct SoftsignGrad {
  static constexpr bool kSameShape = true;
  template <class T>
  T operator()(T dy, T x) const {
    const T slope = T(1) + std::fabs(x);
    return dy / (slope * slope);
  }
};

/// x where `of` is positive, else alpha * x. LeakyRelu passes its input twice.
struct Leaky {
  double alpha = 0;

  template <class T>
  void Apply(sdk::Env& env, const T* x, const T* of, T* y, int64_t n) const {
    using C = sdk::Compute<T>;
    const auto [begin, end] = env.Range(n);
    const C slope = static_cast<C>(alpha);
    WEIR_INDEPENDENT
    for (int64_t i = begin; i < end; ++i) {
      const C value = static_cast<C>(x[i]);
      y[i] = static_cast<T>(static_cast<C>(of[i]) > C(0) ? value : slope * value);
    }
  }
};

struct LeakyRelu : Leaky {
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

struct LeakyReluGrad : Leaky {
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
  k.Unary<Relu>("Relu", kReal);
  k.Unary<Relu6>("Relu6", kReal);
  k.Unary<Elu>("Elu", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Unary<Selu>("Selu", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Unary<Softplus>("Softplus", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 30);
  k.Unary<Softsign>("Softsign", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 4);
  k.Add<LeakyRelu>("LeakyRelu", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 2);
  k.Pairwise<ReluGrad>("ReluGrad", kReal);
  k.Pairwise<Relu6Grad>("Relu6Grad", kReal);
  k.Pairwise<EluGrad>("EluGrad", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 2);
  k.Pairwise<SeluGrad>("SeluGrad", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 2);
  k.Pairwise<SoftplusGrad>("SoftplusGrad", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 15);
  k.Pairwise<SoftsignGrad>("SoftsignGrad", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 5);
  k.Add<LeakyReluGrad>("LeakyReluGrad", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 2);
}

}  // namespace weir::kernels_eigen
