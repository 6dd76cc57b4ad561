// Layer norms over rows of the last dimension: checks and geometry.
#ifndef WEIR_PLUGINS_FUNCTORS_LAYER_NORM_PLAN_H_
#define WEIR_PLUGINS_FUNCTORS_LAYER_NORM_PLAN_H_

#include <cstdint>

#include "sdk/cpp/kernel.h"

namespace weir::functors {

/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, for inputs x, gamma and beta.
struct LayerNormPlan {
  int64_t rows = 0, columns = 0;
  double epsilon = 0;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape& x = prep.shape(0);
    if (x.rank < 1) return prep.error().Unimplemented("x must have >= 1 dimension, got ", x);
    columns = x.dims[x.rank - 1];
    rows = columns == 0 ? 0 : sdk::SizeOf(x) / columns;
    for (const uint32_t i : {1u, 2u}) {
      const weir_shape& factor = prep.shape(i);
      if (factor.rank == 1 && factor.dims[0] == columns) continue;
      return prep.error().Unimplemented("gamma and beta must have the shape [", columns, "], input ", i, " has ",
                                        factor);
    }
    epsilon = prep.node().Float("epsilon");
    prep.MayAlias(0, 0);
    return WEIR_OK;
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_LAYER_NORM_PLAN_H_
