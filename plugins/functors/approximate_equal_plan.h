// ApproximateEqual: its checks and tolerance.
#ifndef WEIR_PLUGINS_FUNCTORS_APPROXIMATE_EQUAL_PLAN_H_
#define WEIR_PLUGINS_FUNCTORS_APPROXIMATE_EQUAL_PLAN_H_

#include "sdk/cpp/prepare.h"

namespace weir::functors {

struct ApproximateEqualPlan {
  float tolerance = 0;
  int32_t Prepare(sdk::Prep& prep) {
    tolerance = static_cast<float>(prep.node().Float("tolerance", 1e-5));
    if (sdk::SameShape(prep.shape(0), prep.shape(1))) return WEIR_OK;
    return prep.error().InvalidArgument("x and y must be of the same shape. x shape: ", prep.shape(0),
                                        ". y shape: ", prep.shape(1));
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_APPROXIMATE_EQUAL_PLAN_H_
