// Reductions of the rows of a segment: segments in order, and segments by id in any order.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "plugins/functors/row_plans.h"
#include "plugins/functors/segment_rules.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/row_fetch.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/elementwise.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Context;
using sdk::Env;
using sdk::Integers;
using sdk::View;

// A rule has the value of an empty segment, in order or by id, and combines the segment's value with a row's.
struct SumRule {
  template <class T>
  static T Empty() {
    return T();
  }
  template <class C>
  static C With(C all, C x) {
    return Sum(all, x);
  }
};
struct ProductRule {
  template <class T>
  static T Empty() {
    return T(1);
  }
  template <class C>
  static C With(C all, C x) {
    return Product(all, x);
  }
};
struct MaxRule {
  template <class T>
  static T Empty() {
    return std::is_integral_v<T> ? std::numeric_limits<T>::lowest() : T(-Largest<T>());
  }
  template <class C>
  static C With(C all, C x) {
    return functors::SegmentLargest()(all, x);
  }

  /// The largest finite number.
  template <class T>
  static sdk::Compute<T> Largest() {
    if constexpr (std::is_same_v<T, sdk::half>) {
      return 65504.0f;
    } else if constexpr (std::is_same_v<T, sdk::bfloat16>) {
      return 0x1.fep127f;
    } else {
      return std::numeric_limits<T>::max();
    }
  }
};
struct MinRule {
  template <class T>
  static T Empty() {
    return T(MaxRule::Largest<T>());
  }
  template <class C>
  static C With(C all, C x) {
    return functors::SegmentSmallest()(all, x);
  }
};

/// all[i] = rule(all[i], x[i]).
template <class Rule, class C, class T>
void Combine(C* all, const T* x, int64_t n) {
  WEIR_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) all[i] = Rule::With(all[i], static_cast<C>(x[i]));
}

/// all[i] / count; integers are divided towards zero.
template <class C>
void DivideBy(C* all, int64_t n, int64_t count) {
  if constexpr (std::is_integral_v<C>) {
    // The count may be beyond the type, whose quotient is then taken in 64 bits.
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_unsigned_v<C>) {
        all[i] = static_cast<C>(static_cast<uint64_t>(all[i]) / static_cast<uint64_t>(count));
      } else {
        all[i] = static_cast<C>(static_cast<int64_t>(all[i]) / count);
      }
    }
  } else {
    const C by = static_cast<C>(static_cast<double>(count));
    for (int64_t i = 0; i < n; ++i) all[i] /= by;
  }
}

/// Segments in order: row s of the output is that of the rows with id s; 0, or 1 of products, where there are none.
template <class Rule, bool kMean = false>
struct Segments {
  template <class T>
  int32_t Compute(Context& ctx) {
    View<const T> data;
    Integers ids;
    if (const int32_t code = ctx.Input(0, &data); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &ids); code != WEIR_OK) return code;
    const sdk::Error& error = ctx.error();
    if (data.rank() < 1) return error.InvalidArgument("input must be at least rank 1");
    if (ids.rank() != 1) return error.InvalidArgument("segment_ids should be a vector.");
    const int64_t n = ids.size();
    if (n != data.dim(0)) {
      return error.InvalidArgument("segment_ids should be the same size as dimension 0 of input.");
    }
    const int64_t last = n == 0 ? -1 : ids[n - 1];
    if (n > 0 && (last < 0 || last == std::numeric_limits<int64_t>::max())) {
      return error.InvalidArgument("segment ids must be >= 0");
    }
    const int64_t segments = last + 1;
    for (int64_t i = 0; i < n; ++i) {
      if (i + 1 < n && ids[i + 1] < ids[i]) return error.InvalidArgument("segment ids are not increasing");
      if (ids[i] < 0 || ids[i] >= segments) {
        return error.InvalidArgument("Segment id ", ids[i], " out of range [0, ", segments,
                                     "), possibly because 'segment_ids' input is not sorted.");
      }
    }
    std::vector<int64_t> dims = DimsOf(data.shape());
    dims[0] = segments;
    View<T> output;
    if (const int32_t code = ctx.Output(0, {static_cast<uint32_t>(dims.size()), 0, dims.data()}, &output);
        code != WEIR_OK) {
      return code;
    }
    if (output.size() != 0) Reduce(data.data(), ids, n, output.data(), SizeOf(data.shape(), 1, data.rank()));
    return WEIR_OK;
  }

 private:
  template <class T>
  static void Reduce(const T* from, const Integers& ids, int64_t n, T* to, int64_t row) {
    using C = sdk::Compute<T>;
    const T empty = std::is_same_v<Rule, ProductRule> ? T(1) : T();
    std::vector<C> all(static_cast<size_t>(row));
    int64_t next = 0;  // segment that was not written yet
    for (int64_t i = 0; i < n;) {
      const int64_t segment = ids[i], begin = i;
      std::fill(to + next * row, to + segment * row, empty);
      for (int64_t k = 0; k < row; ++k) all[static_cast<size_t>(k)] = static_cast<C>(from[i * row + k]);
      for (++i; i < n && ids[i] == segment; ++i) Combine<Rule>(all.data(), from + i * row, row);
      if constexpr (kMean) DivideBy(all.data(), row, i - begin);
      for (int64_t k = 0; k < row; ++k) to[segment * row + k] = static_cast<T>(all[static_cast<size_t>(k)]);
      next = segment + 1;
    }
  }
};

