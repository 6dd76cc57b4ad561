// The axis along which an op of the Unique family tells slices apart.
#ifndef WEIR_PLUGINS_FUNCTORS_UNIQUE_AXIS_H_
#define WEIR_PLUGINS_FUNCTORS_UNIQUE_AXIS_H_

#include "sdk/cpp/context.h"

namespace weir::functors {

/// Reads the axis for an array of that rank from input 1, if the op has one; without one the array is a vector.
inline int32_t ReadUniqueAxis(sdk::Context& ctx, bool has_axis, uint32_t rank, int64_t* axis) {
  sdk::Integers given;
  if (has_axis) {
    if (const int32_t code = ctx.Input(1, &given); code != WEIR_OK) return code;
    if (given.rank() != 1) return ctx.error().InvalidArgument("axis expects a 1D vector.");
    if (given.size() > 1) {
      return ctx.error().InvalidArgument("axis does not support input tensors larger than 1 elements");
    }
  }
  if (!has_axis || given.size() == 0) {
    return rank == 1 ? int32_t{WEIR_OK} : ctx.error().InvalidArgument("unique expects a 1D vector.");
  }
  *axis = given[0] < 0 ? given[0] + rank : given[0];
  if (*axis >= 0 && *axis < rank) return WEIR_OK;
  return ctx.error().InvalidArgument("axis has to be between [0, ", rank, ")");
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_UNIQUE_AXIS_H_
