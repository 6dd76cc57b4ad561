// Matrix products by tiles in shared memory. The operands are functors of row and column, so that convolutions are
// products too, without a copy of their windows.
#ifndef WEIR_PLUGINS_GPU_KERNELS_TILED_H_
#define WEIR_PLUGINS_GPU_KERNELS_TILED_H_

#include <cmath>
#include <concepts>
#include <cstdint>

#include "plugins/functors/arithmetic.h"
#include "plugins/gpu/kernels/per_thread.h"
#include "plugins/gpu/kernels/storage.h"

namespace weir::gpu {

/// sum + x * y; of real numbers with one rounding. Builds do not fuse products and sums by themselves.
template <class C>
WEIR_HD C MultiplyAdd(C x, C y, C sum) {
  if constexpr (std::floating_point<C>) {
    return std::fma(x, y, sum);
  } else {
    return functors::Sum(sum, functors::Product(x, y));
  }
}

/// c(i, j) = sum over q of left(batch, i, q) right(batch, q, j), with i < m, j < n, q < k. A block computes a tile of
/// kTile x kTile elements, a thread kPerSide x kPerSide of them.
template <class C, class Left, class Right, class Result>
struct TiledProduct {
  static constexpr int kTile = 64, kDepth = 8, kPerSide = 4, kSide = kTile / kPerSide;
  static constexpr int kThreads = kSide * kSide;
  static constexpr uint32_t kSharedBytes = 2 * kDepth * kTile * sizeof(C);

  int64_t m, n, k;
  int64_t tiles_down, tiles_across;
  Left left;
  Right right;
  Result result;

  TiledProduct(int64_t rows, int64_t columns, int64_t depth, const Left& l, const Right& r, const Result& to)
      : m(rows),
        n(columns),
        k(depth),
        tiles_down((rows + kTile - 1) / kTile),
        tiles_across((columns + kTile - 1) / kTile),
        left(l),
        right(r),
        result(to) {}

  struct Sums {
    C at[kPerSide][kPerSide] = {};
  };

  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    C* const a = block.template Shared<C>(0);  // [kDepth, kTile]
    C* const b = a + kDepth * kTile;           // the same
    const int64_t tile = block.index() % (tiles_down * tiles_across),
                  batch = block.index() / (tiles_down * tiles_across);
    const int64_t row = tile / tiles_across * kTile, column = tile % tiles_across * kTile;
    PerThread<Sums> sums(block.threads());
    for (int64_t depth = 0; depth < k; depth += kDepth) {
      block.ForEachThread([&](int t) {
        for (int e = t; e < kDepth * kTile; e += kThreads) {
          // Neighbouring threads read along the operand's contiguous axis.
          const int i = Left::kRowsContiguous ? e % kTile : e / kDepth,
                    q = Left::kRowsContiguous ? e / kTile : e % kDepth;
          const bool inside = row + i < m && depth + q < k;
          a[q * kTile + i] = inside ? left(batch, row + i, depth + q) : C();
        }
        for (int e = t; e < kDepth * kTile; e += kThreads) {
          const int j = Right::kColumnsContiguous ? e % kTile : e / kDepth;
          const int q = Right::kColumnsContiguous ? e / kTile : e % kDepth;
          const bool inside = column + j < n && depth + q < k;
          b[q * kTile + j] = inside ? right(batch, depth + q, column + j) : C();
        }
      });
      block.ForEachThread([&](int t) {
        const int first_row = t / kSide * kPerSide, first_column = t % kSide * kPerSide;
        Sums& own = sums[t];
        for (int q = 0; q < kDepth; ++q) {
          C x[kPerSide], y[kPerSide];
          for (int i = 0; i < kPerSide; ++i) x[i] = a[q * kTile + first_row + i];
          for (int j = 0; j < kPerSide; ++j) y[j] = b[q * kTile + first_column + j];
          for (int i = 0; i < kPerSide; ++i) {
            for (int j = 0; j < kPerSide; ++j) own.at[i][j] = MultiplyAdd(x[i], y[j], own.at[i][j]);
          }
        }
      });
    }
    block.ForEachThread([&](int t) {
      const int64_t first_row = row + t / kSide * kPerSide, first_column = column + t % kSide * kPerSide;
      for (int i = 0; i < kPerSide; ++i) {
        for (int j = 0; j < kPerSide; ++j) {
          if (first_row + i < m && first_column + j < n)
            result(batch, first_row + i, first_column + j, sums[t].at[i][j]);
        }
      }
    });
  }

  int32_t Enqueue(const sdk::Env& env, int64_t batches) const {
    return LaunchBlocks(env, batches * tiles_down * tiles_across, kThreads, kSharedBytes, *this);
  }
};

}  // namespace weir::gpu

#endif  // WEIR_PLUGINS_GPU_KERNELS_TILED_H_
