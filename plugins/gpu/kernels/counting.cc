// Counts of values, places in sorted rows, and packed comparisons. As in TensorFlow's kernels for GPUs, values that
// cannot be counted are not reported: they count nowhere.
#include "plugins/functors/counting_plans.h"

#include <cmath>

#include "plugins/functors/arithmetic.h"
#include "plugins/gpu/kernels/changed_rows.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/sorting.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;
using sdk::Host;
using sdk::HostIntegers;
using sdk::Prep;
using sdk::View;

/// The counter of value i: those of a row lie behind each other.
struct BinKey {
  Indices values;
  int64_t row, bins;
  WEIR_GPU_FN uint64_t operator()(int64_t i) const {
    const int64_t value = values[i];
    return value >= 0 && value < bins ? static_cast<uint64_t>(i / row * bins + value) : kNowhere;
  }
};
/// The first value of a counter counts all of them, in their order.
template <class T>
struct CountBinsWork {
  Ptr<const KeyedPlace> order;
  Ptr<const T> weights;  // null: ones
  Ptr<T> counts;
  int64_t n;
  bool binary;
  WEIR_GPU_FN void operator()(int64_t k) const {
    const uint64_t key = order[k].key;
    if (key == kNowhere || (k > 0 && order[k - 1].key == key)) return;
    T sum = T(0);
    for (int64_t i = k; i < n && order[i].key == key; ++i) {
      sum = binary ? T(1) : functors::Sum(sum, weights ? weights[order[i].place] : T(1));
    }
    counts[static_cast<int64_t>(key)] = sum;
  }
};
template <class T>
int32_t CountBins(const Env& env, const BinKey& key, int64_t n, const View<const T>& weights, bool weighted,
                  bool binary, const View<T>& counts, void* scratch) {
  const uint64_t bytes = static_cast<uint64_t>(counts.size()) * sizeof(T);
  int32_t code = Fill(env, counts.data(), 0, bytes);
  if (code != WEIR_OK || n == 0 || bytes == 0) return code;
  code = SortPlaces(StreamOf(env), n, scratch, key, env.error());
  if (code != WEIR_OK) return code;
  const Ptr<const KeyedPlace> order(static_cast<const KeyedPlace*>(scratch));
  const Ptr<const T> by(weighted ? weights.data() : nullptr);
  return Launch(env, n, CountBinsWork<T>{order, by, counts.data(), n, binary});
}

struct Bincount : functors::BincountPlan {
  int32_t Prepare(Prep& prep) {
    const int32_t code = BincountPlan::Prepare(prep);
    if (code == WEIR_OK && prep.size(0) > 0) prep.Scratch(SortBytes(prep.size(0)));
    return code;
  }
  template <class T>
  int32_t Run(Env& env, AnyInput values, HostIntegers, View<const T> weights, View<T> counts,
              sdk::Scratch<char> scratch) const {
    const int64_t n = values.size();
    return CountBins(env, BinKey{Indices(values), std::max<int64_t>(n, 1), bins}, n, weights, weighted, false, counts,
                     scratch.data());
  }
};
struct DenseBincount : functors::DenseBincountPlan {
  int32_t Prepare(Prep& prep) {
    const int32_t code = DenseBincountPlan::Prepare(prep);
    if (code == WEIR_OK && rows * row > 0) prep.Scratch(SortBytes(rows * row));
    return code;
  }
  template <class T>
  int32_t Run(Env& env, AnyInput values, HostIntegers, View<const T> weights, View<T> counts,
              sdk::Scratch<char> scratch) const {
    return CountBins(env, BinKey{Indices(values), std::max<int64_t>(row, 1), bins}, rows * row, weights, weighted,
                     binary, counts, scratch.data());
  }
};

