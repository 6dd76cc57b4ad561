// Elements chosen, limited or converted: Select, SelectV2, ClipByValue, LeakyRelu, Cast, BiasAdd; bits of integers.
#include "plugins/functors/activations.h"
#include "plugins/functors/bias_plans.h"
#include "plugins/functors/bits.h"
#include "plugins/functors/cast.h"
#include "plugins/functors/operands.h"
#include "plugins/functors/select_plans.h"
#include "plugins/gpu/kernels/broadcasting.h"
#include "plugins/gpu/kernels/elementwise.h"
#include "plugins/gpu/kernels/families.h"

namespace weir::gpu {
namespace {

using functors::Kind;
using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::boolean;
using sdk::Env;
using sdk::View;

template <class E>
struct SelectWork {
  Ptr<const char> condition;
  Ptr<const E> yes, no;
  Ptr<E> out;
  Broadcasting<3> places;
  WEIR_GPU_FN void operator()(int64_t i) const {
    int64_t at[3];
    places.At(i, at);
    out[i] = condition[at[0]] != 0 ? yes[at[1]] : no[at[2]];
  }
};

int32_t LaunchSelect(Env& env, const Broadcasting<3>& places, View<const boolean> condition, AnyInput yes, AnyInput no,
                     AnyOutput out) {
  return functors::ForBytes(sdk::SizeOf(out.dtype()), [&](auto element) {
    using E = decltype(element);
    return Launch(env, out.size(),
                  SelectWork<E>{From(condition), static_cast<const E*>(yes.data()), static_cast<const E*>(no.data()),
                                static_cast<E*>(out.data()), places});
  });
}

struct SelectV2 {
  Broadcasting<3> places;

  int32_t Prepare(sdk::Prep& prep) {
    if (!places.Plan({prep.shape(0), prep.shape(1), prep.shape(2)}, prep.output(0).shape)) {
      return prep.error().InvalidArgument("condition ", prep.shape(0), ", then ", prep.shape(1), " and else ",
                                          prep.shape(2), " must be broadcastable to ", prep.output(0).shape);
    }
    const int64_t n = sdk::SizeOf(prep.output(0).shape);
    for (const uint32_t i : {1u, 2u}) {
      if (prep.size(i) == n) prep.MayAlias(i, 0);
    }
    return WEIR_OK;
  }
  int32_t Run(Env& env, View<const boolean> condition, AnyInput yes, AnyInput no, AnyOutput out) const {
    return LaunchSelect(env, places, condition, yes, no, out);
  }
};

struct Select : functors::SelectPlan {
  Broadcasting<3> places;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = SelectPlan::Prepare(prep); code != WEIR_OK) return code;
    // A condition for each row counts as [rows, 1].
    const int64_t n = prep.size(1), rows = prep.size(0);
    const int64_t whole[2] = {rows, row}, conditions[2] = {rows, 1};
    if (n == 0) return WEIR_OK;
    (void)places.Plan({weir_shape{2, 0, conditions}, weir_shape{2, 0, whole}, weir_shape{2, 0, whole}},
                      weir_shape{2, 0, whole});
    return WEIR_OK;
  }
  int32_t Run(Env& env, View<const boolean> condition, AnyInput yes, AnyInput no, AnyOutput out) const {
    return LaunchSelect(env, places, condition, yes, no, out);
  }
};

template <class S>
struct ClipWork {
  Ptr<const char> x, low, high;
  Ptr<char> y;
  int64_t low_step, high_step;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    storage.Store(y.get(), i,
                  functors::Clipped(storage.Load(x.get(), i), storage.Load(low.get(), i * low_step),
                                    storage.Load(high.get(), i * high_step)));
  }
};
struct ClipByValue : functors::ClipPlan {
  int32_t Run(Env& env, AnyInput x, AnyInput low, AnyInput high, AnyOutput y) const {
    int32_t code = WEIR_OK;
    WithStorage<kFloats | kIntegers | kUnsigned64>(x.dtype(), [&](auto storage) {
      code = Launch(env, y.size(),
                    ClipWork<decltype(storage)>{From(x), From(low), From(high), To(y), low_step, high_step, storage});
    });
    return code;
  }
};

