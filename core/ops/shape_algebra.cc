#include "core/ops/shape_algebra.h"

#include <algorithm>

#include "core/base/errors.h"

namespace weir::ops {
PartialShape Span(const PartialShape& shape, int begin, int end) {
  if (!shape.has_rank()) return PartialShape();
  end = std::min(end, shape.rank());
  begin = std::min(begin, end);
  return PartialShape::Of(shape.dims().subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
}

Result<PartialShape> Join(const PartialShape& head, const PartialShape& tail) {
  if (!head.has_rank() || !tail.has_rank()) return PartialShape();
  std::vector<int64_t> dims(head.dims().begin(), head.dims().end());
  dims.insert(dims.end(), tail.dims().begin(), tail.dims().end());
  return PartialShape::Make(dims);
}

PartialShape Replaced(PartialShape shape, int i, int64_t extent) {
  shape.set_dim(i, extent);
  return shape;
}

PartialShape VectorOf(int64_t extent) { return PartialShape::Of({extent}); }

PartialShape RankVector(const PartialShape& shape) { return VectorOf(shape.rank()); }

PartialShape MaybeRank(int rank) { return rank < 0 ? PartialShape() : PartialShape::OfRank(rank); }

Result<PartialShape> MatrixProduct(const PartialShape& a, bool transpose_a, const PartialShape& b, bool transpose_b) {
  const auto extent = [](const PartialShape& s, bool last) {
    return s.has_rank() ? s.dim(s.rank() - (last ? 1 : 2)) : -1;
  };
  WEIR_TRY(op::MergeDim(extent(a, !transpose_a), extent(b, transpose_b)).status());
  return PartialShape::Of({extent(a, transpose_a), extent(b, !transpose_b)});
}

Result<int64_t> AddDims(int64_t a, int64_t b) {
  if (a < 0 || b < 0) return int64_t{-1};
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) {
    return InvalidArgument("Dimension size overflow from adding {} and {}", a, b);
  }
  return sum;
}

Result<int64_t> SubtractDims(int64_t a, int64_t b) {
  if (a < 0 || b < 0) return int64_t{-1};
  if (a < b) return InvalidArgument("Negative dimension size caused by subtracting {} from {}", b, a);
  return a - b;
}

Result<int64_t> MultiplyDims(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return int64_t{0};
  if (a < 0 || b < 0) return int64_t{-1};
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) {
    return InvalidArgument("Negative dimension size caused by overflow when multiplying {} and {}", a, b);
  }
  return product;
}

Result<int64_t> DivideDims(int64_t dim, int64_t by) {
  if (dim < 0 || by < 0) return int64_t{-1};
  if (by == 0) return InvalidArgument("Divisor must be positive but is 0");
  if (dim % by != 0) return InvalidArgument("Dimension size must be evenly divisible by {} but is {}", by, dim);
  return dim / by;
}

Status ExpectDim(int64_t dim, int64_t wanted) {
  if (dim < 0 || dim == wanted) return Status();
  return InvalidArgument("Dimension must be {} but is {}", wanted, dim);
}

Result<PartialShape> ToRank(const PartialShape& shape, int rank) {
  if (!shape.has_rank()) return PartialShape::OfRank(rank);
  if (shape.rank() == rank) return shape;
  return InvalidArgument("Shape must be rank {} but is rank {}", rank, shape.rank());
}

Result<PartialShape> ToRankAtLeast(const PartialShape& shape, int rank) {
  if (!shape.has_rank() || shape.rank() >= rank) return shape;
  return InvalidArgument("Shape must be at least rank {} but is rank {}", rank, shape.rank());
}

Result<PartialShape> ToRankAtMost(const PartialShape& shape, int rank) {
  if (!shape.has_rank() || shape.rank() <= rank) return shape;
  return InvalidArgument("Shape must be at most rank {} but is rank {}", rank, shape.rank());
}

Result<PartialShape> MergePrefix(const PartialShape& shape, const PartialShape& prefix) {
  if (!shape.has_rank() || !prefix.has_rank()) return shape;
  WEIR_ASSIGN(PartialShape merged, ToRankAtLeast(shape, prefix.rank()));
  for (int i = 0; i < prefix.rank(); ++i) {
    WEIR_ASSIGN(const int64_t dim, op::MergeDim(merged.dim(i), prefix.dim(i)));
    merged.set_dim(i, dim);
  }
  return merged;
}

Result<int64_t> DimFromScalar(const op::ShapeContext& c, int i) {
  WEIR_TRY(c.WithRank(i, 0).status());
  const std::optional<int64_t> dim = c.scalar_int(i);
  if (dim && *dim < 0) {
    return InvalidArgument("Dimension size, given by scalar input {}, must be non-negative but is {}", i, *dim);
  }
  return dim.value_or(-1);
}

Result<std::optional<int>> AxisFromScalar(const op::ShapeContext& c, int i, int rank) {
  WEIR_TRY(c.WithRank(i, 0).status());
  const std::optional<int64_t> value = c.scalar_int(i);
  if (!value) return std::optional<int>();
  const int64_t axis = *value;
  if (rank >= 0 && (axis < -rank || axis >= rank)) {
    return InvalidArgument("Dimension size, given by scalar input {} must be in range [-{}, {})", axis, rank, rank);
  }
  if (axis < 0 && rank < 0) return std::optional<int>();
  if (axis > kMaxRank) return InvalidArgument("axis {} is beyond the largest rank {}", axis, kMaxRank);
  return std::optional<int>(static_cast<int>(axis < 0 ? axis + rank : axis));
}

}  // namespace weir::ops
