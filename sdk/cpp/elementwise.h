// Element-by-element kernels from scalar functors, as plain loops that the compiler vectorises.
//
// ```cpp
// struct Square {
//   template <class T>
//   T operator()(T x) const { return x * x; }
// };
// void AddSquare(KernelTable& k) { k.Unary<Square>("Square", Types<float, double, half, int32_t>()); }
// ```
//
// A functor that can fail takes `bool& fault` as its last parameter, sets it, returns anything, and names the error in
// `static constexpr const char* kFault`. A unary functor with `static void Array(const T* x, R* y, int64_t n)` supplies
// its own loop for that T. half and bfloat16 run the float loop tile by tile.
//
// k.Pairwise<F>("SqrtGrad", list) does not broadcast: both operands have the same element count, and the result has the
// first operand's shape. A functor with `static constexpr bool kSameShape = true` also requires equal shapes.
#ifndef WEIR_SDK_CPP_ELEMENTWISE_H_
#define WEIR_SDK_CPP_ELEMENTWISE_H_

#include "sdk/cpp/broadcast.h"
#include "sdk/cpp/kernel.h"

#if defined(__clang__)
#define WEIR_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define WEIR_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace weir::sdk::internal {

inline constexpr int64_t kTile = 1024;        // elements of a 16-bit tile
inline constexpr int64_t kGrain = 32 * 1024;  // elements below which a call is not split

/// Which operands advance along a run.
enum class Run : uint32_t { kBoth, kLeftFixed, kRightFixed, kFixed };

/// Loops over n elements; false if an element failed.
using UnaryLoop = bool (*)(const void* x, void* y, int64_t n);
using BinaryLoop = bool (*)(const void* x, const void* y, void* z, int64_t n, Run run);

/// Conversion of 16-bit storage to and from float; null if the loop works on the storage itself.
using WidenFn = void (*)(const void* from, float* to, int64_t n);
using NarrowFn = void (*)(const float* from, void* to, int64_t n);
template <class T>
void WidenTile(const void* from, float* to, int64_t n) {
  Widen(static_cast<const T*>(from), to, n);
}
template <class T>
void NarrowTile(const float* from, void* to, int64_t n) {
  Narrow(from, static_cast<T*>(to), n);
}

struct Loops {
  UnaryLoop unary = nullptr;
  BinaryLoop binary = nullptr;
  weir_kernel_fn one = nullptr;  // a single element
  WidenFn widen = nullptr;
  NarrowFn narrow = nullptr;  // null with widen set: the result is not a 16-bit float
  uint32_t in_bytes = 0;
  uint32_t out_bytes = 0;
  const char* fault = nullptr;
  bool same_shape = false;  // of Pairwise
};

inline int32_t Fault(const Loops& loops, const weir_env* env) { return Error(env->error).InvalidArgument(loops.fault); }

/// n elements of a unary loop, through float tiles where needed.
inline bool ApplyUnary(const Loops& loops, const char* x, char* y, int64_t n) {
  if (loops.widen == nullptr) return loops.unary(x, y, n);
  alignas(64) float in[kTile];
  alignas(64) float out[kTile];
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t count = std::min(kTile, n - i);
    loops.widen(x + i * loops.in_bytes, in, count);
    void* to = loops.narrow != nullptr ? static_cast<void*>(out) : y + i * loops.out_bytes;
    if (!loops.unary(in, to, count)) return false;
    if (loops.narrow != nullptr) loops.narrow(out, y + i * loops.out_bytes, count);
  }
  return true;
}