template <class S>
struct LeakyWork {
  Ptr<const char> x, of;
  Ptr<char> y;
  double alpha;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    using C = typename S::C;
    storage.Store(y.get(), i,
                  functors::Leaky(storage.Load(x.get(), i), storage.Load(of.get(), i), static_cast<C>(alpha)));
  }
};
int32_t LaunchLeaky(Env& env, double alpha, AnyInput x, AnyInput of, AnyOutput y) {
  int32_t code = WEIR_OK;
  WithStorage<kFloats>(x.dtype(), [&](auto storage) {
    code = Launch(env, y.size(), LeakyWork<decltype(storage)>{From(x), From(of), To(y), alpha, storage});
  });
  return code;
}
struct LeakyRelu {
  double alpha = 0;
  void Prepare(sdk::Prep& prep) {
    alpha = prep.node().Float("alpha", 0.2);
    prep.MayAlias(0, 0);
  }
  int32_t Run(Env& env, AnyInput x, AnyOutput y) const { return LaunchLeaky(env, alpha, x, x, y); }
};
/// The checks of a Pairwise of that shape.
struct LeakyReluGrad : Pairwise<functors::ReluGrad, kFloats> {
  double alpha = 0;
  int32_t Prepare(sdk::Prep& prep) {
    alpha = prep.node().Float("alpha", 0.2);
    return Pairwise::Prepare(prep);
  }
  int32_t Run(Env& env, AnyInput dy, AnyInput x, AnyOutput dx) const { return LaunchLeaky(env, alpha, dy, x, dx); }
};

template <class S>
struct BiasWork {
  Ptr<const char> x, bias;
  Ptr<char> y;
  int64_t channels, inner;
  Divider divider;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    int64_t rest = i;
    if (inner > 1) divider.Split(rest, inner);
    const int64_t channel = divider.Split(rest, channels);
    storage.Store(y.get(), i, functors::Sum(storage.Load(x.get(), i), storage.Load(bias.get(), channel)));
  }
};
struct BiasAdd : functors::BiasPlan {
  int32_t Run(Env& env, AnyInput x, AnyInput bias, AnyOutput y) const {
    int32_t code = WEIR_OK;
    const int64_t n = y.size();
    WithStorage<kFloats | kIntegers | kComplexes>(x.dtype(), [&](auto storage) {
      code = Launch(
          env, n,
          BiasWork<decltype(storage)>{From(x), From(bias), To(y), view.channels, view.inner, Divider::For(n), storage});
    });
    return code;
  }
};

/// Elements of any type, through the widest type of the source's kind.
struct Conversion {
  uint32_t dtype = WEIR_INVALID;

  template <class W>
  WEIR_HD W Load(const char* from, int64_t i) const {
    if constexpr (std::is_same_v<W, double>) {
      if (dtype == WEIR_FLOAT32) return static_cast<double>(reinterpret_cast<const float*>(from)[i]);
      if (dtype == WEIR_FLOAT64) return reinterpret_cast<const double*>(from)[i];
      return static_cast<double>(Float16{dtype == WEIR_BFLOAT16}.Load(from, i));
    } else if constexpr (std::is_same_v<W, Complex128>) {
      return dtype == WEIR_COMPLEX64 ? Complex128(reinterpret_cast<const Complex64*>(from)[i])
                                     : reinterpret_cast<const Complex128*>(from)[i];
    } else if constexpr (std::is_same_v<W, uint64_t>) {
      return reinterpret_cast<const uint64_t*>(from)[i];
    } else {
      return dtype == WEIR_BOOL ? W{from[i] != 0} : Integer{dtype}.Load(from, i);
    }
  }
  template <class W>
  WEIR_HD void Store(char* to, int64_t i, W x) const {
    if constexpr (std::is_same_v<W, Complex128>) {
      if (dtype == WEIR_COMPLEX64) {
        reinterpret_cast<Complex64*>(to)[i] = Complex64(x);
      } else if (dtype == WEIR_COMPLEX128) {
        reinterpret_cast<Complex128*>(to)[i] = x;
      } else {
        StoreReal(to, i, x.re);
      }
    } else {
      StoreReal(to, i, x);
    }
  }

