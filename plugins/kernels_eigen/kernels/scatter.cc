// Updates of rows given by indices: Scatter… and ResourceScatter…, their Nd forms, ScatterNd, TensorScatter….
#include <algorithm>
#include <cstring>
#include <string>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/merge_rows.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Env;
using sdk::Integers;
using sdk::View;

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
    return Put<Change>(env, places, params.data(), params.size(), indices, updates);
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
    return Put<Change>(env, places, params.data(), params.size(), indices, updates);
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
    return Put<Change>(env, places, output.data(), output.size(), indices, updates);
  }
};

/// The checks of TensorScatter…, whose texts differ from those of the other forms.
int32_t CheckTensorSlices(const sdk::Error& error, const weir_shape& target, const weir_shape& indices,
                          const weir_shape& updates) {
  if (indices.rank < 1) return error.InvalidArgument("Indices shape must have rank at least one. Found:", indices);
  if (updates.rank < 1) return error.InvalidArgument("Updates shape must have rank at least one. Found:", updates);
  if (SizeOf(target, 0, target.rank) == 0 &&
      (SizeOf(indices, 0, indices.rank) != 0 || SizeOf(updates, 0, updates.rank) != 0)) {
    return error.InvalidArgument("Indices and updates specified for empty output shape");
  }
  const uint32_t outer = indices.rank - 1;
  bool fits = updates.rank >= outer;
  for (uint32_t i = 0; fits && i < outer; ++i) fits = indices.dims[i] == updates.dims[i];
  if (!fits) {
    return error.InvalidArgument("Outer dimensions of indices and update must match. Indices shape: ", indices,
                                 ", updates shape:", updates);
  }
  const int64_t depth = indices.dims[outer], inner = target.rank - depth;
  if (depth > target.rank || updates.rank - outer != inner) {
    return error.InvalidArgument("Inner dimensions of output shape must match inner dimensions of updates shape. ",
                                 "Output: ", target, " updates: ", updates);
  }
  for (uint32_t i = outer; i < updates.rank; ++i) {
    if (updates.dims[i] == target.dims[i - outer + static_cast<uint32_t>(depth)]) continue;
    return error.InvalidArgument("The inner ", inner, " dimensions of output.shape=", target, " must match the inner ",
                                 updates.rank - outer, " dimensions of updates.shape=", updates);
  }
  return WEIR_OK;
}

/// Slices at coordinates of a copy of the tensor; in place if nothing else uses it.
template <class Change>
struct TensorScatter {
  Places places;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &tensor = prep.shape(0), &indices = prep.shape(1);
    if (const int32_t code = CheckTensorSlices(prep.error(), tensor, indices, prep.shape(2)); code != WEIR_OK) {
      return code;
    }
    if (const int32_t code = ExpectOutput(prep, 0, DimsOf(tensor)); code != WEIR_OK) return code;
    places = Places::OfSlices(tensor, indices);
    prep.MayAlias(0, 0);
    return WEIR_OK;
  }

  template <class T>
  int32_t Run(Env& env, View<const T> tensor, Integers indices, View<const T> updates, View<T> output) const {
    const int64_t size = output.size();
    if (size == 0) return WEIR_OK;
    if (const int32_t code = places.Check(env.error(), indices); code != WEIR_OK) return code;
    if (tensor.data() != output.data()) std::copy_n(tensor.data(), size, output.data());
    return Put<Change>(env, places, output.data(), size, indices, updates);
  }
};

/// Registers the row forms, for references and for handles.
template <class Change, class List, class HandleList>
void AddRows(sdk::KernelTable& k, const std::string& name, List list, HandleList of_handles) {
  k.Add<ScatterRows<Change>>("Scatter" + name, list).Class(WEIR_CLASS_GATHER, 1);
  k.Add<ScatterRows<Change>>("ResourceScatter" + name, sdk::Attr("dtype", of_handles)).Class(WEIR_CLASS_GATHER, 1);
}
template <class Change, class List>
void AddSlices(sdk::KernelTable& k, const std::string& name, List list) {
  k.Add<ScatterSlices<Change>>("ScatterNd" + name, list).Class(WEIR_CLASS_GATHER, 1);
  k.Add<ScatterSlices<Change>>("ResourceScatterNd" + name, list).Class(WEIR_CLASS_GATHER, 1);
}

}  // namespace

void AddScatter(sdk::KernelTable& k) {
  AddRows<Replace>(k, "Update", kAnyBits, kAnyBits);
  AddRows<Add>(k, "Add", kNumbers, kNumbers);
  AddRows<Sub>(k, "Sub", kNumbers, kNumbers);
  AddRows<Mul>(k, "Mul", kNumbers, kNumbers);
  AddRows<Divide>(k, "Div", kNumbers, kNumbers);
  AddRows<Lower>(k, "Min", kFloating + kIndex, kReal);
  AddRows<Raise>(k, "Max", kFloating + kIndex, kReal);
  AddSlices<Replace>(k, "Update", kAnyBits);
  AddSlices<Add>(k, "Add", kNumbers);
  AddSlices<Sub>(k, "Sub", kNumbers);
  AddSlices<Lower>(k, "Min", kReal);
  AddSlices<Raise>(k, "Max", kReal);
  k.Add<ScatterSlices<Either>>("ResourceScatterNdAdd", kBool).Class(WEIR_CLASS_GATHER, 1);
  k.Add<ScatterSlices<Differs>>("ResourceScatterNdSub", kBool).Class(WEIR_CLASS_GATHER, 1);
  k.Add<ScatterNd<Add>>("ScatterNd", kNumbers).Class(WEIR_CLASS_GATHER, 1);
  k.Add<ScatterNd<Either>>("ScatterNd", kBool).Class(WEIR_CLASS_GATHER, 1);
  k.Add<TensorScatter<Replace>>("TensorScatterUpdate", kAnyBits).Class(WEIR_CLASS_GATHER, 1);
  k.Add<TensorScatter<Add>>("TensorScatterAdd", kNumbers).Class(WEIR_CLASS_GATHER, 1);
  k.Add<TensorScatter<Sub>>("TensorScatterSub", kNumbers).Class(WEIR_CLASS_GATHER, 1);
  k.Add<TensorScatter<Lower>>("TensorScatterMin", kReal).Class(WEIR_CLASS_GATHER, 1);
  k.Add<TensorScatter<Raise>>("TensorScatterMax", kReal).Class(WEIR_CLASS_GATHER, 1);
  k.Add<TensorScatter<Add>>("ScatterNdNonAliasingAdd", kNumbers).Class(WEIR_CLASS_GATHER, 1);
  k.Add<TensorScatter<Either>>("ScatterNdNonAliasingAdd", kBool).Class(WEIR_CLASS_GATHER, 1);
}

}  // namespace weir::kernels_eigen