inline bool ApplyBinary(const Loops& loops, const char* x, const char* y, char* z, int64_t n, Run run) {
  if (loops.widen == nullptr) return loops.binary(x, y, z, n, run);
  alignas(64) float left[kTile];
  alignas(64) float right[kTile];
  alignas(64) float out[kTile];
  const bool left_fixed = run == Run::kLeftFixed || run == Run::kFixed;
  const bool right_fixed = run == Run::kRightFixed || run == Run::kFixed;
  if (left_fixed) loops.widen(x, left, 1);
  if (right_fixed) loops.widen(y, right, 1);
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t count = std::min(kTile, n - i);
    if (!left_fixed) loops.widen(x + i * loops.in_bytes, left, count);
    if (!right_fixed) loops.widen(y + i * loops.in_bytes, right, count);
    void* to = loops.narrow != nullptr ? static_cast<void*>(out) : z + i * loops.out_bytes;
    if (!loops.binary(left, right, to, count, run)) return false;
    if (loops.narrow != nullptr) loops.narrow(out, z + i * loops.out_bytes, count);
  }
  return true;
}

struct UnaryState : State {
  const Loops* loops = nullptr;
  int64_t n = 0;
};

struct BinaryState : UnaryState {
  Run run = Run::kBoth;
  Broadcast<2> plan;
};

inline const char* In(const weir_reg& reg) { return reinterpret_cast<const char*>(reg.data); }
inline char* Out(const weir_reg& reg) { return reinterpret_cast<char*>(reg.data); }

inline int32_t UnaryFn(void* raw, const weir_reg* regs, const weir_env* env) noexcept {
  return Guard(env->error, [&]() -> int32_t {
    const auto& state = *static_cast<const UnaryState*>(static_cast<State*>(raw));
    const Loops& loops = *state.loops;
    const auto [begin, end] = Env(env, state.tiles).Range(state.n);
    const bool ok =
        ApplyUnary(loops, In(regs[0]) + begin * loops.in_bytes, Out(regs[1]) + begin * loops.out_bytes, end - begin);
    return ok ? WEIR_OK : Fault(loops, env);
  });
}

inline int32_t BinaryFlatFn(void* raw, const weir_reg* regs, const weir_env* env) noexcept {
  return Guard(env->error, [&]() -> int32_t {
    const auto& state = *static_cast<const BinaryState*>(static_cast<State*>(raw));
    const Loops& loops = *state.loops;
    const auto [begin, end] = Env(env, state.tiles).Range(state.n);
    const int64_t left = state.run == Run::kLeftFixed ? 0 : begin * loops.in_bytes;
    const int64_t right = state.run == Run::kRightFixed ? 0 : begin * loops.in_bytes;
    const bool ok = ApplyBinary(loops, In(regs[0]) + left, In(regs[1]) + right, Out(regs[2]) + begin * loops.out_bytes,
                                end - begin, state.run);
    return ok ? WEIR_OK : Fault(loops, env);
  });
}

inline int32_t BinaryBroadcastFn(void* raw, const weir_reg* regs, const weir_env* env) noexcept {
  return Guard(env->error, [&]() -> int32_t {
    const auto& state = *static_cast<const BinaryState*>(static_cast<State*>(raw));
    const Loops& loops = *state.loops;
    const auto [begin, end] = Env(env, state.tiles).Range(state.plan.runs);
    const char* left = In(regs[0]);
    const char* right = In(regs[1]);
    char* out = Out(regs[2]) + begin * state.plan.run * loops.out_bytes;
    const bool ok = state.plan.ForRuns(begin, end, [&](const std::array<int64_t, 2>& at) {
      char* to = out;
      out += state.plan.run * loops.out_bytes;
      return ApplyBinary(loops, left + at[0] * loops.in_bytes, right + at[1] * loops.in_bytes, to, state.plan.run,
                         state.run);
    });
    return ok ? WEIR_OK : Fault(loops, env);
  });
}

/// One element in 16-bit storage.
inline int32_t NarrowOneFn(void* raw, const weir_reg* regs, const weir_env* env) noexcept {
  return Guard(env->error, [&]() -> int32_t {
    const Loops& loops = *static_cast<const UnaryState*>(static_cast<State*>(raw))->loops;
    float x, y, result;
    const weir_reg& out = regs[loops.binary != nullptr ? 2 : 1];
    void* to = loops.narrow != nullptr ? &result : reinterpret_cast<void*>(out.data);
    loops.widen(In(regs[0]), &x, 1);
    bool ok;
    if (loops.binary != nullptr) {
      loops.widen(In(regs[1]), &y, 1);
      ok = loops.binary(&x, &y, to, 1, Run::kFixed);
    } else {
      ok = loops.unary(&x, to, 1);
    }
    if (!ok) return Fault(loops, env);
    if (loops.narrow != nullptr) loops.narrow(&result, Out(out), 1);
    return WEIR_OK;
  });
}