 private:
  template <class D, class W>
  WEIR_HD static void Convert(char* to, int64_t i, W x) {
    reinterpret_cast<D*>(to)[i] = functors::Convert<D>(x);
  }
  template <class W>
  WEIR_HD void StoreReal(char* to, int64_t i, W x) const {
    switch (dtype) {
      case WEIR_FLOAT32:
        return Convert<float>(to, i, x);
      case WEIR_FLOAT64:
        return Convert<double>(to, i, x);
      case WEIR_INT32:
        return Convert<int32_t>(to, i, x);
      case WEIR_INT64:
        return Convert<int64_t>(to, i, x);
      case WEIR_BOOL:
        return Boolean().Store(to, i, x != 0);
#if !defined(WEIR_KERNEL_DTYPES_SHORT)
      case WEIR_INT8:
        return Convert<int8_t>(to, i, x);
      case WEIR_INT16:
        return Convert<int16_t>(to, i, x);
      case WEIR_UINT8:
        return Convert<uint8_t>(to, i, x);
      case WEIR_UINT16:
        return Convert<uint16_t>(to, i, x);
      case WEIR_UINT32:
        return Convert<uint32_t>(to, i, x);
      case WEIR_UINT64:
        return Convert<uint64_t>(to, i, x);
      case WEIR_COMPLEX64:
        reinterpret_cast<Complex64*>(to)[i] = Complex64(static_cast<float>(x));
        return;
      case WEIR_COMPLEX128:
        reinterpret_cast<Complex128*>(to)[i] = Complex128(static_cast<double>(x));
        return;
#endif
      default:
        Float16{dtype == WEIR_BFLOAT16}.Store(to, i, static_cast<float>(x));
    }
  }
};

template <class W>
struct CastWork {
  Ptr<const char> x;
  Ptr<char> y;
  Conversion from, to;
  uint64_t mask;  // of the bits of a double that are kept
  WEIR_GPU_FN void operator()(int64_t i) const {
    W value = from.Load<W>(x.get(), i);
    if constexpr (std::is_same_v<W, double>) {
      value = std::bit_cast<double>(std::bit_cast<uint64_t>(value) & mask);
    }
    to.Store(y.get(), i, value);
  }
};

struct Cast {
  uint64_t mask = ~uint64_t{0};

  int32_t Prepare(sdk::Prep& prep) {
    const uint32_t from = prep.input(0).dtype, to = prep.output(0).dtype;
    if (prep.node().Bool("Truncate") && (kFloatingBits & WEIR_DTYPE_BIT(from)) != 0) {
      const int mantissa = to == WEIR_FLOAT32 ? 23 : to == WEIR_FLOAT16 ? 10 : to == WEIR_BFLOAT16 ? 7 : 52;
      mask = ~((uint64_t{1} << (52 - mantissa)) - 1);
    }
    if (sdk::SizeOf(from) == sdk::SizeOf(to)) prep.MayAlias(0, 0);
    return WEIR_OK;
  }
  int32_t Run(Env& env, AnyInput x, AnyOutput y) const {
    const uint64_t bit = WEIR_DTYPE_BIT(x.dtype());
    if ((kFloatingBits & bit) != 0) return With<double>(env, x, y);
#if !defined(WEIR_KERNEL_DTYPES_SHORT)
    if ((kComplexBits & bit) != 0) return With<Complex128>(env, x, y);
    if (x.dtype() == WEIR_UINT64) return With<uint64_t>(env, x, y);
#endif
    return With<int64_t>(env, x, y);
  }
  template <class W>
  int32_t With(Env& env, AnyInput x, AnyOutput y) const {
    return Launch(env, y.size(), CastWork<W>{From(x), To(y), {x.dtype()}, {y.dtype()}, mask});
  }
};

