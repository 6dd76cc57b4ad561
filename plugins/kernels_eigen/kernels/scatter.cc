// Updates of rows given by indices: Scatter… and ResourceScatter…, their Nd forms, ScatterNd, UnsortedSegmentSum.
#include <algorithm>
#include <array>
#include <string>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/places.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/elementwise.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Env;
using sdk::Integers;
using sdk::View;

// Functions that combine an element with its update.
struct Replace {
  template <class T>
  T operator()(T, T y) const {
    return y;
  }
};
struct Either {
  sdk::boolean operator()(bool x, bool y) const { return x || y; }
};
struct Divide {
  template <class T>
  T operator()(T x, T y) const {
    return Quotient(x, y);
  }
};
struct Lower {
  template <class T>
  T operator()(T x, T y) const {
    return Smaller(x, y);
  }
};
struct Raise {
  template <class T>
  T operator()(T x, T y) const {
    return Larger(x, y);
  }
};

/// to[i] = change(to[i], x[i]) in the compute type of T; x advances by `step`, 0 or 1.
template <class Change, class T>
void Merge(T* to, const T* x, int64_t step, int64_t n) {
  using C = sdk::Compute<T>;
  const auto combine = [](T a, T b) { return static_cast<T>(Change()(static_cast<C>(a), static_cast<C>(b))); };
  if (step == 0) {
    const T value = *x;
    for (int64_t i = 0; i < n; ++i) to[i] = combine(to[i], value);
  } else {
    WEIR_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) to[i] = combine(to[i], x[i]);
  }
}

/// Applies row i of `updates`, or its single scalar, to place i, in order.
template <class Change, class T>
int32_t Put(Env& env, const Places& places, T* to, const Integers& indices, const View<const T>& updates) {
  if constexpr (std::is_same_v<Change, Divide> && std::is_integral_v<T>) {
    for (int64_t i = 0, n = updates.size(); i < n; ++i) {
      if (updates[i] == 0) return env.error().InvalidArgument("Integer division by zero");
    }
  }
  const int64_t step = updates.rank() == 0 ? 0 : 1;
  const T* from = updates.data();
  for (int64_t i = 0; i < places.count; ++i) {
    const int64_t at = places.At(indices, i);
    // The indices may alias the variable that is being changed.
    if (at < 0) return places.Refuse(env.error(), indices, i);
    Merge<Change>(to + at, from, step, places.row);
    from += step * places.row;
  }
  return WEIR_OK;
}

/// Updates a variable row by row. Nothing is changed if an index is out of range.
template <class Change>
struct ScatterRows {
  Places places;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &params = prep.shape(0), &indices = prep.shape(1), &updates = prep.shape(2);
    if (params.rank < 1) return prep.error().InvalidArgument("params must be at least 1-D, got shape ", params);
    bool fits = updates.rank == 0 || updates.rank == indices.rank + params.rank - 1;
    for (uint32_t i = 0; fits && i < updates.rank; ++i) {
      fits = updates.dims[i] == (i < indices.rank ? indices.dims[i] : params.dims[i - indices.rank + 1]);
    }
    if (!fits) {
      return prep.error().InvalidArgument(
          "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], "
          "got updates.shape ",
          updates, ", indices.shape ", indices, ", params.shape ", params);
    }
    places = Places::OfRows(params, indices);
    return WEIR_OK;
  }

  template <class T>
  int32_t Run(Env& env, sdk::Variable<T> params, Integers indices, View<const T> updates) const {
    if (const int32_t code = places.Check(env.error(), indices); code != WEIR_OK) return code;
    return Put<Change>(env, places, params.data(), indices, updates);
  }
};

/// InvalidArgument unless `updates` has one slice of `target` for each coordinate.
int32_t CheckSlices(const sdk::Error& error, const weir_shape& target, const weir_shape& indices,
                    const weir_shape& updates) {
  if (indices.rank < 1) return error.InvalidArgument("Indices shape must have rank at least one. Found:", indices);
  if (updates.rank < 1) return error.InvalidArgument("Updates shape must have rank at least one. Found:", updates);
  if (SizeOf(target, 0, target.rank) == 0 && SizeOf(indices, 0, indices.rank) != 0) {
    return error.InvalidArgument("Indices and updates specified for empty output.  indices shape: ", indices);
  }
  const uint32_t outer = indices.rank - 1;
  const int64_t depth = indices.dims[outer], rank = target.rank;
  for (uint32_t i = 0; i < outer; ++i) {
    if (i < updates.rank && indices.dims[i] == updates.dims[i]) continue;
    return error.InvalidArgument("Dimensions [0,", outer, ") of indices[shape=", indices, "] must match dimensions [0,",
                                 outer, ") of updates[shape=", updates, "]");
  }
  bool fits = depth <= rank && updates.rank - outer == target.rank - static_cast<uint32_t>(depth);
  for (uint32_t i = outer; fits && i < updates.rank; ++i) {
    fits = updates.dims[i] == target.dims[i - outer + static_cast<uint32_t>(depth)];
  }
  if (fits) return WEIR_OK;
  return error.InvalidArgument("Dimensions [", depth, ",", rank, ") of input[shape=", target,
                               "] must match dimensions [", outer, ",", updates.rank, ") of updates[shape=", updates,
                               "]");
}