template <class Rule>
struct UnsortedSegments : functors::UnsortedSegmentsPlan {
  template <class T>
  int32_t Run(Env& env, View<const T> data, Integers ids, sdk::HostIntegers, View<T> output) const {
    const int64_t size = output.size(), n = ids.size();
    std::fill_n(output.data(), size, Rule::template Empty<T>());
    const RowFetch<RowUse::kWrite> fetch(static_cast<size_t>(row) * sizeof(T), static_cast<size_t>(size) * sizeof(T));
    const T* from = data.data();
    for (int64_t i = 0; i < n; ++i, from += row) {
      if (fetch && i + fetch.kAhead < n) {
        const int64_t next = ids[i + fetch.kAhead];
        if (next >= 0 && next < segments) fetch(output.data() + next * row);
      }
      const int64_t segment = ids[i];
      if (segment < 0) continue;
      if (segment >= segments) {
        return IndexOutOfRange(env.error(), "segment_ids", ids.shape(), i, segment, " is out of range ", segments);
      }
      Add(output.data() + segment * row, from, row);
    }
    return WEIR_OK;
  }

 private:
  template <class T>
  static void Add(T* to, const T* from, int64_t n) {
    using C = sdk::Compute<T>;
    WEIR_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      to[i] = static_cast<T>(Rule::With(static_cast<C>(to[i]), static_cast<C>(from[i])));
    }
  }
};

}  // namespace

void AddSegments(sdk::KernelTable& k) {
  k.Add<Segments<SumRule>>("SegmentSum", kNumbers).Class(WEIR_CLASS_GATHER, 1);
  k.Add<Segments<SumRule, true>>("SegmentMean", kNumbers).Class(WEIR_CLASS_GATHER, 1);
  k.Add<Segments<ProductRule>>("SegmentProd", kNumbers).Class(WEIR_CLASS_GATHER, 1);
  k.Add<Segments<MaxRule>>("SegmentMax", kReal).Class(WEIR_CLASS_GATHER, 1);
  k.Add<Segments<MinRule>>("SegmentMin", kReal).Class(WEIR_CLASS_GATHER, 1);
  k.Add<UnsortedSegments<SumRule>>("UnsortedSegmentSum", kNumbers).Class(WEIR_CLASS_GATHER, 1);
  k.Add<UnsortedSegments<ProductRule>>("UnsortedSegmentProd", kNumbers).Class(WEIR_CLASS_GATHER, 1);
  k.Add<UnsortedSegments<MaxRule>>("UnsortedSegmentMax", kReal).Class(WEIR_CLASS_GATHER, 1);
  k.Add<UnsortedSegments<MinRule>>("UnsortedSegmentMin", kReal).Class(WEIR_CLASS_GATHER, 1);
}

}  // namespace weir::kernels_eigen
