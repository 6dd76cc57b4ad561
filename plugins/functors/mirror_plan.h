// MirrorPad and its gradient: their checks, and where the elements of a padded array come from.
#ifndef WEIR_PLUGINS_FUNCTORS_MIRROR_PLAN_H_
#define WEIR_PLUGINS_FUNCTORS_MIRROR_PLAN_H_

#include <string_view>
#include <vector>

#include "plugins/functors/operands.h"
#include "plugins/functors/scalar.h"

namespace weir::functors {

/// One axis of a padded array, and where its places come from in the array itself.
struct MirroredAxis {
  int64_t before = 0, extent = 0, after = 0;
  int64_t skipped = 0;  // 1: a reflection, which does not repeat the end
  int64_t step = 0;     // elements of the array per step along the axis

  WEIR_HD int64_t size() const { return before + extent + after; }
  /// Elements in front of place i.
  WEIR_HD int64_t Offset(int64_t i) const {
    const int64_t inner = i - before;
    const int64_t mirrored = inner < 0         ? skipped - 1 - inner
                             : inner >= extent ? 2 * extent - 1 - skipped - inner
                                               : inner;
    return mirrored * step;
  }
};

struct MirrorPlan {
  std::vector<MirroredAxis> axes;

  /// `inner` is the operand or result without paddings, whose shape is the other's less the paddings.
  int32_t Plan(sdk::Prep& prep, const weir_shape& inner, const weir_shape& padded, std::string_view size_name) {
    std::vector<int64_t> paddings;
    if (const int32_t code = Steering(prep, 1, &paddings); code != WEIR_OK) return code;
    if (paddings.size() != 2 * static_cast<size_t>(inner.rank) || padded.rank != inner.rank) {
      return prep.error().InvalidArgument("The first dimension of paddings must be the rank of inputs", prep.shape(1),
                                          ", ", prep.shape(0));
    }
    const int64_t skipped = prep.node().String("mode") == "REFLECT" ? 1 : 0;
    const std::vector<int64_t> steps = StepsOf(DimsOf(inner));
    for (uint32_t axis = 0; axis < inner.rank; ++axis) {
      const int64_t before = paddings[2 * axis], after = paddings[2 * axis + 1], extent = inner.dims[axis];
      if (before < 0 || after < 0) {
        return prep.error().InvalidArgument("paddings must be non-negative: ", before, " ", after);
      }
      if (before > extent - skipped || after > extent - skipped) {
        return prep.error().InvalidArgument("paddings must be ", skipped != 0 ? "less than" : "no greater than",
                                            " the ", size_name, " size: ", before, ", ", after,
                                            skipped != 0 ? " not less than " : " greater than ", extent);
      }
      if (padded.dims[axis] != extent + before + after) {
        return prep.error().Fail(WEIR_INTERNAL, "shapes ", inner, " and ", padded, " do not fit the paddings ", before,
                                 " and ", after, " of axis ", axis);
      }
      axes.push_back({before, extent, after, skipped, steps[axis]});
    }
    return WEIR_OK;
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_MIRROR_PLAN_H_