/// The same for slices at coordinates.
template <class Change>
struct ScatterSlices {
  Places places;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &params = prep.shape(0), &indices = prep.shape(1);
    if (const int32_t code = CheckSlices(prep.error(), params, indices, prep.shape(2)); code != WEIR_OK) return code;
    places = Places::OfSlices(params, indices);
    return WEIR_OK;
  }

  template <class T>
  int32_t Run(Env& env, sdk::Variable<T> params, Integers indices, View<const T> updates) const {
    if (const int32_t code = places.Check(env.error(), indices); code != WEIR_OK) return code;
    return Put<Change>(env, places, params.data(), indices, updates);
  }
};

/// Adds slices to zeros.
template <class Change>
struct ScatterNd {
  Places places;

  int32_t Prepare(sdk::Prep& prep) {
    std::vector<int64_t> dims;
    if (const int32_t code = Steering(prep, 2, &dims); code != WEIR_OK) return code;
    if (const int32_t code = ExpectOutput(prep, 0, dims); code != WEIR_OK) return code;
    const weir_shape &out = prep.output(0).shape, &indices = prep.shape(0);
    if (const int32_t code = CheckSlices(prep.error(), out, indices, prep.shape(1)); code != WEIR_OK) return code;
    places = Places::OfSlices(out, indices);
    return WEIR_OK;
  }

  template <class T>
  int32_t Run(Env& env, Integers indices, View<const T> updates, sdk::HostIntegers, View<T> output) const {
    std::fill_n(output.data(), output.size(), T());
    return Put<Change>(env, places, output.data(), indices, updates);
  }
};

/// Row s is the sum of the rows with id s; rows with negative ids are dropped.
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
      Merge<Add>(output.data() + segment * row, from, 1, row);
    }
    return WEIR_OK;
  }
};

/// Registers the row forms, for references and for handles.
template <class Change, class List>
void AddRows(sdk::KernelTable& k, const std::string& name, List list) {
  k.Add<ScatterRows<Change>>("Scatter" + name, list).Class(WEIR_CLASS_GATHER, 1);
  k.Add<ScatterRows<Change>>("ResourceScatter" + name, sdk::Attr("dtype", list)).Class(WEIR_CLASS_GATHER, 1);
}
template <class Change, class List>
void AddSlices(sdk::KernelTable& k, const std::string& name, List list) {
  k.Add<ScatterSlices<Change>>("ScatterNd" + name, list).Class(WEIR_CLASS_GATHER, 1);
  k.Add<ScatterSlices<Change>>("ResourceScatterNd" + name, list).Class(WEIR_CLASS_GATHER, 1);
}

}  // namespace

void AddScatter(sdk::KernelTable& k) {
  AddRows<Replace>(k, "Update", kAnyBits);
  AddRows<Add>(k, "Add", kNumbers);
  AddRows<Sub>(k, "Sub", kNumbers);
  AddRows<Mul>(k, "Mul", kNumbers);
  AddRows<Divide>(k, "Div", kNumbers);
  AddRows<Lower>(k, "Min", kFloating + kIndex);
  AddRows<Raise>(k, "Max", kFloating + kIndex);
  AddSlices<Replace>(k, "Update", kAnyBits);
  AddSlices<Add>(k, "Add", kNumbers);
  AddSlices<Sub>(k, "Sub", kNumbers);
  k.Add<ScatterNd<Add>>("ScatterNd", kNumbers).Class(WEIR_CLASS_GATHER, 1);
  k.Add<ScatterNd<Either>>("ScatterNd", kBool).Class(WEIR_CLASS_GATHER, 1);
  k.Add<UnsortedSegmentSum>("UnsortedSegmentSum", kNumbers).Class(WEIR_CLASS_GATHER, 1);
}

}  // namespace weir::kernels_eigen
