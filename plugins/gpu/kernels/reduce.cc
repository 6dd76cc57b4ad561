// Reductions along axes, the bias gradient and L2Loss: a thread or a block of threads for each output, in parts if the
// outputs are few.
#include "plugins/functors/reduce_plan.h"

#include <cmath>
#include <limits>
#include <optional>

#include "plugins/functors/bias_plans.h"
#include "plugins/functors/reducers.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::Complex;
using functors::ReducePlan;
using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;

constexpr int kReduceThreads = 256;
constexpr int64_t kPartElements = 4096;  // elements of a part, at least
constexpr int64_t kMostParts = 256;
constexpr int64_t kEnoughThreads = 1 << 16;
constexpr uint64_t kTotalBytes = 16;

struct Same {
  template <class C>
  WEIR_HD C operator()(C x) const {
    return x;
  }
};
struct Squared {
  template <class C>
  WEIR_HD C operator()(C x) const {
    return x * x;
  }
  template <class R>
  WEIR_HD Complex<R> operator()(Complex<R> x) const {
    return Complex<R>(x.re * x.re + x.im * x.im);
  }
};

/// Where the elements of one output lie.
struct Elements {
  ReducePlan plan;
  WEIR_HD int64_t Base(int64_t output) const {
    if (plan.inner_reduced) return plan.outer_kept.Offset(output);
    return plan.outer_kept.Offset(output / plan.inner) + output % plan.inner;
  }
  WEIR_HD int64_t Offset(int64_t i) const {
    if (plan.inner_reduced) return i % plan.inner + plan.outer_reduced.Offset(i / plan.inner);
    return plan.outer_reduced.Offset(i);
  }
};

/// Part `p` of `parts` of one output, as `total`; with one part the output itself.
template <class R, class Map, class S>
struct ReduceStep {
  using C = typename S::C;
  using Total = typename R::template Total<C>;
  Ptr<const char> x;
  Ptr<char> y;  // outputs, or totals [outputs, parts]
  Elements elements;
  int64_t parts;
  S storage;

  WEIR_HD int64_t Begin(int64_t part) const { return elements.plan.reduced / parts * part; }
  WEIR_HD int64_t End(int64_t part) const { return part + 1 == parts ? elements.plan.reduced : Begin(part + 1); }
  WEIR_GPU_FN Total Sum(int64_t base, int64_t begin, int64_t end, int64_t step) const {
    Total total = R::template Identity<Total>();
    for (int64_t i = begin; i < end; i += step) {
      total = R::Combine(total, static_cast<Total>(Map()(storage.Load(x.get(), base + elements.Offset(i)))));
    }
    return total;
  }
  WEIR_GPU_FN void Give(int64_t unit, Total total) const {
    if (parts > 1) {
      reinterpret_cast<Total*>(y.get())[unit] = total;
    } else {
      storage.Store(y.get(), unit, R::template Give<C>(total, elements.plan.reduced));
    }
  }
};

template <class R, class Map, class S>
struct ReduceByThreads : ReduceStep<R, Map, S> {
  WEIR_GPU_FN void operator()(int64_t unit) const {
    const int64_t output = unit / this->parts, part = unit % this->parts;
    this->Give(unit, this->Sum(this->elements.Base(output), this->Begin(part), this->End(part), 1));
  }
};

template <class R, class Map, class S>
struct ReduceByBlocks : ReduceStep<R, Map, S> {
  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    using Total = typename ReduceStep<R, Map, S>::Total;
    Total* const totals = block.template Shared<Total>(0);
    const int64_t output = block.index() / this->parts, part = block.index() % this->parts;
    const int64_t base = this->elements.Base(output), begin = this->Begin(part), end = this->End(part);
    block.ForEachThread([&](int t) { totals[t] = this->Sum(base, begin + t, end, block.threads()); });
    for (int half = block.threads() / 2; half > 0; half /= 2) {
      block.ForEachThread([&](int t) {
        if (t < half) totals[t] = R::Combine(totals[t], totals[t + half]);
      });
    }
    block.ForEachThread([&](int t) {
      if (t == 0) this->Give(block.index(), totals[0]);
    });
  }
};

/// The totals of the parts, combined in order.
template <class R, class S>
struct CombineParts {
  using C = typename S::C;
  using Total = typename R::template Total<C>;
  Ptr<const char> totals;
  Ptr<char> y;
  int64_t parts, reduced;
  S storage;
  WEIR_GPU_FN void operator()(int64_t output) const {
    const Total* const from = reinterpret_cast<const Total*>(totals.get()) + output * parts;
    Total total = from[0];
    for (int64_t i = 1; i < parts; ++i) total = R::Combine(total, from[i]);
    storage.Store(y.get(), output, R::template Give<C>(total, reduced));
  }
};