/// Functions of bits depend on the width of the type.
template <class F, class T>
struct BitsWork {
  Ptr<const T> x, y;
  Ptr<T> z;
  Broadcasting<2> places;
  WEIR_GPU_FN void operator()(int64_t i) const {
    int64_t at[2];
    places.At(i, at);
    z[i] = F{}(x[at[0]], y[at[1]]);
  }
};
template <class F>
struct BitFunction : Binary<functors::Add, kIntegers> {
  template <class T>
  int32_t Run(Env& env, View<const T> x, View<const T> y, View<T> z) const {
    return Launch(env, z.size(), BitsWork<F, T>{x.data(), y.data(), z.data(), places});
  }
};
template <class T>
struct CountWork {
  Ptr<const T> x;
  Ptr<uint8_t> y;
  WEIR_GPU_FN void operator()(int64_t i) const { y[i] = functors::PopulationCount{}(x[i]); }
};
struct PopulationCount {
  template <class T>
  int32_t Run(Env& env, View<const T> x, View<uint8_t> y) const {
    return Launch(env, y.size(), CountWork<T>{x.data(), y.data()});
  }
};

void AddBits(sdk::KernelTable& k) {
#if defined(WEIR_KERNEL_DTYPES_SHORT)
  constexpr sdk::Types<int32_t, int64_t> kInts;
#else
  constexpr sdk::Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t> kInts;
#endif
  const uint64_t ints = kSignedBits | kUnsignedBits;
  AddBinary<functors::BitAnd, kIntegers>(k, "BitwiseAnd", ints);
  AddBinary<functors::BitOr, kIntegers>(k, "BitwiseOr", ints);
  AddBinary<functors::BitXor, kIntegers>(k, "BitwiseXor", ints);
  AddUnary<functors::Invert, kIntegers>(k, "Invert", ints);
  k.Add<BitFunction<functors::LeftShift>>("LeftShift", kInts).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<BitFunction<functors::RightShift>>("RightShift", kInts).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<PopulationCount>("PopulationCount", kInts).Class(WEIR_CLASS_ELEMENTWISE);
}

}  // namespace

void AddSelection(sdk::KernelTable& k) {
  k.Add<Select>("Select").Restrict("T", functors::kPlainSet).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<SelectV2>("SelectV2").Restrict("T", functors::kPlainSet).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<ClipByValue>("ClipByValue").Restrict("T", kRealBits).Class(WEIR_CLASS_ELEMENTWISE, 2);
  k.Add<LeakyRelu>("LeakyRelu").Restrict("T", kFloatingBits).Class(WEIR_CLASS_ELEMENTWISE, 2);
  k.Add<LeakyReluGrad>("LeakyReluGrad").Restrict("T", kFloatingBits).Class(WEIR_CLASS_ELEMENTWISE, 2);
  k.Add<BiasAdd>("BiasAdd").Restrict("T", kNumberBits).Class(WEIR_CLASS_ELEMENTWISE);
#if defined(WEIR_KERNEL_DTYPES_SHORT)
  constexpr uint64_t kCast = kFloatBits | kIndexBits | kBoolBits;
#else
  constexpr uint64_t kCast = kNumberBits | kBoolBits;
#endif
  k.Add<Cast>("Cast").Restrict("SrcT", kCast).Restrict("DstT", kCast).Class(WEIR_CLASS_ELEMENTWISE);
  AddBits(k);
}

}  // namespace weir::gpu