inline int32_t NothingFn(void*, const weir_reg*, const weir_env*) noexcept { return WEIR_OK; }

inline int32_t PrepareUnary(const Variant& variant, Prep& prep, weir_kernel_fn* fn, std::unique_ptr<State>* out) {
  const auto& loops = *static_cast<const Loops*>(variant.data);
  const int64_t n = prep.size(0);
  if (prep.inputs() != 1 || prep.outputs() != 1 || SizeOf(prep.output(0).shape) != n ||
      SizeOf(prep.output(0).dtype) != loops.out_bytes) {
    return prep.error().Fail(WEIR_INTERNAL, "the operands do not fit an element-by-element kernel of one input");
  }
  auto state = std::make_unique<UnaryState>();
  state->loops = &loops;
  state->n = n;
  prep.Tiles(static_cast<uint64_t>(n / kGrain));
  if (loops.in_bytes == loops.out_bytes) prep.MayAlias(0, 0);
  *fn = n == 0 ? &NothingFn : n == 1 ? loops.one : &UnaryFn;
  *out = std::move(state);
  return WEIR_OK;
}

inline int32_t PrepareBinary(const Variant& variant, Prep& prep, weir_kernel_fn* fn, std::unique_ptr<State>* out) {
  const auto& loops = *static_cast<const Loops*>(variant.data);
  if (prep.inputs() != 2 || prep.outputs() != 1 || SizeOf(prep.input(1).dtype) != SizeOf(prep.input(0).dtype) ||
      SizeOf(prep.output(0).dtype) != loops.out_bytes) {
    return prep.error().Fail(WEIR_INTERNAL, "the operands do not fit an element-by-element kernel of two inputs");
  }
  auto state = std::make_unique<BinaryState>();
  state->loops = &loops;
  const weir_shape& shape = prep.output(0).shape;
  Broadcast<2>& plan = state->plan;
  if (!plan.Plan({prep.shape(0), prep.shape(1)}, shape)) {
    return prep.error().InvalidArgument("Incompatible shapes: ", prep.shape(0), " vs. ", prep.shape(1));
  }
  state->n = plan.run;
  state->run = plan.advances[0] ? (plan.advances[1] ? Run::kBoth : Run::kRightFixed)
                                : (plan.advances[1] ? Run::kLeftFixed : Run::kFixed);
  const int64_t n = SizeOf(shape);
  if (loops.in_bytes == loops.out_bytes) {
    if (prep.size(0) == n) prep.MayAlias(0, 0);
    if (prep.size(1) == n) prep.MayAlias(1, 0);
  }
  if (n == 0) {
    *fn = &NothingFn;
  } else if (n == 1) {
    *fn = loops.one;
  } else if (plan.runs == 1) {
    prep.Tiles(static_cast<uint64_t>(n / kGrain));
    *fn = &BinaryFlatFn;
  } else {
    prep.Tiles(static_cast<uint64_t>(std::min(n / kGrain, plan.runs)));
    *fn = &BinaryBroadcastFn;
  }
  *out = std::move(state);
  return WEIR_OK;
}

/// InvalidArgument unless the operands meet the requirements of Pairwise.
inline int32_t ExpectPair(const Loops& loops, Prep& prep) {
  if (loops.same_shape) {
    if (SameShape(prep.shape(0), prep.shape(1))) return WEIR_OK;
    return prep.error().InvalidArgument("Inputs to operation ", prep.node().name(), " of type ", prep.node().op(),
                                        " must have the same size and shape.  Input 0: ", prep.shape(0),
                                        " != input 1: ", prep.shape(1));
  }
  if (prep.size(0) == prep.size(1)) return WEIR_OK;
  return prep.error().InvalidArgument("The two arguments to a cwise op must have same number of elements, got ",
                                      prep.size(0), " and ", prep.size(1));
}

