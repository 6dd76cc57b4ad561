// Ops that count and look up places in sorted rows: checks and extents.
#ifndef WEIR_PLUGINS_FUNCTORS_COUNTING_PLANS_H_
#define WEIR_PLUGINS_FUNCTORS_COUNTING_PLANS_H_

#include <algorithm>
#include <vector>

#include "plugins/functors/operands.h"

namespace weir::functors {

/// Reads the number of bins from operand i.
inline int32_t ReadBins(const sdk::Prep& prep, uint32_t i, int64_t* bins) {
  if (prep.shape(i).rank != 0) {
    return prep.error().InvalidArgument("Shape must be rank 0 but is rank ", prep.shape(i).rank);
  }
  if (const int32_t code = Steering(prep, i, "size", bins); code != WEIR_OK) return code;
  if (*bins < 0) return prep.error().InvalidArgument("size (", *bins, ") must be non-negative");
  return WEIR_OK;
}

struct BincountPlan {
  int64_t bins = 0;
  bool weighted = false;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = ReadBins(prep, 1, &bins); code != WEIR_OK) return code;
    weighted = prep.size(2) != 0;
    if (weighted && prep.size(2) != prep.size(0)) {
      return prep.error().InvalidArgument("Input indices and weights must have the same size.");
    }
    return ExpectOutput(prep, 0, {bins});
  }
};

/// Counts of a whole array of rank 0 or 1, or of each row of a matrix.
struct DenseBincountPlan {
  int64_t bins = 0, rows = 1, row = 0;
  bool weighted = false, binary = false, matrix = false;

  int32_t Prepare(sdk::Prep& prep) {
    binary = prep.node().Bool("binary_output");
    const weir_shape &in = prep.shape(0), &weights = prep.shape(2);
    if (in.rank > 2) return prep.error().InvalidArgument("Shape must be at most rank 2 but is rank ", in.rank);
    if (const int32_t code = ReadBins(prep, 1, &bins); code != WEIR_OK) return code;
    weighted = sdk::SizeOf(weights) != 0;
    if (!sdk::SameShape(weights, in) && sdk::SizeOf(weights) != 0) {
      return prep.error().InvalidArgument(
          "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts as all weights "
          "equal to 1. Received ",
          weights);
    }
    matrix = in.rank == 2;
    rows = matrix ? in.dims[0] : 1;
    row = matrix ? in.dims[1] : sdk::SizeOf(in);
    std::vector<int64_t> out = {bins};
    if (matrix) out.insert(out.begin(), rows);
    return ExpectOutput(prep, 0, out);
  }
};

struct HistogramPlan {
  int64_t bins = 0;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape& range = prep.shape(1);
    if (range.rank != 1) return prep.error().InvalidArgument("value_range should be a vector.");
    if (range.dims[0] != 2) return prep.error().InvalidArgument("value_range should be a vector of 2 elements.");
    if (prep.shape(2).rank != 0) return prep.error().InvalidArgument("nbins should be a scalar.");
    if (const int32_t code = Steering(prep, 2, "nbins", &bins); code != WEIR_OK) return code;
    if (bins <= 0) return prep.error().InvalidArgument("nbins should be a positive number, but got '", bins, "'");
    return ExpectOutput(prep, 0, {bins});
  }
};

struct BucketizePlan {
  std::vector<float> boundaries;

  int32_t Prepare(sdk::Prep& prep) {
    weir_attr given{};
    given.struct_size = sizeof given;
    const int32_t code = sdk::HostTable()->attr(prep.node().get(), sdk::Str("boundaries"), &given);
    if (code != WEIR_OK || given.type != (WEIR_VALUE_FLOAT | WEIR_VALUE_LIST)) given.count = 0;
    for (uint64_t i = 0; i < given.count; ++i) boundaries.push_back(static_cast<float>(given.floats[i]));
    if (!std::is_sorted(boundaries.begin(), boundaries.end())) {
      return prep.error().InvalidArgument("Expected sorted boundaries");
    }
    return WEIR_OK;
  }
};

/// Eight comparisons make a byte, the first one its highest bit.
struct CompareAndBitpackPlan {
  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape& in = prep.shape(0);
    if (in.rank < 1) return prep.error().InvalidArgument("Input should be at least a vector, but saw a scalar.");
    if (prep.shape(1).rank != 0) {
      return prep.error().InvalidArgument("Compare must be a scalar, but saw tensor: ", prep.shape(1));
    }
    if (in.dims[in.rank - 1] % 8 != 0) {
      return prep.error().InvalidArgument("Inner dimension of input should be divisible by ", 8,
                                          ", but saw shape: ", in);
    }
    return WEIR_OK;
  }
};

/// LowerBound and UpperBound: places of values in sorted rows.
struct BoundPlan {
  int64_t row = 0, values_row = 0;

  int32_t Prepare(sdk::Prep& prep) {
    constexpr const char* kNames[] = {"sorted_inputs", "values"};
    for (uint32_t i = 0; i < 2; ++i) {
      if (prep.shape(i).rank == 2) continue;
      return prep.error().InvalidArgument("Shape must be rank 2 but is rank ", prep.shape(i).rank, " for `", kNames[i],
                                          "` argument");
    }
    const weir_shape &sorted = prep.shape(0), &values = prep.shape(1);
    if (sorted.dims[0] != values.dims[0]) {
      return prep.error().InvalidArgument("Leading dim_size of both tensors must match.");
    }
    row = sorted.dims[1];
    values_row = values.dims[1];
    if (prep.output(0).dtype == WEIR_INT32 && row > INT32_MAX) {
      return prep.error().InvalidArgument("trimmed_sorted_inputs must be less than int32 max for int32 output, got ",
                                          row);
    }
    return ExpectOutput(prep, 0, DimsOf(values));
  }
};

/// InTopK and InTopKV2: whether a class is among the k likeliest of its row.
struct HitsPlan {
  int64_t classes = 0;

  int32_t Plan(sdk::Prep& prep) {
    const weir_shape &predictions = prep.shape(0), &targets = prep.shape(1);
    if (predictions.rank != 2) return prep.error().InvalidArgument("predictions must be 2-dimensional");
    if (targets.rank != 1) return prep.error().InvalidArgument("targets must be 1-dimensional");
    if (predictions.dims[0] != targets.dims[0]) {
      return prep.error().InvalidArgument("First dimension of predictions ", predictions.dims[0],
                                          " must match length of targets ", targets.dims[0]);
    }
    classes = predictions.dims[1];
    return WEIR_OK;
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_COUNTING_PLANS_H_
