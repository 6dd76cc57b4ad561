// Kernels along one axis: Cumsum, Cumprod, CumulativeLogsumexp, ArgMax, ArgMin, TopK.
#include <limits>

#include "plugins/functors/operands.h"
#include "plugins/functors/running.h"
#include "plugins/functors/top_k.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;
using sdk::HostIntegers;
using sdk::Prep;

/// An array as [outer, n, inner].
struct AlongAxis {
  int64_t outer = 1, n = 1, inner = 1;
  bool empty = false;

  void Find(const weir_shape& shape, int64_t axis) {
    for (int64_t i = 0; i < shape.rank; ++i) empty = empty || shape.dims[i] == 0;
    n = shape.dims[axis];
    for (int64_t i = 0; !empty && i < shape.rank; ++i) {
      if (i != axis) (i < axis ? outer : inner) *= shape.dims[i];
    }
  }
};

template <class Running, class S>
struct ScanWork {
  Ptr<const char> x;
  Ptr<char> y;
  int64_t n, inner;
  bool exclusive, reverse;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    using C = typename S::C;
    const int64_t first = i / inner * n * inner + i % inner;
    C total = Running::template None<C>();
    for (int64_t k = 0; k < n; ++k) {
      const int64_t at = first + (reverse ? n - 1 - k : k) * inner;
      const C before = total, value = storage.Load(x.get(), at);
      total = Running::Join(before, value);
      storage.Store(y.get(), at, exclusive ? before : total);
    }
  }
};

template <class Running, unsigned kKinds>
struct Scan {
  bool exclusive = false, reverse = false;

  void Prepare(Prep& prep) {
    exclusive = prep.node().Bool("exclusive");
    reverse = prep.node().Bool("reverse");
    prep.MayAlias(0, 0);
  }
  int32_t Run(Env& env, AnyInput x, HostIntegers axis_input, AnyOutput y) const {
    const int64_t rank = x.shape().rank;
    if (axis_input.shape().rank != 0) {
      return env.error().InvalidArgument("ScanOp: axis must be a scalar, not ", axis_input.shape());
    }
    const int64_t axis = axis_input[0] < 0 ? axis_input[0] + rank : axis_input[0];
    if (axis < 0 || axis >= rank) {
      return env.error().InvalidArgument("ScanOp: Expected scan axis in the range [", -rank, ", ", rank, "), but got ",
                                         axis_input[0]);
    }
    AlongAxis a;
    a.Find(x.shape(), axis);
    if (a.empty) return WEIR_OK;
    int32_t code = WEIR_OK;
    WithStorage<kKinds>(x.dtype(), [&](auto storage) {
      code = Launch(env, a.outer * a.inner,
                    ScanWork<Running, decltype(storage)>{From(x), To(y), a.n, a.inner, exclusive, reverse, storage});
    });
    return code;
  }
};

constexpr int kArgThreads = 128;

/// The first index of the extreme element of a row. NaN never wins, and the index is 0 if no element exceeds the least
/// finite number.
template <bool kMax, class S>
struct ArgWork {
  using C = typename S::C;
  Ptr<const char> x;
  Ptr<char> y;
  int64_t n, inner;
  C worst;
  S storage;
  Integer indices;

  WEIR_HD bool Better(C a, C b) const { return kMax ? a > b : a < b; }
  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    C* const best = block.template Shared<C>(0);
    int64_t* const at = block.template Shared<int64_t>(kArgThreads * 8);
    const int64_t first = block.index() / inner * n * inner + block.index() % inner;
    block.ForEachThread([&](int t) {
      C value = worst;
      int64_t place = 0;
      for (int64_t k = t; k < n; k += block.threads()) {
        const C next = storage.Load(x.get(), first + k * inner);
        if (!Better(next, value)) continue;
        value = next;
        place = k;
      }
      best[t] = value;
      at[t] = place;
    });
    block.ForEachThread([&](int t) {
      if (t != 0) return;
      C value = worst;
      int64_t place = 0;
      for (int i = 0; i < block.threads(); ++i) {
        const bool wins = Better(best[i], value) || (Better(best[i], worst) && best[i] == value && at[i] < place);
        if (!wins) continue;
        value = best[i];
        place = at[i];
      }
      indices.Store(y.get(), block.index(), place);
    });
  }
};

template <bool kMax>
struct ArgReduce {
  int32_t Run(Env& env, AnyInput x, HostIntegers dimension, AnyOutput y) const {
    const int64_t rank = x.shape().rank;
    if (dimension.size() != 1) {
      return env.error().InvalidArgument("dim must be a scalar, but received tensor of shape: ", dimension.shape());
    }
    const int64_t axis = dimension[0] < 0 ? dimension[0] + rank : dimension[0];
    if (axis < 0 || axis >= rank) {
      return env.error().InvalidArgument("Expected dimension in the range [", -rank, ", ", rank, "), but got ",
                                         dimension[0]);
    }
    AlongAxis a;
    a.Find(x.shape(), axis);
    const int64_t rows = y.size();
    if (a.n == 0 && rows != 0) {
      return env.error().InvalidArgument("Reduction axis ", dimension[0], " is empty in shape ", x.shape());
    }
    if (a.empty) return WEIR_OK;
    int32_t code = WEIR_OK;
    WithStorage<kFloats | kIntegers | kUnsigned64 | kBools>(x.dtype(), [&](auto storage) {
      using C = typename decltype(storage)::C;
      const C worst = kMax ? std::numeric_limits<C>::lowest() : std::numeric_limits<C>::max();
      const int threads = a.n >= 64 ? kArgThreads : 1;
      code = LaunchBlocks(env, rows, threads, kArgThreads * 16,
                          ArgWork<kMax, decltype(storage)>{From(x), To(y), a.n, a.inner, worst, storage, {y.dtype()}});
    });
    return code;
  }
};

