// Iteration over operands that are broadcast to one shape, run by run.
#ifndef WEIR_SDK_CPP_BROADCAST_H_
#define WEIR_SDK_CPP_BROADCAST_H_

#include <array>
#include <cstdint>

#include "sdk/cpp/views.h"

namespace weir::sdk {

/// N operands right-aligned against an output shape; adjacent dimensions with the same broadcast pattern are merged.
/// The output is `runs` runs of `run` elements each, in row-major order; within a run an operand advances by one
/// element or stays.
template <int N>
struct Broadcast {
  static constexpr uint32_t kMaxRank = 16;  // of merged dimensions, without the innermost

  int64_t run = 1;
  int64_t runs = 1;
  std::array<bool, N> advances{};
  uint32_t rank = 0;
  int64_t dims[kMaxRank];
  std::array<int64_t, N> steps[kMaxRank];  // in elements

  /// False if an operand does not fit the shape, or if there are too many dimensions.
  bool Plan(const std::array<weir_shape, N>& operands, const weir_shape& out) {
    struct Dim {
      int64_t n;
      std::array<bool, N> advances;
    };
    Dim merged[kMaxRank + 1];  // innermost first
    uint32_t count = 0;
    for (const weir_shape& operand : operands) {
      if (operand.rank > out.rank) return false;
    }
    for (uint32_t i = 0; i < out.rank; ++i) {
      Dim dim{out.dims[out.rank - 1 - i], {}};
      for (int k = 0; k < N; ++k) {
        const int64_t extent = i < operands[k].rank ? operands[k].dims[operands[k].rank - 1 - i] : 1;
        if (extent != dim.n && extent != 1) return false;
        dim.advances[k] = extent == dim.n;
      }
      if (dim.n == 1) continue;
      if (count > 0 && merged[count - 1].advances == dim.advances) {
        merged[count - 1].n *= dim.n;
      } else if (count > kMaxRank) {
        return false;
      } else {
        merged[count++] = dim;
      }
    }
    std::array<int64_t, N> size;
    size.fill(1);
    advances.fill(true);
    run = runs = 1;
    rank = count > 0 ? count - 1 : 0;
    for (uint32_t i = 0; i < count; ++i) {
      if (i == 0) {
        run = merged[0].n;
        advances = merged[0].advances;
      } else {
        dims[rank - i] = merged[i].n;
        runs *= merged[i].n;
        for (int k = 0; k < N; ++k) steps[rank - i][k] = merged[i].advances[k] ? size[k] : 0;
      }
      for (int k = 0; k < N; ++k) size[k] *= merged[i].advances[k] ? merged[i].n : 1;
    }
    return true;
  }

  /// Calls body(offsets) for runs [begin, end) with the start of each operand's run, in elements. Stops if body returns
  /// false.
  template <class Body>
  bool ForRuns(int64_t begin, int64_t end, Body&& body) const {
    int64_t index[kMaxRank] = {};
    std::array<int64_t, N> at{};
    int64_t rest = begin;
    for (uint32_t i = rank; i-- > 0;) {
      index[i] = rest % dims[i];
      rest /= dims[i];
      for (int k = 0; k < N; ++k) at[k] += index[i] * steps[i][k];
    }
    for (int64_t r = begin; r < end; ++r) {
      if (!body(at)) return false;
      for (uint32_t i = rank; i-- > 0;) {
        for (int k = 0; k < N; ++k) at[k] += steps[i][k];
        if (++index[i] < dims[i]) break;
        for (int k = 0; k < N; ++k) at[k] -= dims[i] * steps[i][k];
        index[i] = 0;
      }
    }
    return true;
  }
};

}  // namespace weir::sdk

#endif  // WEIR_SDK_CPP_BROADCAST_H_