template <class T, class O>
struct HistogramWork {
  Ptr<const T> values;
  Ptr<O> counts;
  double from, step;
  int64_t bins;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const auto x = static_cast<double>(values[i]);
    if (x != x) return;
    const double place = (x - from) / step;  // NaN if the range has no end
    const int64_t at = place >= static_cast<double>(bins) ? bins - 1 : place > 0 ? static_cast<int64_t>(place) : 0;
    AtomicAdd(counts.get() + at, O(1));
  }
};
struct Histogram : functors::HistogramPlan {
  template <class T, class O>
  int32_t Run(Env& env, View<const T> values, Host<const T> range, HostIntegers, View<O> counts) const {
    const T low = range[0], high = range[1];
    if (!(low < high)) {
      return env.error().InvalidArgument("value_range should satisfy value_range[0] < value_range[1], but got '[", low,
                                         ", ", high, "]'");
    }
    const int32_t code = Fill(env, counts.data(), 0, static_cast<uint64_t>(bins) * sizeof(O));
    if (code != WEIR_OK) return code;
    const double from = static_cast<double>(low);
    const double step = (static_cast<double>(high) - from) / static_cast<double>(bins);
    return Launch(env, values.size(), HistogramWork<T, O>{values.data(), counts.data(), from, step, bins});
  }
};

/// Boundaries travel as arguments of the kernel.
struct Boundaries {
  static constexpr size_t kMost = 512;
  int64_t count = 0;
  float at[kMost] = {};
};
template <class T>
struct BucketWork {
  Ptr<const T> x;
  Ptr<int32_t> y;
  Boundaries boundaries;
  WEIR_GPU_FN void operator()(int64_t i) const {
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const auto value = static_cast<Wide>(x[i]);
    int64_t begin = 0, end = boundaries.count;
    while (begin < end) {
      const int64_t middle = begin + (end - begin) / 2;
      if (value < static_cast<Wide>(boundaries.at[middle])) {
        end = middle;
      } else {
        begin = middle + 1;
      }
    }
    y[i] = static_cast<int32_t>(begin);
  }
};
struct Bucketize : functors::BucketizePlan {
  int32_t Prepare(Prep& prep) {
    const int32_t code = BucketizePlan::Prepare(prep);
    if (code != WEIR_OK || boundaries.size() <= Boundaries::kMost) return code;
    return prep.error().Unimplemented("more than ", Boundaries::kMost, " boundaries");
  }
  template <class T>
  int32_t Run(Env& env, View<const T> x, View<int32_t> y) const {
    BucketWork<T> work{x.data(), y.data(), {}};
    work.boundaries.count = static_cast<int64_t>(boundaries.size());
    std::copy(boundaries.begin(), boundaries.end(), work.boundaries.at);
    return Launch(env, x.size(), work);
  }
};

template <class S, bool kUpper>
struct BoundWork {
  Ptr<const char> sorted, values;
  Ptr<char> y;
  int64_t row, values_row;
  S storage;
  Integer places;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t first = i / values_row * row;
    const auto value = storage.Load(values.get(), i);
    int64_t begin = 0, end = row;
    while (begin < end) {
      const int64_t middle = begin + (end - begin) / 2;
      const auto x = storage.Load(sorted.get(), first + middle);
      if (kUpper ? !(value < x) : x < value) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    places.Store(y.get(), i, begin);
  }
};
template <bool kUpper>
struct Bound : functors::BoundPlan {
  int32_t Run(Env& env, AnyInput sorted, AnyInput values, AnyOutput y) const {
    if (functors::HasNoElements(y.shape())) return WEIR_OK;
    int32_t code = WEIR_OK;
    WithStorage<kFloats | kIntegers | kUnsigned64>(values.dtype(), [&](auto storage) {
      using Work = BoundWork<decltype(storage), kUpper>;
      code = Launch(env, y.size(), Work{From(sorted), From(values), To(y), row, values_row, storage, {y.dtype()}});
    });
    return code;
  }
};

