// Positions of operands that are broadcast to one shape, found by one division per merged dimension.
#ifndef WEIR_PLUGINS_GPU_KERNELS_BROADCASTING_H_
#define WEIR_PLUGINS_GPU_KERNELS_BROADCASTING_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "plugins/functors/scalar.h"
#include "sdk/cpp/broadcast.h"

namespace weir::gpu {

/// Division by numbers that fit 32 bits, where all do: 64-bit division takes many instructions on a device.
struct Divider {
  bool narrow = false;

  static Divider For(int64_t n) { return {n >= 0 && n <= std::numeric_limits<int32_t>::max()}; }
  /// i becomes i / n; returns i % n.
  WEIR_HD int64_t Split(int64_t& i, int64_t n) const {
    if (narrow) {
      const auto a = static_cast<uint32_t>(i), b = static_cast<uint32_t>(n), quotient = a / b;
      i = quotient;
      return a - quotient * b;
    }
    const int64_t quotient = i / n, rest = i - quotient * n;
    i = quotient;
    return rest;
  }
};

/// Positions of N operands for each element of a row-major result.
template <int N>
struct Broadcasting {
  static constexpr uint32_t kMaxRank = sdk::Broadcast<N>::kMaxRank + 1;
  bool same = false;  // all operands have the result's shape
  Divider divider;
  uint32_t rank = 0;
  int64_t dims[kMaxRank] = {};  // innermost first
  int64_t steps[kMaxRank][N] = {};

  /// False if an operand does not fit the shape.
  bool Plan(const std::array<weir_shape, N>& operands, const weir_shape& out) {
    sdk::Broadcast<N> plan;
    if (!plan.Plan(operands, out)) return false;
    divider = Divider::For(sdk::SizeOf(out));
    rank = plan.rank + 1;
    dims[0] = plan.run;
    same = plan.rank == 0;
    for (int k = 0; k < N; ++k) {
      steps[0][k] = plan.advances[k] ? 1 : 0;
      same = same && plan.advances[k];
    }
    for (uint32_t i = 0; i < plan.rank; ++i) {
      dims[i + 1] = plan.dims[plan.rank - 1 - i];
      for (int k = 0; k < N; ++k) steps[i + 1][k] = plan.steps[plan.rank - 1 - i][k];
    }
    return true;
  }
  /// Position of operand k for element i.
  WEIR_HD void At(int64_t i, int64_t (&at)[N]) const {
    if (same) {
      for (int k = 0; k < N; ++k) at[k] = i;
      return;
    }
    for (int k = 0; k < N; ++k) at[k] = 0;
    for (uint32_t d = 0; d < rank; ++d) {
      const int64_t index = d + 1 < rank ? divider.Split(i, dims[d]) : i;
      for (int k = 0; k < N; ++k) at[k] += index * steps[d][k];
    }
  }
};

}  // namespace weir::gpu

#endif  // WEIR_PLUGINS_GPU_KERNELS_BROADCASTING_H_
