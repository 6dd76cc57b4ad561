// Rows added where indices say: ScatterAdd, ScatterSub, ResourceScatterAdd, UnsortedSegmentSum.
#include <algorithm>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/elementwise.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Env;
using sdk::Integers;
using sdk::View;

/// to[i] += x[i], or -=, in the type that T computes in; x advances by `step`.
template <bool kAdd, class T>
void Accumulate(T* to, const T* x, int64_t step, int64_t n) {
  using C = sdk::Compute<T>;
  const auto combine = [](T a, T b) {
    const C p = static_cast<C>(a), q = static_cast<C>(b);
    return static_cast<T>(kAdd ? Sum(p, q) : Difference(p, q));
  };
  if (step == 0) {
    const T value = *x;
    for (int64_t i = 0; i < n; ++i) to[i] = combine(to[i], value);
  } else {
    WEIR_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) to[i] = combine(to[i], x[i]);
  }
}

/// Row i of `updates`, or the scalar that it is, goes into row indices[i] of the variable.
template <bool kAdd>
struct Scatter {
  bool scalar = false;
  int64_t limit = 0, row = 1;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &params = prep.shape(0), &indices = prep.shape(1), &updates = prep.shape(2);
    if (params.rank < 1) return prep.error().InvalidArgument("params must be at least 1-D, got shape ", params);
    scalar = updates.rank == 0;
    bool fits = scalar || updates.rank == indices.rank + params.rank - 1;
    for (uint32_t i = 0; fits && i < updates.rank; ++i) {
      fits = updates.dims[i] == (i < indices.rank ? indices.dims[i] : params.dims[i - indices.rank + 1]);
    }
    if (!fits) {
      return prep.error().InvalidArgument(
          "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], "
          "got updates.shape ",
          updates, ", indices.shape ", indices, ", params.shape ", params);
    }
    limit = params.dims[0];
    row = SizeOf(params, 1, params.rank);
    return WEIR_OK;
  }

  /// Nothing is changed when an index is out of range.
  template <class T>
  int32_t Run(Env& env, sdk::Variable<T> params, Integers indices, View<const T> updates) const {
    const int64_t n = indices.size();
    const auto bad = [&](int64_t i) { return indices[i] < 0 || indices[i] >= limit; };
    for (int64_t i = 0; i < n; ++i) {
      if (bad(i)) return IndexOutOfRange(env.error(), "indices", indices.shape(), i, indices[i], " is not in ", limit);
    }
    const T* from = updates.data();
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = indices[i];
      // The indices may be the very variable that is being changed.
      if (at < 0 || at >= limit)
        return IndexOutOfRange(env.error(), "indices", indices.shape(), i, at, " is not in ", limit);
      Accumulate<kAdd>(params.data() + at * row, from, scalar ? 0 : 1, row);
      if (!scalar) from += row;
    }
    return WEIR_OK;
  }
};

/// Row s is the sum of the rows whose id is s; negative ids drop theirs.
struct UnsortedSegmentSum {
  int64_t segments = 0, row = 1;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &data = prep.shape(0), &ids = prep.shape(1);
    if (const int32_t code = Steering(prep, 2, "num_segments", &segments); code != WEIR_OK) return code;
    if (segments < 0) {
      return prep.error().InvalidArgument("Input num_segments == ", segments, " must not be negative.");
    }
    bool fits = data.rank >= ids.rank;
    for (uint32_t i = 0; fits && i < ids.rank; ++i) fits = data.dims[i] == ids.dims[i];
    if (!fits) {
      return prep.error().InvalidArgument("data.shape = ", data, " does not start with segment_ids.shape = ", ids);
    }
    row = SizeOf(data, ids.rank, data.rank);
    std::vector<int64_t> wanted = {segments};
    wanted.insert(wanted.end(), data.dims + ids.rank, data.dims + data.rank);
    return ExpectOutput(prep, 0, wanted);
  }

  template <class T>
  int32_t Run(Env& env, View<const T> data, Integers ids, sdk::HostIntegers, View<T> output) const {
    std::fill(output.data(), output.data() + segments * row, T());
    const int64_t n = ids.size();
    const T* from = data.data();
    for (int64_t i = 0; i < n; ++i, from += row) {
      const int64_t segment = ids[i];
      if (segment < 0) continue;
      if (segment >= segments) {
        return IndexOutOfRange(env.error(), "segment_ids", ids.shape(), i, segment, " is out of range ", segments);
      }
      Accumulate<true>(output.data() + segment * row, from, 1, row);
    }
    return WEIR_OK;
  }
};

}  // namespace

void AddScatter(sdk::KernelTable& k) {
  k.Add<Scatter<true>>("ScatterAdd", kNumbers).Class(WEIR_CLASS_GATHER, 1);
  k.Add<Scatter<false>>("ScatterSub", kNumbers).Class(WEIR_CLASS_GATHER, 1);
  k.Add<Scatter<true>>("ResourceScatterAdd", sdk::Attr("dtype", kNumbers)).Class(WEIR_CLASS_GATHER, 1);
  k.Add<UnsortedSegmentSum>("UnsortedSegmentSum", kNumbers).Class(WEIR_CLASS_GATHER, 1);
}

}  // namespace weir::kernels_eigen