constexpr int kTopThreads = 128;

/// The k largest elements of a row, one in each round: the best of those behind the last one found.
template <class S>
struct TopWork {
  using C = typename S::C;
  Ptr<const char> x;
  Ptr<char> values, indices;
  int64_t columns, k;
  S storage;
  Integer index_storage;

  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    // The place found last, then the best place of each thread; -1 for none.
    int64_t* const places = block.template Shared<int64_t>(0);
    const char* const from = x.get();
    const int64_t first = block.index() * columns, out = block.index() * k;
    for (int64_t round = 0; round < k; ++round) {
      block.ForEachThread([&](int t) {
        int64_t best = -1;
        for (int64_t i = t; i < columns; i += block.threads()) {
          if (round > 0 && !Before(from, first, places[0], i)) continue;
          if (best < 0 || Before(from, first, i, best)) best = i;
        }
        places[1 + t] = best;
      });
      block.ForEachThread([&](int t) {
        if (t != 0) return;
        int64_t best = -1;
        for (int i = 1; i <= block.threads(); ++i) {
          if (places[i] >= 0 && (best < 0 || Before(from, first, places[i], best))) best = places[i];
        }
        places[0] = best;
        storage.Store(values.get(), out + round, storage.Load(from, first + best));
        index_storage.Store(indices.get(), out + round, best);
      });
    }
  }
  /// True if element i of the row comes before element j.
  WEIR_GPU_FN bool Before(const char* from, int64_t first, int64_t i, int64_t j) const {
    return functors::ComesFirst(storage.Load(from, first + i), storage.Load(from, first + j), i, j);
  }
};

struct Tops : functors::TopKPlan {
  int32_t Find(const Env& env, const AnyInput& x, const AnyOutput& values, const AnyOutput& indices) const {
    if (columns == 0 || k == 0) return WEIR_OK;
    int32_t code = WEIR_OK;
    WithStorage<kFloats | kIntegers | kUnsigned64>(x.dtype(), [&](auto storage) {
      const int threads = columns >= 64 ? kTopThreads : 1;
      code = LaunchBlocks(
          env, rows, threads, (1 + kTopThreads) * sizeof(int64_t),
          TopWork<decltype(storage)>{From(x), To(values), To(indices), columns, k, storage, {indices.dtype()}});
    });
    return code;
  }
};
struct TopK : Tops {
  int32_t Prepare(Prep& prep) { return Plan(prep, prep.node().Int("k")); }
  int32_t Run(Env& env, AnyInput x, AnyOutput values, AnyOutput indices) const { return Find(env, x, values, indices); }
};
struct TopKV2 : Tops {
  int32_t Prepare(Prep& prep) {
    if (prep.shape(1).rank != 0) return prep.error().InvalidArgument("k must be scalar, got shape ", prep.shape(1));
    int64_t count = 0;
    const int32_t code = functors::Steering(prep, 1, "k", &count);
    return code != WEIR_OK ? code : Plan(prep, count);
  }
  int32_t Run(Env& env, AnyInput x, HostIntegers, AnyOutput values, AnyOutput indices) const {
    return Find(env, x, values, indices);
  }
};

}  // namespace

void AddScans(sdk::KernelTable& k) {
  constexpr unsigned kNumbers = kFloats | kIntegers | kComplexes;
  k.Add<Scan<functors::RunningSum, kNumbers>>("Cumsum").Restrict("T", kNumberBits).Class(WEIR_CLASS_SORT);
  k.Add<Scan<functors::RunningProduct, kNumbers>>("Cumprod").Restrict("T", kNumberBits).Class(WEIR_CLASS_SORT);
  k.Add<Scan<functors::RunningLogarithm, kFloats>>("CumulativeLogsumexp")
      .Restrict("T", kFloatingBits)
      .Class(WEIR_CLASS_SORT, 40);
  k.Add<ArgReduce<true>>("ArgMax")
      .Restrict("T", kRealBits | kBoolBits)
      .Restrict("output_type", {WEIR_INT32, WEIR_INT64, WEIR_INT16, WEIR_UINT16})
      .Class(WEIR_CLASS_REDUCE);
  k.Add<ArgReduce<false>>("ArgMin")
      .Restrict("T", kRealBits | kBoolBits)
      .Restrict("output_type", kIndexBits)
      .Class(WEIR_CLASS_REDUCE);
  k.Add<TopK>("TopK").Restrict("T", kRealBits).Class(WEIR_CLASS_REDUCE, 10);
  k.Add<TopKV2>("TopKV2")
      .Restrict("T", kRealBits)
      .Restrict("index_type", {WEIR_INT16, WEIR_INT32, WEIR_INT64})
      .Class(WEIR_CLASS_REDUCE, 10);
}

}  // namespace weir::gpu
