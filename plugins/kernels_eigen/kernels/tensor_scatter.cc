// TensorScatterUpdate, TensorScatterAdd, …: slices of a copy replaced or combined with updates.
#include <algorithm>

#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/places.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Integers;
using sdk::View;

// How an element and its update are combined. Comparisons with NaN keep the element.
struct TakeUpdate {
  template <class T>
  T operator()(T, T y) const {
    return y;
  }
};
struct TakeLower {
  template <class T>
  T operator()(T x, T y) const {
    return y < x ? y : x;
  }
};
struct TakeHigher {
  template <class T>
  T operator()(T x, T y) const {
    return x < y ? y : x;
  }
};

template <class Change>
struct TensorScatter {
  Places places;
  bool nothing = false;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &tensor = prep.shape(0), &indices = prep.shape(1), &updates = prep.shape(2);
    const sdk::Error& error = prep.error();
    if (indices.rank < 1) return error.InvalidArgument("Indices shape must have rank at least one. Found:", indices);
    if (updates.rank < 1) return error.InvalidArgument("Updates shape must have rank at least one. Found:", updates);
    if ((HasNoElements(tensor) || HasNoElements(indices)) && !HasNoElements(updates)) {
      return error.InvalidArgument("Indices and updates specified for empty output shape");
    }
    const uint32_t outer = indices.rank - 1;
    bool fits = updates.rank >= outer;
    for (uint32_t i = 0; fits && i < outer; ++i) fits = indices.dims[i] == updates.dims[i];
    if (!fits) {
      return error.InvalidArgument("Outer dimensions of indices and update must match. Indices shape: ", indices,
                                   ", updates shape:", updates);
    }
    const int64_t depth = indices.dims[outer], rank = tensor.rank;
    fits = depth <= rank && updates.rank - outer == rank - depth;
    for (uint32_t i = outer; fits && i < updates.rank; ++i) {
      fits = updates.dims[i] == tensor.dims[i - outer + static_cast<uint32_t>(depth)];
    }
    if (!fits) {
      return error.InvalidArgument(
          "Inner dimensions of output shape must match inner dimensions of updates shape. Output: ", tensor,
          " updates: ", updates);
    }
    nothing = HasNoElements(tensor);
    if (!nothing) places = Places::OfSlices(tensor, indices);
    prep.MayAlias(0, 0);
    return ExpectOutput(prep, 0, DimsOf(tensor));
  }

  template <class T>
  int32_t Run(sdk::Env& env, View<const T> tensor, Integers indices, View<const T> updates, View<T> output) const {
    using C = sdk::Compute<T>;
    if (nothing) return WEIR_OK;
    if (const int32_t code = places.Check(env.error(), indices); code != WEIR_OK) return code;
    if (output.data() != tensor.data()) std::copy_n(tensor.data(), tensor.size(), output.data());
    const T* from = updates.data();
    for (int64_t i = 0; i < places.count; ++i, from += places.row) {
      T* const to = output.data() + places.At(indices, i);
      for (int64_t k = 0; k < places.row; ++k) {
        if constexpr (std::is_same_v<Change, TakeUpdate>) {
          to[k] = from[k];
        } else {
          to[k] = static_cast<T>(Change()(static_cast<C>(to[k]), static_cast<C>(from[k])));
        }
      }
    }
    return WEIR_OK;
  }
};

}  // namespace

void AddTensorScatter(sdk::KernelTable& k) {
  k.Add<TensorScatter<TakeUpdate>>("TensorScatterUpdate", kAnyBits).Class(WEIR_CLASS_GATHER);
  k.Add<TensorScatter<Add>>("TensorScatterAdd", kNumbers).Class(WEIR_CLASS_GATHER);
  k.Add<TensorScatter<Sub>>("TensorScatterSub", kNumbers).Class(WEIR_CLASS_GATHER);
  k.Add<TensorScatter<TakeLower>>("TensorScatterMin", kReal).Class(WEIR_CLASS_GATHER);
  k.Add<TensorScatter<TakeHigher>>("TensorScatterMax", kReal).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::kernels_eigen
