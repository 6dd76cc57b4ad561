// Whole arrays, and rows changed in a copy: checks and extents of Empty, ParallelConcat and the Inplace ops.
#ifndef WEIR_PLUGINS_FUNCTORS_INPLACE_PLANS_H_
#define WEIR_PLUGINS_FUNCTORS_INPLACE_PLANS_H_

#include <vector>

#include "plugins/functors/operands.h"
#include "plugins/functors/scalar.h"

namespace weir::functors {

struct EmptyPlan {
  int32_t Prepare(sdk::Prep& prep) {
    if (prep.shape(0).rank != 1) {
      return prep.error().InvalidArgument("shape must be a vector of int32, got shape ", prep.shape(0));
    }
    std::vector<int64_t> dims;
    if (const int32_t code = Steering(prep, 0, &dims); code != WEIR_OK) return code;
    for (const int64_t dim : dims) {
      if (dim < 0) return prep.error().InvalidArgument("Dimension ", dim, " must be >= 0");
    }
    return ExpectOutput(prep, 0, dims);
  }
};

struct ParallelConcatPlan {
  int32_t Prepare(sdk::Prep& prep) {
    std::vector<int64_t> part = DimsOf(prep.output(0).shape);
    if (part.empty() || part[0] != prep.inputs()) {
      return prep.error().InvalidArgument("shape attr ", prep.output(0).shape, " must have ", prep.inputs(),
                                          " as its first dimension");
    }
    part[0] = 1;
    const weir_shape wanted{static_cast<uint32_t>(part.size()), 0, part.data()};
    for (uint32_t i = 0; i < prep.inputs(); ++i) {
      if (sdk::SameShape(prep.shape(i), wanted)) continue;
      return prep.error().InvalidArgument("value ", i, " has shape ", prep.shape(i), " instead of ", wanted);
    }
    return WEIR_OK;
  }
};

/// Rows of x and those of v that change them.
struct InplacePlan {
  int64_t rows = 0, row = 0;
  bool empty = false;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &x = prep.shape(0), &i = prep.shape(1), &v = prep.shape(2);
    if (i.rank != 1) return prep.error().InvalidArgument("i must be a vector. ", i);
    if (x.rank != v.rank) {
      return prep.error().InvalidArgument("x and v shape doesn't match (ranks differ): ", x, " vs. ", v);
    }
    if (x.rank < 1) return prep.error().InvalidArgument("x must be at least a vector, got shape ", x);
    for (uint32_t k = 1; k < x.rank; ++k) {
      if (x.dims[k] == v.dims[k]) continue;
      return prep.error().InvalidArgument("x and v shape doesn't match at index ", k, " : ", x, " vs. ", v);
    }
    if (i.dims[0] != v.dims[0]) {
      return prep.error().InvalidArgument("i and x shape doesn't match at index 0: ", i, " vs. ", v);
    }
    rows = x.dims[0];
    empty = HasNoElements(x);
    row = empty ? 0 : SizeOf(x, 1, x.rank);
    prep.MayAlias(0, 0);
    return WEIR_OK;
  }
  /// The row that an index names, modulo the number of rows.
  WEIR_HD int64_t At(int64_t index) const { return (index % rows + rows) % rows; }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_INPLACE_PLANS_H_
