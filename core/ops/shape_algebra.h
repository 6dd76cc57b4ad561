// Arithmetic of partial shapes and extents (-1 = unknown) for shape functions, with TensorFlow's error texts.
#ifndef WEIR_CORE_OPS_SHAPE_ALGEBRA_H_
#define WEIR_CORE_OPS_SHAPE_ALGEBRA_H_

#include <cstdint>
#include <limits>
#include <optional>

#include "core/base/status.h"
#include "core/op/shape_context.h"
#include "core/tensor/shape.h"

namespace weir::ops {

/// Extents [begin, end) of `shape`, both clipped to its rank; unknown rank when `shape` has none.
PartialShape Span(const PartialShape& shape, int begin, int end = std::numeric_limits<int>::max());
/// The extents of `head`, then those of `tail`; unknown rank when either has none.
Result<PartialShape> Join(const PartialShape& head, const PartialShape& tail);
/// `shape`, of known rank, with extent `i` replaced.
PartialShape Replaced(PartialShape shape, int i, int64_t extent);
/// [extent].
PartialShape VectorOf(int64_t extent);
/// A vector with one element per extent of `shape`: what Shape and VariableShape answer.
PartialShape RankVector(const PartialShape& shape);
/// Rank, or unknown rank when `rank` is negative.
PartialShape MaybeRank(int rank);

/// Rows and columns of op(a) op(b), each side's last two extents swapped where it is transposed. InvalidArgument when
/// the inner extents differ.
Result<PartialShape> MatrixProduct(const PartialShape& a, bool transpose_a, const PartialShape& b, bool transpose_b);

/// Unknown as soon as one operand is. InvalidArgument for a negative or overflowing answer, or a remainder.
Result<int64_t> AddDims(int64_t a, int64_t b);
Result<int64_t> SubtractDims(int64_t a, int64_t b);
Result<int64_t> MultiplyDims(int64_t a, int64_t b);
Result<int64_t> DivideDims(int64_t dim, int64_t by);
/// InvalidArgument "Dimension must be 2 but is 3" unless `dim` can be `wanted`, which is known.
Status ExpectDim(int64_t dim, int64_t wanted);

/// InvalidArgument "Shape must be (at least, at most) rank …" unless the shape can have that rank; the shape refined.
Result<PartialShape> ToRank(const PartialShape& shape, int rank);
Result<PartialShape> ToRankAtLeast(const PartialShape& shape, int rank);
Result<PartialShape> ToRankAtMost(const PartialShape& shape, int rank);
/// Checks that the leading extents of `shape` can be those of `prefix`; `shape` refined by them.
Result<PartialShape> MergePrefix(const PartialShape& shape, const PartialShape& prefix);

/// The scalar value of integer input i, -1 when not known. InvalidArgument unless the input can be a scalar, or when
/// the value is negative: "Dimension size, given by scalar input 1, must be non-negative but is -2".
Result<int64_t> DimFromScalar(const op::ShapeContext& c, int i);
/// An axis given as scalar input i of a shape of `rank` (-1 unknown), counted from 0; nothing when it cannot be told
/// yet.
Result<std::optional<int>> AxisFromScalar(const op::ShapeContext& c, int i, int rank);

}  // namespace weir::ops

#endif  // WEIR_CORE_OPS_SHAPE_ALGEBRA_H_
