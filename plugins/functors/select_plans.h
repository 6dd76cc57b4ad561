// Checks of Select and ClipByValue.
#ifndef WEIR_PLUGINS_FUNCTORS_SELECT_PLANS_H_
#define WEIR_PLUGINS_FUNCTORS_SELECT_PLANS_H_

#include "plugins/functors/scalar.h"
#include "sdk/cpp/kernel.h"

namespace weir::functors {

/// The older form: then and else have the same shape; the condition has it too, or is a scalar, or selects whole rows.
struct SelectPlan {
  int64_t row = 1;  // elements per condition value

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &condition = prep.shape(0), &yes = prep.shape(1);
    if (!sdk::SameShape(yes, prep.shape(2))) {
      return prep.error().InvalidArgument("'then' and 'else' must have the same size.  but received: ", yes, " vs. ",
                                          prep.shape(2));
    }
    const int64_t n = sdk::SizeOf(yes), conditions = sdk::SizeOf(condition);
    const bool fits = sdk::SameShape(condition, yes) || condition.rank == 0 ||
                      (condition.rank == 1 && yes.rank >= 1 && condition.dims[0] == yes.dims[0]);
    if (!fits) {
      return prep.error().InvalidArgument(
          "'cond' must be a scalar, a vector as long as the first dimension of 'then', or "
          "of its shape: got ",
          condition, " for ", yes);
    }
    row = conditions == 0 ? 0 : n / conditions;
    prep.MayAlias(1, 0);
    prep.MayAlias(2, 0);
    return WEIR_OK;
  }
};

/// max(min(t, high), low), so that `low` wins where the limits cross; NaN stays NaN. A limit is a scalar or has t's
/// shape.
struct ClipPlan {
  int64_t low_step = 0, high_step = 0;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &t = prep.shape(0), &low = prep.shape(1), &high = prep.shape(2);
    const auto fits = [&t](const weir_shape& limit) { return limit.rank == 0 || sdk::SameShape(limit, t); };
    if (!fits(low) || !fits(high)) {
      return prep.error().InvalidArgument(
          "clip_value_min and clip_value_max must be either of the same shape as input, or a scalar. input shape: ", t,
          "clip_value_min shape: ", low, "clip_value_max shape: ", high);
    }
    low_step = low.rank == 0 ? 0 : 1;
    high_step = high.rank == 0 ? 0 : 1;
    prep.MayAlias(0, 0);
    return WEIR_OK;
  }
};

/// max(min(x, most), least); NaN stays NaN.
template <class C>
WEIR_HD C Clipped(C x, C least, C most) {
  const C below = x > most ? most : x;
  return below < least ? least : below;
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_SELECT_PLANS_H_
