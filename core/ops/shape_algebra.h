// Arithmetic on partial shapes and extents (-1 = unknown) for shape functions, with TensorFlow's error texts.
#ifndef WEIR_CORE_OPS_SHAPE_ALGEBRA_H_
#define WEIR_CORE_OPS_SHAPE_ALGEBRA_H_

#include <cstdint>
#include <limits>
#include <optional>

#include "core/base/status.h"
#include "core/op/shape_context.h"
#include "core/tensor/shape.h"

namespace weir::ops {

/// Extents [begin, end) of `shape`, both clamped to its rank; unknown rank if `shape` has none.
PartialShape Span(const PartialShape& shape, int begin, int end = std::numeric_limits<int>::max());
/// The extents of `head` followed by those of `tail`; unknown rank if either has none.
Result<PartialShape> Join(const PartialShape& head, const PartialShape& tail);
/// `shape`, of known rank, with extent `i` replaced.
PartialShape Replaced(PartialShape shape, int i, int64_t extent);
/// [extent].
PartialShape VectorOf(int64_t extent);
/// A vector with one element per extent of `shape`: the output of Shape and VariableShape.
PartialShape RankVector(const PartialShape& shape);
/// A shape of that rank, or of unknown rank if `rank` is negative.
PartialShape MaybeRank(int rank);

/// Shape of op(a) op(b) by rows and columns; transposed sides have their last two extents swapped. InvalidArgument if
/// the inner extents differ.
Result<PartialShape> MatrixProduct(const PartialShape& a, bool transpose_a, const PartialShape& b, bool transpose_b);

/// Unknown if an operand is. InvalidArgument for a negative or overflowing result, or a remainder.
Result<int64_t> AddDims(int64_t a, int64_t b);
Result<int64_t> SubtractDims(int64_t a, int64_t b);
Result<int64_t> MultiplyDims(int64_t a, int64_t b);
Result<int64_t> DivideDims(int64_t dim, int64_t by);
/// InvalidArgument "Dimension must be 2 but is 3" unless `dim` is `wanted` (known) or unknown.
Status ExpectDim(int64_t dim, int64_t wanted);

/// `shape` refined to the rank; InvalidArgument "Shape must be (at least, at most) rank …" if it cannot have that rank.
Result<PartialShape> ToRank(const PartialShape& shape, int rank);
Result<PartialShape> ToRankAtLeast(const PartialShape& shape, int rank);
Result<PartialShape> ToRankAtMost(const PartialShape& shape, int rank);
/// `shape` refined by `prefix`; an error if its leading extents cannot equal those of `prefix`.
Result<PartialShape> MergePrefix(const PartialShape& shape, const PartialShape& prefix);

/// The value of integer scalar input i, -1 if unknown. InvalidArgument if the input cannot be a scalar or the value is
/// negative: "Dimension size, given by scalar input 1, must be non-negative but is -2".
Result<int64_t> DimFromScalar(const op::ShapeContext& c, int i);
/// The axis in scalar input i for a shape of `rank` (-1 unknown) as a non-negative number; nullopt if it is not known
/// yet.
Result<std::optional<int>> AxisFromScalar(const op::ShapeContext& c, int i, int rank);

}  // namespace weir::ops

#endif  // WEIR_CORE_OPS_SHAPE_ALGEBRA_H_
