// Checks of Roll and Cross.
#ifndef WEIR_PLUGINS_FUNCTORS_ROLL_PLANS_H_
#define WEIR_PLUGINS_FUNCTORS_ROLL_PLANS_H_

#include <algorithm>
#include <vector>

#include "plugins/functors/operands.h"

namespace weir::functors {

/// Roll: place i of an axis goes to place (i + shift) modulo its extent.
struct RollPlan {
  std::vector<int64_t> dims, shifts;  // shifts in [0, extent)
  bool empty = false;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &in = prep.shape(0), &shift = prep.shape(1), &axis = prep.shape(2);
    if (in.rank < 1) return prep.error().InvalidArgument("input must be 1-D or higher");
    if (shift.rank > 1) return prep.error().InvalidArgument("shift must be a scalar or a 1-D vector. Found: ", shift);
    if (axis.rank > 1) return prep.error().InvalidArgument("axis must be a scalar or a 1-D vector. Found: ", axis);
    if (!sdk::SameShape(shift, axis)) return prep.error().InvalidArgument("shift and axis must have the same size");
    std::vector<int64_t> by, along;
    if (const int32_t code = Steering(prep, 1, &by); code != WEIR_OK) return code;
    if (const int32_t code = Steering(prep, 2, &along); code != WEIR_OK) return code;
    dims = DimsOf(in);
    shifts.assign(dims.size(), 0);
    for (size_t i = 0; i < along.size(); ++i) {
      const int64_t rank = in.rank, at = along[i] < 0 ? along[i] + rank : along[i];
      if (at < 0 || at >= rank) return prep.error().InvalidArgument("axis ", at, " is out of range");
      const int64_t extent = std::max<int64_t>(dims[static_cast<size_t>(at)], 1);
      int64_t& sum = shifts[static_cast<size_t>(at)];
      sum = (sum + (by[i] % extent + extent) % extent) % extent;
    }
    empty = std::find(dims.begin(), dims.end(), 0) != dims.end();
    return ExpectOutput(prep, 0, dims);
  }
};

/// Cross: products of vectors with three elements.
struct CrossPlan {
  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &a = prep.shape(0), &b = prep.shape(1);
    if (!sdk::SameShape(a, b)) {
      return prep.error().InvalidArgument("Both inputs must be of same shape: ", a, " vs. ", b);
    }
    if (a.rank < 1) return prep.error().InvalidArgument("Input must be at least 1D", a);
    if (a.dims[a.rank - 1] != 3) {
      return prep.error().InvalidArgument("Cross-products are only defined for 3-element vectors.");
    }
    return WEIR_OK;
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_ROLL_PLANS_H_