inline int32_t PreparePair(const Variant& variant, Prep& prep, weir_kernel_fn* fn, std::unique_ptr<State>* out) {
  const auto& loops = *static_cast<const Loops*>(variant.data);
  const bool three = prep.inputs() == 2 && prep.outputs() == 1;
  if (three && SizeOf(prep.input(1).dtype) == SizeOf(prep.input(0).dtype)) {
    if (const int32_t code = ExpectPair(loops, prep); code != WEIR_OK) return code;
  }
  const int64_t n = three ? prep.size(0) : -1;
  if (!three || SizeOf(prep.input(1).dtype) != SizeOf(prep.input(0).dtype) || SizeOf(prep.output(0).shape) != n ||
      SizeOf(prep.output(0).dtype) != loops.out_bytes) {
    return prep.error().Fail(WEIR_INTERNAL, "the operands do not fit an element-by-element kernel of two inputs");
  }
  auto state = std::make_unique<BinaryState>();
  state->loops = &loops;
  state->n = n;
  prep.Tiles(static_cast<uint64_t>(n / kGrain));
  if (loops.in_bytes == loops.out_bytes) {
    prep.MayAlias(0, 0);
    prep.MayAlias(1, 0);
  }
  *fn = n == 0 ? &NothingFn : n == 1 ? loops.one : &BinaryFlatFn;
  *out = std::move(state);
  return WEIR_OK;
}

template <class F, class T>
constexpr bool kUnaryFails = requires(F f, T x, bool& fault) {
  f(x, fault);
};
template <class F, class T>
constexpr bool kBinaryFails = requires(F f, T x, bool& fault) {
  f(x, x, fault);
};

template <class F, class T>
struct UnaryOf {
  static auto Apply(T x, bool& fault) {
    if constexpr (kUnaryFails<F, T>) {
      return F{}(x, fault);
    } else {
      return F{}(x);
    }
  }
  using R = decltype(Apply(std::declval<T>(), std::declval<bool&>()));

  static bool Loop(const void* from, void* to, int64_t n) {
    const auto* x = static_cast<const T*>(from);
    auto* y = static_cast<R*>(to);
    if constexpr (requires { F::Array(x, y, n); }) {
      F::Array(x, y, n);
      return true;
    } else {
      bool fault = false;
      WEIR_INDEPENDENT
      for (int64_t i = 0; i < n; ++i) y[i] = Apply(x[i], fault);
      return !fault;
    }
  }
  static int32_t One(void* state, const weir_reg* regs, const weir_env* env) noexcept {
    return Guard(env->error, [&]() -> int32_t {
      bool fault = false;
      *reinterpret_cast<R*>(regs[1].data) = Apply(*reinterpret_cast<const T*>(regs[0].data), fault);
      if constexpr (kUnaryFails<F, T>) {
        if (fault) return Fault(*static_cast<const UnaryState*>(static_cast<State*>(state))->loops, env);
      }
      return WEIR_OK;
    });
  }
};

template <class F, class T>
struct BinaryOf {
  static auto Apply(T x, T y, bool& fault) {
    if constexpr (kBinaryFails<F, T>) {
      return F{}(x, y, fault);
    } else {
      return F{}(x, y);
    }
  }
  using R = decltype(Apply(std::declval<T>(), std::declval<T>(), std::declval<bool&>()));

