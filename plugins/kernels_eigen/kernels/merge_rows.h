// Changes of slices at places given by indices, shared by the scatters into variables and into tensors.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_MERGE_ROWS_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_MERGE_ROWS_H_

#include <type_traits>

#include "plugins/kernels_eigen/places.h"
#include "plugins/kernels_eigen/row_fetch.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/elementwise.h"

namespace weir::kernels_eigen {

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
struct Differs {
  sdk::boolean operator()(bool x, bool y) const { return x != y; }
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

/// Applies row i of `updates`, or its single scalar, to place i of `to`, in order. `size` is the number of elements of
/// `to`.
template <class Change, class T>
int32_t Put(sdk::Env& env, const Places& places, T* to, int64_t size, const sdk::Integers& indices,
            const sdk::View<const T>& updates) {
  if constexpr (std::is_same_v<Change, Divide> && std::is_integral_v<T>) {
    for (int64_t i = 0, n = updates.size(); i < n; ++i) {
      if (updates[i] == 0) return env.error().InvalidArgument("updates must not contain 0");
    }
  }
  const int64_t step = updates.rank() == 0 ? 0 : 1;
  const T* from = updates.data();
  const RowFetch<RowUse::kWrite> fetch(static_cast<size_t>(places.row) * sizeof(T),
                                       static_cast<size_t>(size) * sizeof(T));
  for (int64_t i = 0; i < places.count; ++i) {
    if (fetch && i + fetch.kAhead < places.count) {
      if (const int64_t next = places.At(indices, i + fetch.kAhead); next >= 0) fetch(to + next);
    }
    const int64_t at = places.At(indices, i);
    // The indices may alias the variable that is being changed.
    if (at < 0) return places.Refuse(env.error(), indices, i);
    Merge<Change>(to + at, from, step, places.row);
    from += step * places.row;
  }
  return WEIR_OK;
}

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_MERGE_ROWS_H_