/// In how many parts each output is reduced.
int64_t PartsOf(int64_t outputs, int64_t elements) {
  if (outputs == 0 || elements == 0) return 1;
  const int64_t reduced = elements / outputs, wanted = kEnoughThreads / outputs;
  return std::max<int64_t>(1, std::min({wanted, reduced / kPartElements, kMostParts}));
}

/// Bytes of the totals of all parts.
uint64_t PartBytes(int64_t outputs, int64_t elements) {
  const int64_t parts = PartsOf(outputs, elements);
  return parts > 1 ? static_cast<uint64_t>(outputs * parts) * kTotalBytes : 64;
}

/// The value of the reduction of no elements.
template <class R, class S>
struct GiveNothing {
  using C = typename S::C;
  Ptr<char> y;
  S storage;
  C value;
  bool given;
  WEIR_GPU_FN void operator()(int64_t i) const {
    using Total = typename R::template Total<C>;
    storage.Store(y.get(), i, given ? value : R::template Give<C>(R::template Identity<Total>(), 0));
  }
};

/// The least or the largest number of an integer type.
int64_t LimitOf(uint32_t dtype, bool least) {
  const bool is_signed = (kSignedBits & WEIR_DTYPE_BIT(dtype)) != 0;
  const uint32_t bits = 8 * sdk::SizeOf(dtype);
  if (!is_signed) return least ? 0 : bits == 64 ? -1 : static_cast<int64_t>((uint64_t{1} << bits) - 1);
  const auto most = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
  return least ? -most - 1 : most;
}

template <class R, class Map, class S>
int32_t ReduceAll(const Env& env, const ReducePlan& plan, S storage, const void* from, void* to, uint32_t dtype,
                  void* scratch) {
  const Ptr<const char> x(static_cast<const char*>(from));
  const Ptr<char> y(static_cast<char*>(to));
  if (plan.outputs == 0) return WEIR_OK;
  if (plan.reduced == 0) {
    GiveNothing<R, S> work{y, storage, {}, false};
    constexpr bool kMax = std::is_same_v<R, functors::MaxReducer>, kMin = std::is_same_v<R, functors::MinReducer>;
    if constexpr ((kMax || kMin) && std::is_same_v<S, Integer>) {
      work.value = LimitOf(dtype, kMax);
      work.given = true;
    }
    return Launch(env, plan.outputs, work);
  }
  const int64_t parts = PartsOf(plan.outputs, plan.outputs * plan.reduced);
  const Ptr<char> totals(static_cast<char*>(scratch));
  const ReduceStep<R, Map, S> step{x, parts > 1 ? totals : y, {plan}, parts, storage};
  const int64_t units = plan.outputs * parts;
  int32_t code = WEIR_OK;
  if (plan.inner_reduced && plan.reduced / parts >= kReduceThreads / 2) {
    using Total = typename R::template Total<typename S::C>;
    code = LaunchBlocks(env, units, kReduceThreads, kReduceThreads * sizeof(Total), ReduceByBlocks<R, Map, S>{step});
  } else {
    code = Launch(env, units, ReduceByThreads<R, Map, S>{step});
  }
  if (code != WEIR_OK || parts == 1) return code;
  return Launch(env, plan.outputs, CombineParts<R, S>{totals, y, parts, plan.reduced, storage});
}

template <class R, unsigned kKinds, class Map = Same>
struct Reduction {
  std::optional<ReducePlan> plan;  // set if the axes are constant

  int32_t Prepare(sdk::Prep& prep) {
    prep.Scratch(PartBytes(sdk::SizeOf(prep.output(0).shape), prep.size(0)));
    const auto axes = prep.Constant(1);
    if (!axes) return WEIR_OK;
    plan.emplace();
    return plan->Make(prep.shape(0), *axes, prep.error());
  }
  int32_t Run(Env& env, AnyInput x, sdk::HostIntegers axes, AnyOutput y, sdk::Scratch<char> scratch) const {
    ReducePlan made;
    if (!plan) {
      if (const int32_t code = made.Make(x.shape(), axes, env.error()); code != WEIR_OK) return code;
    }
    const ReducePlan& p = plan ? *plan : made;
    if (y.size() != p.outputs) {
      return env.error().InvalidArgument("the reduction of ", x.shape(), " has ", p.outputs, " elements, the output ",
                                         y.shape());
    }
    int32_t code = WEIR_OK;
    WithStorage<kKinds>(x.dtype(), [&](auto storage) {
      code = ReduceAll<R, Map>(env, p, storage, x.data(), y.data(), x.dtype(), scratch.data());
    });
    return code;
  }
};

