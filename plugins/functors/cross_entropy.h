// Checks and geometry of the cross entropies.
#ifndef WEIR_PLUGINS_FUNCTORS_CROSS_ENTROPY_H_
#define WEIR_PLUGINS_FUNCTORS_CROSS_ENTROPY_H_

#include "sdk/cpp/kernel.h"

namespace weir::functors {

/// RowSteps of one operand over [rows, classes]; 0 along broadcast dimensions.
struct RowSteps {
  int64_t row = 0, column = 0;
};

inline RowSteps BroadcastSteps(const weir_shape& shape) {
  const int64_t columns = shape.rank >= 1 ? shape.dims[shape.rank - 1] : 1;
  const int64_t rows = shape.rank >= 2 ? shape.dims[shape.rank - 2] : 1;
  return {rows == 1 ? 0 : columns, columns == 1 ? 0 : 1};
}

struct CrossEntropyPlan {
  int64_t rows = 0, classes = 0;
  RowSteps logits_steps, labels_steps;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &logits = prep.shape(0), &labels = prep.shape(1), &out = prep.output(1).shape;
    if (out.rank != 2 || logits.rank > 2 || labels.rank > 2) {
      return prep.error().InvalidArgument(
          "logits and labels must be either 2-dimensional, or broadcasted to be "
          "2-dimensional: logits ",
          logits, ", labels ", labels);
    }
    rows = out.dims[0];
    classes = out.dims[1];
    const auto fits = [&](const weir_shape& shape) {
      for (uint32_t i = 0; i < shape.rank; ++i) {
        const int64_t dim = shape.dims[shape.rank - 1 - i];
        if (dim != 1 && dim != out.dims[1 - i]) return false;
      }
      return true;
    };
    if (!fits(logits) || !fits(labels) || sdk::SizeOf(prep.output(0).shape) != rows) {
      return prep.error().InvalidArgument("logits and labels must be broadcastable: logits_size=", logits,
                                          " labels_size=", labels);
    }
    logits_steps = BroadcastSteps(logits);
    labels_steps = BroadcastSteps(labels);
    if (sdk::SameShape(logits, out)) prep.MayAlias(0, 1);
    return WEIR_OK;
  }
};

struct SparseCrossEntropyPlan {
  int64_t rows = 0, classes = 0;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &logits = prep.shape(0), &labels = prep.shape(1);
    if (logits.rank != 2) return prep.error().InvalidArgument("logits must be 2-D, but got shape ", logits);
    if (labels.rank != 1) return prep.error().InvalidArgument("labels must be 1-D, but got shape ", labels);
    rows = logits.dims[0];
    classes = logits.dims[1];
    if (labels.dims[0] != rows) {
      return prep.error().InvalidArgument("logits and labels must have the same first dimension, got logits shape ",
                                          logits, " and labels shape ", labels);
    }
    if (classes == 0 && rows > 0) {
      return prep.error().InvalidArgument("Must have at least one class, but got logits shape ", logits);
    }
    prep.MayAlias(0, 1);
    return WEIR_OK;
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_CROSS_ENTROPY_H_
