// Rows of a tensor in random order.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_ROW_SHUFFLE_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_ROW_SHUFFLE_H_

#include <cstring>
#include <numeric>
#include <utility>

#include "plugins/kernels_eigen/kernels/draws.h"
#include "plugins/kernels_eigen/operands.h"

namespace weir::kernels_eigen {

/// Swaps each row but the last with one that is not before it.
struct RowShuffle {
  int64_t rows = 0, row_bytes = 0;

  /// Input 0 of any type; a scalar is one row.
  int32_t Plan(sdk::Prep& prep) {
    const weir_shape& shape = prep.shape(0);
    if (prep.size(0) == 0) return WEIR_OK;
    rows = shape.rank == 0 ? 1 : shape.dims[0];
    row_bytes = prep.size(0) / rows * static_cast<int64_t>(sdk::SizeOf(prep.input(0).dtype));
    prep.Scratch(static_cast<uint64_t>(rows) * sizeof(int64_t));
    return WEIR_OK;
  }

  /// `order`: memory for one number per row.
  void Move(Words words, const sdk::AnyInput& input, const sdk::AnyOutput& output, int64_t* order) const {
    if (rows == 0) return;
    std::iota(order, order + rows, int64_t{0});
    for (int64_t i = 0; i + 1 < rows; ++i) {
      std::swap(order[i], order[i + static_cast<int64_t>(words.Next() % static_cast<uint64_t>(rows - i))]);
    }
    const auto* from = static_cast<const std::byte*>(input.data());
    auto* to = static_cast<std::byte*>(output.data());
    ForBlock(static_cast<size_t>(row_bytes), [&](auto bytes) {
      for (int64_t i = 0; i < rows; ++i) {
        std::memcpy(to + static_cast<size_t>(i) * bytes, from + static_cast<size_t>(order[i]) * bytes, bytes);
      }
    });
  }
};

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_ROW_SHUFFLE_H_
