// The plan of a reduction's axes, shared by all reducers and element types.
#ifndef WEIR_PLUGINS_FUNCTORS_REDUCE_PLAN_H_
#define WEIR_PLUGINS_FUNCTORS_REDUCE_PLAN_H_

#include <algorithm>
#include <cstdint>

#include "plugins/functors/scalar.h"
#include "sdk/cpp/status.h"
#include "sdk/cpp/views.h"

namespace weir::functors {

/// Dimensions of one kind, outermost first, with their steps in elements.
struct Walk {
  static constexpr uint32_t kMaxRank = 16;
  uint32_t rank = 0;
  int64_t count = 1;  // product of dims
  int64_t dims[kMaxRank];
  int64_t steps[kMaxRank];

  /// Offset of index `i` in row-major order of the dims.
  WEIR_HD int64_t Offset(int64_t i) const {
    int64_t offset = 0;
    for (uint32_t d = rank; d-- > 0; i /= dims[d]) offset += i % dims[d] * steps[d];
    return offset;
  }
};

/// An input as alternating kept and reduced dimensions, with the innermost one separate.
struct ReducePlan {
  bool inner_reduced = false;
  int64_t inner = 1;    // extent of the innermost dimension
  int64_t reduced = 1;  // input elements per output element
  int64_t outputs = 1;
  Walk outer_kept;
  Walk outer_reduced;

  /// Axes may be negative, in any order, without repetition.
  int32_t Make(const weir_shape& input, const sdk::Integers& axes, const sdk::Error& error);
};

inline int32_t ReducePlan::Make(const weir_shape& input, const sdk::Integers& axes, const sdk::Error& error) {
  constexpr uint32_t kMaxInputRank = 254;
  bool reduce[kMaxInputRank] = {};
  const int64_t rank = input.rank;
  if (rank > kMaxInputRank) return error.Unimplemented("reduction of a tensor of rank ", rank);
  for (int64_t i = 0, n = axes.size(); i < n; ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= rank) {
      return error.InvalidArgument("Invalid reduction dimension (", axes[i], " for input with ", rank, " dimension(s)");
    }
    if (reduce[axis]) {
      return error.InvalidArgument("Invalid reduction arguments: Axes contains duplicate dimension: ", axis);
    }
    reduce[axis] = true;
  }
  *this = ReducePlan();
  struct Dim {
    int64_t n;
    bool reduced;
  };
  Dim dims[2 * Walk::kMaxRank];  // innermost first
  uint32_t count = 0;
  for (int64_t i = rank - 1; i >= 0; --i) {
    const int64_t n = input.dims[i];
    (reduce[i] ? reduced : outputs) *= n;
    if (n == 1) continue;
    if (count > 0 && dims[count - 1].reduced == reduce[i]) {
      dims[count - 1].n *= n;
    } else if (count == 2 * Walk::kMaxRank) {
      return error.Unimplemented("reduction of shape ", input, " over axes that alternate too often");
    } else {
      dims[count++] = {n, reduce[i]};
    }
  }
  if (count == 0) return WEIR_OK;
  inner = dims[0].n;
  inner_reduced = dims[0].reduced;
  int64_t step = inner;
  for (uint32_t i = 1; i < count; step *= dims[i++].n) {
    Walk& walk = dims[i].reduced ? outer_reduced : outer_kept;
    walk.dims[walk.rank] = dims[i].n;
    walk.steps[walk.rank++] = step;
    walk.count *= dims[i].n;
  }
  for (Walk* walk : {&outer_kept, &outer_reduced}) {
    std::reverse(walk->dims, walk->dims + walk->rank);
    std::reverse(walk->steps, walk->steps + walk->rank);
  }
  return WEIR_OK;
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_REDUCE_PLAN_H_
