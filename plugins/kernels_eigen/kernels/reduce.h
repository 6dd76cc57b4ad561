// The plan of a reduction's axes, shared by all reducers and element types.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_REDUCE_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_REDUCE_H_

#include <cstdint>

#include "sdk/cpp/status.h"
#include "sdk/cpp/views.h"

namespace weir::kernels_eigen {

/// Dimensions of one kind, outermost first, with their steps in elements.
struct Walk {
  static constexpr uint32_t kMaxRank = 16;
  uint32_t rank = 0;
  int64_t count = 1;  // product of dims
  int64_t dims[kMaxRank];
  int64_t steps[kMaxRank];

  /// Offset of index `i` in row-major order of the dims.
  int64_t Offset(int64_t i) const {
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

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_REDUCE_H_
