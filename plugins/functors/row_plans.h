// Gathers, scatters and segments: their checks and places.
#ifndef WEIR_PLUGINS_FUNCTORS_ROW_PLANS_H_
#define WEIR_PLUGINS_FUNCTORS_ROW_PLANS_H_

#include <algorithm>
#include <vector>

#include "plugins/functors/operands.h"
#include "plugins/functors/places.h"

namespace weir::functors {

/// out[b, o, m, :] = params[b, o, indices[b, m], :], with b over the batch dimensions, o over the dimensions between
/// batch and axis, and m over the indices.
struct GatherRows {
  int64_t batches = 1, outer = 1, limit = 0, picks = 1;
  size_t block = 0;  // bytes of one row

  int32_t Plan(sdk::Prep& prep, int64_t axis, int64_t batch_dims) {
    const weir_shape &params = prep.shape(0), &indices = prep.shape(1);
    const int64_t rank = params.rank, index_rank = indices.rank;
    if (axis < -rank || axis >= rank) {
      return prep.error().InvalidArgument("Expected axis in the range [", -rank, ", ", rank, "), but got ", axis);
    }
    if (batch_dims < -index_rank || batch_dims > index_rank) {
      return prep.error().InvalidArgument("Expected batch_dims in the range [", -index_rank, ", ", index_rank,
                                          "], but got ", batch_dims);
    }
    if (axis < 0) axis += rank;
    if (batch_dims < 0) batch_dims += index_rank;
    if (batch_dims > axis) {
      return prep.error().InvalidArgument("batch_dims (", batch_dims, ") must be less than or equal to axis (", axis,
                                          ").");
    }
    const auto batch = static_cast<uint32_t>(batch_dims), at = static_cast<uint32_t>(axis);
    for (uint32_t i = 0; i < batch; ++i) {
      if (params.dims[i] == indices.dims[i]) continue;
      return prep.error().InvalidArgument("params.shape[", i, "]: ", params.dims[i],
                                          " should be equal to indices.shape[", i, "]: ", indices.dims[i]);
    }
    std::vector<int64_t> wanted(params.dims, params.dims + at);
    wanted.insert(wanted.end(), indices.dims + batch, indices.dims + indices.rank);
    wanted.insert(wanted.end(), params.dims + at + 1, params.dims + params.rank);
    batches = SizeOf(params, 0, batch);
    outer = SizeOf(params, batch, at);
    limit = params.dims[at];
    picks = SizeOf(indices, batch, indices.rank);
    block = static_cast<size_t>(SizeOf(params, at + 1, params.rank)) * sdk::SizeOf(prep.input(0).dtype);
    if (prep.input(0).dtype != prep.output(0).dtype) {
      return prep.error().Fail(WEIR_INTERNAL, "params and output have different element types");
    }
    return ExpectOutput(prep, 0, wanted);
  }
};
/// Gathers slices at coordinates. Coordinates out of range are an error, or give zeros if the policy is "IGNORE".
struct GatherNdPlan {
  Places places;
  int64_t whole = 0;  // elements of params
  bool zeros_outside = false;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &params = prep.shape(0), &indices = prep.shape(1);
    const std::string_view policy = prep.node().String("bad_indices_policy");
    zeros_outside = policy == "IGNORE";
    if (!zeros_outside && !policy.empty() && policy != "DEFAULT" && policy != "ERROR") {
      return prep.error().InvalidArgument("Unknown bad_indices_policy: ", policy);
    }
    if (params.rank < 1) return prep.error().InvalidArgument("params must be at least a vector");
    if (indices.rank < 1) return prep.error().InvalidArgument("indices must be at least a vector");
    const int64_t depth = indices.dims[indices.rank - 1];
    if (depth > params.rank) {
      return prep.error().InvalidArgument("index innermost dimension length must be <= params rank; saw: ", depth,
                                          " vs. ", params.rank);
    }
    places = Places::OfSlices(params, indices);
    whole = prep.size(0);
    if (places.count > 0 && whole == 0) {
      return prep.error().InvalidArgument("Requested more than 0 entries, but params is empty.  Params shape: ",
                                          params);
    }
    std::vector<int64_t> wanted(indices.dims, indices.dims + indices.rank - 1);
    wanted.insert(wanted.end(), params.dims + depth, params.dims + params.rank);
    return ExpectOutput(prep, 0, wanted);
  }
};
/// A row whose index is out of range has no on_value.
struct OneHotPlan {
  int64_t depth = 0, inner = 1;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &indices = prep.shape(0), &out = prep.output(0).shape;
    if (const int32_t code = Steering(prep, 1, "depth", &depth); code != WEIR_OK) return code;
    const int64_t given = prep.node().Int("axis", -1), axis = given == -1 ? indices.rank : given;
    if (axis < 0 || axis > indices.rank) {
      return prep.error().InvalidArgument("Expected axis to be -1 or between [0, ", indices.rank + 1,
                                          ").  But received: ", given);
    }
    if (depth < 0) return prep.error().InvalidArgument("depth must be non-negative, got: ", depth);
    if (prep.size(2) != 1) return prep.error().InvalidArgument("on_value must be a scalar, but got: ", prep.shape(2));
    if (prep.size(3) != 1) return prep.error().InvalidArgument("off_value must be a scalar, but got: ", prep.shape(3));
    std::vector<int64_t> wanted = DimsOf(indices);
    wanted.insert(wanted.begin() + axis, depth);
    inner = SizeOf(out, static_cast<uint32_t>(axis) + 1, out.rank);
    return ExpectOutput(prep, 0, wanted);
  }
};
/// Updates a variable row by row. Nothing is changed if an index is out of range.
struct ScatterRowsPlan {
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
};

/// InvalidArgument unless `updates` has one slice of `target` for each coordinate.
inline int32_t CheckSlices(const sdk::Error& error, const weir_shape& target, const weir_shape& indices,
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
struct ScatterSlicesPlan {
  Places places;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &params = prep.shape(0), &indices = prep.shape(1);
    if (const int32_t code = CheckSlices(prep.error(), params, indices, prep.shape(2)); code != WEIR_OK) return code;
    places = Places::OfSlices(params, indices);
    return WEIR_OK;
  }
};

/// Adds slices to zeros.
struct ScatterNdPlan {
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
};

/// The checks of TensorScatter…, whose texts differ from those of the other forms.
inline int32_t CheckTensorSlices(const sdk::Error& error, const weir_shape& target, const weir_shape& indices,
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
struct TensorScatterPlan {
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
};

/// Row s of the output is that of the rows with id s, in any order; rows with negative ids are dropped.
struct UnsortedSegmentsPlan {
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
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_ROW_PLANS_H_