struct BiasAddGrad : functors::BiasGradPlan {
  ReducePlan plan;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = BiasGradPlan::Prepare(prep); code != WEIR_OK) return code;
    plan.outputs = view.channels;
    if (prep.size(0) == 0) {
      plan.reduced = 0;
      return WEIR_OK;
    }
    plan.reduced = view.outer * view.inner;
    functors::Walk& rows = plan.outer_reduced;
    rows.rank = 1;
    rows.count = rows.dims[0] = view.outer;
    rows.steps[0] = view.channels * view.inner;
    if (view.inner == 1) {
      plan.inner = view.channels;
    } else {
      plan.inner_reduced = true;
      plan.inner = view.inner;
      plan.outer_kept.rank = 1;
      plan.outer_kept.count = plan.outer_kept.dims[0] = view.channels;
      plan.outer_kept.steps[0] = view.inner;
    }
    prep.Scratch(PartBytes(plan.outputs, prep.size(0)));
    return WEIR_OK;
  }
  int32_t Run(Env& env, AnyInput dy, AnyOutput y, sdk::Scratch<char> scratch) const {
    int32_t code = WEIR_OK;
    WithStorage<kFloats | kIntegers | kComplexes>(dy.dtype(), [&](auto storage) {
      code = ReduceAll<functors::SumReducer, Same>(env, plan, storage, dy.data(), y.data(), dy.dtype(), scratch.data());
    });
    return code;
  }
};

/// Half the sum of the squares.
struct HalfSumReducer : functors::SumReducer {
  template <class T, class A>
  WEIR_HD static T Give(A total, int64_t) {
    return static_cast<T>(total / 2);
  }
};

/// The root of a sum, whose imaginary part is 0.
struct RootSumReducer : functors::SumReducer {
  template <class T, class A>
  WEIR_HD static T Give(A total, int64_t) {
    if constexpr (functors::kIsDeviceComplex<A>) {
      return T(Complex128(std::sqrt(total.re)));
    } else {
      return static_cast<T>(std::sqrt(total));
    }
  }
};

struct L2Loss {
  ReducePlan plan;

  int32_t Prepare(sdk::Prep& prep) {
    plan.inner_reduced = true;
    plan.inner = plan.reduced = prep.size(0);
    prep.Scratch(PartBytes(1, plan.reduced));
    return WEIR_OK;
  }
  int32_t Run(Env& env, AnyInput x, AnyOutput y, sdk::Scratch<char> scratch) const {
    int32_t code = WEIR_OK;
    WithStorage<kFloats>(x.dtype(), [&](auto storage) {
      code = ReduceAll<HalfSumReducer, Squared>(env, plan, storage, x.data(), y.data(), x.dtype(), scratch.data());
    });
    return code;
  }
};

}  // namespace

void AddReductions(sdk::KernelTable& k) {
  namespace f = functors;
  constexpr unsigned kReals = kFloats | kIntegers | kUnsigned64;
  const auto add = [](sdk::Kernel& kernel, uint64_t dtypes) { kernel.Restrict("T", dtypes).Class(WEIR_CLASS_REDUCE); };
  add(k.Add<Reduction<f::SumReducer, kFloats | kIntegers | kComplexes>>("Sum"), kNumberBits);
  add(k.Add<Reduction<f::MeanReducer, kReals | kComplexes>>("Mean"), kNumberBits);
  add(k.Add<Reduction<f::ProdReducer, kFloats | kIntegers | kComplexes>>("Prod"), kNumberBits);
  add(k.Add<Reduction<f::MaxReducer, kReals>>("Max"), kRealBits);
  add(k.Add<Reduction<f::MinReducer, kReals>>("Min"), kRealBits);
  k.Add<Reduction<f::AllReducer, kBools>>("All").Class(WEIR_CLASS_REDUCE);
  k.Add<Reduction<f::AnyReducer, kBools>>("Any").Class(WEIR_CLASS_REDUCE);
  add(k.Add<BiasAddGrad>("BiasAddGrad"), kNumberBits);
  constexpr unsigned kNormed = kFloats | kComplexes;
  add(k.Add<Reduction<RootSumReducer, kNormed, Squared>>("EuclideanNorm"), kFloatingBits | kComplexBits);
  add(k.Add<L2Loss>("L2Loss"), kFloatingBits);
}

}  // namespace weir::gpu
