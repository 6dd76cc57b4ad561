// Sparse tensors in device memory, whose shapes lie in host memory.
#ifndef WEIR_PLUGINS_GPU_KERNELS_SPARSE_PARTS_H_
#define WEIR_PLUGINS_GPU_KERNELS_SPARSE_PARTS_H_

#include <algorithm>
#include <vector>

#include "plugins/functors/sparse_checks.h"
#include "plugins/gpu/kernels/sorting.h"
#include "plugins/gpu/kernels/temporary.h"
#include "sdk/cpp/context.h"

namespace weir::gpu {

using HostVector = sdk::View<const int64_t>;

/// Extents or steps of at most so many axes.
struct AxisNumbers {
  static constexpr int64_t kMost = 16;
  int64_t at[kMost] = {};

  template <class Numbers>
  static AxisNumbers Of(const Numbers& numbers, int64_t n) {
    AxisNumbers copy;
    for (int64_t d = 0; d < n; ++d) copy.at[d] = numbers[static_cast<size_t>(d)];
    return copy;
  }
  static int32_t Check(const sdk::Context& ctx, int64_t rank) {
    if (rank <= kMost) return WEIR_OK;
    return ctx.error().Unimplemented("sparse tensors with more than ", kMost, " axes");
  }
};

/// The parts of a sparse tensor, in device memory but for the shape.
struct SparseParts {
  sdk::Buffer<const int64_t> indices;
  sdk::Buffer<const void> values;
  HostVector shape;

  int32_t Read(const sdk::Context& ctx, uint32_t first) {
    if (const int32_t code = ctx.Input(first, &indices); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(first + 1, &values); code != WEIR_OK) return code;
    return ctx.Input(first + 2, &shape);
  }
  int32_t Check(const sdk::Context& ctx) const {
    const int32_t code = functors::CheckParts(ctx.error(), indices.shape(), values.shape(), shape.shape());
    return code != WEIR_OK ? code : AxisNumbers::Check(ctx, rank());
  }
  int64_t count() const { return indices.shape().dims[0]; }
  int64_t rank() const { return shape.size(); }
};

/// A vector in host memory.
inline int32_t WriteHostVector(const sdk::Context& ctx, uint32_t output, const std::vector<int64_t>& numbers) {
  sdk::View<int64_t> to;
  if (const int32_t code = ctx.Output(output, {static_cast<int64_t>(numbers.size())}, &to); code != WEIR_OK) {
    return code;
  }
  std::copy(numbers.begin(), numbers.end(), to.data());
  return WEIR_OK;
}

/// Where the entries of each part begin in the order, behind them all those that belong nowhere.
struct PartBoundsWork {
  Ptr<const KeyedPlace> sorted;
  Ptr<int64_t> to;
  int64_t count, parts;
  WEIR_GPU_FN void operator()(int64_t i) const {
    to[i] = LowerBound(sorted.get(), count, i < parts ? static_cast<uint64_t>(i) : kNowhere);
  }
};

}  // namespace weir::gpu

#endif  // WEIR_PLUGINS_GPU_KERNELS_SPARSE_PARTS_H_
