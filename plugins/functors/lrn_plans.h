// Local response normalisation: checks and attributes.
#ifndef WEIR_PLUGINS_FUNCTORS_LRN_PLANS_H_
#define WEIR_PLUGINS_FUNCTORS_LRN_PLANS_H_

#include <cmath>
#include <limits>

#include "plugins/functors/operands.h"
#include "plugins/functors/scalar.h"

namespace weir::functors {

/// Rows of channels; each channel is scaled by its neighbours within the radius.
struct LrnPlan {
  int64_t rows = 0, depth = 0, radius = 5;
  float bias = 1, alpha = 1, beta = 0.5f;

  int32_t Plan(sdk::Prep& prep) {
    const sdk::Node& node = prep.node();
    radius = node.Int("depth_radius", 5);
    if (radius < 0 || radius > std::numeric_limits<int32_t>::max()) {
      return prep.error().InvalidArgument("depth_radius = ", radius, " larger than int max");
    }
    bias = static_cast<float>(node.Float("bias", 1));
    alpha = static_cast<float>(node.Float("alpha", 1));
    beta = static_cast<float>(node.Float("beta", 0.5));
    if (prep.size(0) == 0) return WEIR_OK;
    depth = prep.shape(0).dims[3];
    rows = SizeOf(prep.shape(0), 0, 3);
    return WEIR_OK;
  }
  /// The factor of a channel with this norm.
  WEIR_HD float Power(float norm) const { return beta == 0.5f ? 1 / std::sqrt(norm) : std::pow(norm, -beta); }
};

struct LrnForwardPlan : LrnPlan {
  int32_t Prepare(sdk::Prep& prep) {
    if (prep.shape(0).rank != 4) return prep.error().InvalidArgument("in must be 4-dimensional");
    return Plan(prep);
  }
};

struct LrnGradPlan : LrnPlan {
  int32_t Prepare(sdk::Prep& prep) {
    for (uint32_t i = 0; i < 3; ++i) {
      if (prep.shape(i).rank != 4) return prep.error().InvalidArgument("inputs must be 4-dimensional");
      if (sdk::SameShape(prep.shape(0), prep.shape(i))) continue;
      return prep.error().InvalidArgument("input_grads, input_image, and out_image should have the same shape");
    }
    return Plan(prep);
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_LRN_PLANS_H_
