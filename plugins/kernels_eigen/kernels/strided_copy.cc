#include "plugins/kernels_eigen/kernels/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "plugins/kernels_eigen/operands.h"

namespace weir::kernels_eigen {
namespace {

constexpr int64_t kSquare = 32;

/// One row of n elements.
template <class E>
void CopyRow(const E* from, int64_t from_step, E* to, int64_t to_step, int64_t n) {
  if (from_step == 1 && to_step == 1) {
    std::memmove(to, from, static_cast<size_t>(n) * sizeof(E));
  } else if (from_step == 0 && to_step == 1) {
    std::fill(to, to + n, *from);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * to_step] = from[i * from_step];
  }
}

/// to[row, column] = from[row, column], with `from` dense along rows and `to` along columns. Copies block by block, so
/// that both sides are accessed by whole cache lines.
template <class E>
void CopyBlocks(const E* from, int64_t from_step, E* to, int64_t to_step, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; r += kSquare) {
    const int64_t r_end = std::min(rows, r + kSquare);
    for (int64_t c = 0; c < columns; c += kSquare) {
      const int64_t c_end = std::min(columns, c + kSquare);
      for (int64_t i = r; i < r_end; ++i) {
        for (int64_t j = c; j < c_end; ++j) to[i * to_step + j] = from[i + j * from_step];
      }
    }
  }
}

}  // namespace

void StridedCopy::Plan(const std::vector<int64_t>& dims, const std::vector<int64_t>& from,
                       const std::vector<int64_t>& to, uint32_t bytes, int64_t from_offset, int64_t to_offset) {
  run_ = nullptr;
  count_ = 0;
  from_offset_ = from_offset;
  to_offset_ = to_offset;
  if (std::any_of(dims.begin(), dims.end(), [](int64_t n) { return n <= 0; })) return;
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == 1) continue;
    if (count_ > 0) {
      Dim& last = dims_[count_ - 1];
      if (from[i] == last.from * last.n && to[i] == last.to * last.n) {
        last.n *= dims[i];
        continue;
      }
    }
    if (count_ == kMaxDims) return;  // impossible number of elements
    dims_[count_++] = {dims[i], from[i], to[i]};
  }
  if (count_ == 0) dims_[count_++] = {1, 1, 1};
  Arrange();
  run_ = ForBytes(bytes, [](auto element) { return &Copy<decltype(element)>; });
}

/// The order of the loops is arbitrary. Moves the source's dense axis next to the innermost axis, where CopyBlocks
/// handles both.
void StridedCopy::Arrange() {
  if (dims_[0].to != 1 || dims_[0].from == 1 || dims_[0].from == 0) return;
  for (uint32_t i = 1; i < count_; ++i) {
    if (dims_[i].from != 1) continue;
    std::rotate(dims_ + 1, dims_ + i, dims_ + i + 1);
    return;
  }
}

template <class E>
void StridedCopy::Copy(const StridedCopy& plan, const void* from_bytes, void* to_bytes) {
  const E* from = static_cast<const E*>(from_bytes) + plan.from_offset_;
  E* to = static_cast<E*>(to_bytes) + plan.to_offset_;
  const Dim inner = plan.dims_[0], rows = plan.count_ > 1 ? plan.dims_[1] : Dim{1, 0, 0};
  const bool blocks = rows.from == 1 && inner.to == 1 && inner.from != 1 && inner.from != 0;
  int64_t index[kMaxDims] = {};
  int64_t at_from = 0, at_to = 0;
  while (true) {
    if (blocks) {
      CopyBlocks(from + at_from, inner.from, to + at_to, rows.to, rows.n, inner.n);
    } else {
      for (int64_t r = 0; r < rows.n; ++r) {
        CopyRow(from + at_from + r * rows.from, inner.from, to + at_to + r * rows.to, inner.to, inner.n);
      }
    }
    uint32_t i = 2;
    for (; i < plan.count_; ++i) {
      const Dim& dim = plan.dims_[i];
      at_from += dim.from;
      at_to += dim.to;
      if (++index[i] < dim.n) break;
      at_from -= dim.n * dim.from;
      at_to -= dim.n * dim.to;
      index[i] = 0;
    }
    if (i >= plan.count_) return;
  }
}

}  // namespace weir::kernels_eigen