  static bool Loop(const void* left, const void* right, void* to, int64_t n, Run run) {
    const auto* x = static_cast<const T*>(left);
    const auto* y = static_cast<const T*>(right);
    auto* z = static_cast<R*>(to);
    bool fault = false;
    if (run == Run::kBoth) {
      WEIR_INDEPENDENT
      for (int64_t i = 0; i < n; ++i) z[i] = Apply(x[i], y[i], fault);
    } else if (run == Run::kRightFixed) {
      const T b = *y;
      WEIR_INDEPENDENT
      for (int64_t i = 0; i < n; ++i) z[i] = Apply(x[i], b, fault);
    } else if (run == Run::kLeftFixed) {
      const T a = *x;
      WEIR_INDEPENDENT
      for (int64_t i = 0; i < n; ++i) z[i] = Apply(a, y[i], fault);
    } else {
      const R value = Apply(*x, *y, fault);
      for (int64_t i = 0; i < n; ++i) z[i] = value;
    }
    return !fault;
  }
  static int32_t One(void* state, const weir_reg* regs, const weir_env* env) noexcept {
    return Guard(env->error, [&]() -> int32_t {
      bool fault = false;
      *reinterpret_cast<R*>(regs[2].data) =
          Apply(*reinterpret_cast<const T*>(regs[0].data), *reinterpret_cast<const T*>(regs[1].data), fault);
      if constexpr (kBinaryFails<F, T>) {
        if (fault) return Fault(*static_cast<const UnaryState*>(static_cast<State*>(state))->loops, env);
      }
      return WEIR_OK;
    });
  }
};

/// The loops of functor F for stored type S.
template <template <class, class> class Of, class F, class S>
const Loops* LoopsOf() {
  using T = sdk::Compute<S>;
  using R = typename Of<F, T>::R;
  static const Loops loops = [] {
    Loops made;
    if constexpr (requires { Of<F, T>::Loop(nullptr, nullptr, nullptr, 0, Run::kBoth); }) {
      made.binary = &Of<F, T>::Loop;
    } else {
      made.unary = &Of<F, T>::Loop;
    }
    made.in_bytes = sizeof(S);
    made.out_bytes = sizeof(R);
    if constexpr (!std::is_same_v<S, T>) {
      made.widen = &WidenTile<S>;
      made.one = &NarrowOneFn;
      if constexpr (std::is_same_v<R, float>) {
        made.narrow = &NarrowTile<S>;
        made.out_bytes = sizeof(S);
      }
    } else {
      made.one = &Of<F, T>::One;
    }
    if constexpr (requires { F::kFault; }) made.fault = F::kFault;
    if constexpr (requires { F::kSameShape; }) made.same_shape = F::kSameShape;
    return made;
  }();
  return &loops;
}

template <template <class, class> class Of, class F, auto kPrepare, class... E>
void ExpandLoops(std::vector<Variant>& variants) {
  (variants.push_back({{Element<E>::kNumber}, LoopsOf<Of, F, typename Element<E>::Type>(), kPrepare, nullptr}), ...);
}

template <template <class, class> class Of, class F, auto kPrepare, class... E>
void AddLoops(Kernel& kernel, Types<E...> list) {
  kernel.by_operand = true;
  kernel.Class(WEIR_CLASS_ELEMENTWISE).Flags(WEIR_KERNEL_DETERMINISTIC);
  kernel.summary.prepared = true;
  kernel.summary.dtypes[0] = DTypesOf(list);
  kernel.expand = &ExpandLoops<Of, F, kPrepare, E...>;
}

}  // namespace weir::sdk::internal

namespace weir::sdk {

template <class F, class List>
Kernel& KernelTable::Unary(std::string_view op, List list) {
  Kernel& kernel = New(op, list);
  internal::AddLoops<internal::UnaryOf, F, &internal::PrepareUnary>(kernel, ListOf(list));
  return kernel;
}

template <class F, class List>
Kernel& KernelTable::Binary(std::string_view op, List list) {
  Kernel& kernel = New(op, list);
  internal::AddLoops<internal::BinaryOf, F, &internal::PrepareBinary>(kernel, ListOf(list));
  return kernel;
}

template <class F, class List>
Kernel& KernelTable::Pairwise(std::string_view op, List list) {
  Kernel& kernel = New(op, list);
  internal::AddLoops<internal::BinaryOf, F, &internal::PreparePair>(kernel, ListOf(list));
  return kernel;
}

}  // namespace weir::sdk

#endif  // WEIR_SDK_CPP_ELEMENTWISE_H_