/// Truth values are packed as they are, whatever the threshold is.
template <class S>
struct PackWork {
  Ptr<const char> x, threshold;
  Ptr<uint8_t> y;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const auto limit = storage.Load(threshold.get(), 0);
    unsigned bits = 0;
    for (int64_t k = 0; k < 8; ++k) {
      const auto value = storage.Load(x.get(), 8 * i + k);
      const bool set = std::is_same_v<S, Boolean> ? static_cast<bool>(value) : value > limit;
      bits = bits << 1 | (set ? 1u : 0u);
    }
    y[i] = static_cast<uint8_t>(bits);
  }
};
struct CompareAndBitpack : functors::CompareAndBitpackPlan {
  int32_t Run(Env& env, AnyInput x, AnyInput threshold, View<uint8_t> y) const {
    int32_t code = WEIR_OK;
    WithStorage<kFloats | kIntegers | kBools>(x.dtype(), [&](auto storage) {
      code = Launch(env, y.size(), PackWork<decltype(storage)>{From(x), From(threshold), y.data(), storage});
    });
    return code;
  }
};

struct HitsWork {
  Ptr<const float> predictions;
  Indices targets;
  Ptr<const char> k;  // null: `given`
  Integer k_storage;
  int64_t given, classes;
  Ptr<char> hits;
  WEIR_GPU_FN void operator()(int64_t row) const {
    const int64_t target = targets[row], first = row * classes;
    bool known = target >= 0 && target < classes;
    int64_t larger = 0;
    for (int64_t i = 0; known && i < classes; ++i) {
      const float x = predictions[first + i];
      known = x - x == 0;
      larger += x > predictions[first + target] ? 1 : 0;
    }
    Boolean().Store(hits.get(), row, known && larger < (k ? k_storage.Load(k.get(), 0) : given));
  }
};
struct InTopK : functors::HitsPlan {
  int64_t k = 0;
  int32_t Prepare(Prep& prep) {
    k = prep.node().Int("k");
    return Plan(prep);
  }
  int32_t Run(Env& env, View<const float> predictions, AnyInput targets, AnyOutput hits) const {
    return Launch(env, hits.size(),
                  HitsWork{predictions.data(), Indices(targets), nullptr, {}, k, classes, To(hits)});
  }
};
struct InTopKV2 : functors::HitsPlan {
  int32_t Prepare(Prep& prep) {
    if (prep.shape(2).rank != 0) return prep.error().InvalidArgument("k must be 0-D, got shape ", prep.shape(2));
    return Plan(prep);
  }
  int32_t Run(Env& env, View<const float> predictions, AnyInput targets, AnyInput k, AnyOutput hits) const {
    return Launch(env, hits.size(),
                  HitsWork{predictions.data(), Indices(targets), From(k), {k.dtype()}, 0, classes, To(hits)});
  }
};

}  // namespace

void AddCounting(sdk::KernelTable& k) {
  constexpr sdk::Types<float, double, int32_t, int64_t> kCounted;
  constexpr sdk::Types<int32_t, int64_t> kCounters;
  const uint64_t packed = kFloatBits | kSignedBits | kBoolBits | (k16BitBits & WEIR_DTYPE_BIT(WEIR_FLOAT16));
  k.Add<Bincount>("Bincount", kCounted).Class(WEIR_CLASS_SORT);
  k.Add<DenseBincount>("DenseBincount", kCounted).Restrict("Tidx", kIndexBits).Class(WEIR_CLASS_SORT);
  k.Add<Histogram>("HistogramFixedWidth", kCounted, sdk::Attr("dtype", kCounters)).Class(WEIR_CLASS_GATHER);
  k.Add<Bucketize>("Bucketize", kCounted).Class(WEIR_CLASS_GATHER);
  k.Add<Bound<false>>("LowerBound").Restrict("T", kRealBits).Restrict("out_type", kIndexBits).Class(WEIR_CLASS_SORT);
  k.Add<Bound<true>>("UpperBound").Restrict("T", kRealBits).Restrict("out_type", kIndexBits).Class(WEIR_CLASS_SORT);
  k.Add<CompareAndBitpack>("CompareAndBitpack").Restrict("T", packed).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<InTopK>("InTopK").Class(WEIR_CLASS_REDUCE, 2);
  k.Add<InTopKV2>("InTopKV2").Class(WEIR_CLASS_REDUCE, 2);
}

}  // namespace weir::gpu
