// Slices of tensors as checkpoints know them: the parts of a partitioned variable.
#ifndef WEIR_CORE_IO_TENSOR_SLICE_H_
#define WEIR_CORE_IO_TENSOR_SLICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/shape.h"

namespace weir::io {

/// Indices [start, start + length) of one dimension; a length of kWholeDim takes them all (start is 0 then).
struct SliceExtent {
  static constexpr int64_t kWholeDim = -1;
  int64_t start = 0;
  int64_t length = kWholeDim;
  bool operator==(const SliceExtent&) const = default;
};

/// One extent per dimension.
using TensorSlice = std::vector<SliceExtent>;

/// "0,5:-": start and length, or "-" for all, joined by ':'. "" is the slice of a scalar.
std::string ToString(const TensorSlice& slice);

/// The slice with every length written out; InvalidArgument when it does not fit into `full`.
Result<TensorSlice> Resolve(const TensorSlice& slice, const Shape& full);
/// Shape of a resolved slice.
Result<Shape> ShapeOf(const TensorSlice& resolved);
/// What two resolved slices of equal rank share; nothing when they do not meet. Slices of a scalar meet.
std::optional<TensorSlice> Intersect(const TensorSlice& a, const TensorSlice& b);

/// The first two of resolved slices of one tensor that share an element, by their positions; nothing when none do.
/// ResourceExhausted for slices so many and so odd that finding out would take long.
Result<std::optional<std::pair<size_t, size_t>>> FindOverlap(const std::vector<TensorSlice>& resolved);
/// What resolved slices leave of `full`, as slices, of which there are at most `limit`.
std::vector<TensorSlice> FindGaps(const std::vector<TensorSlice>& resolved, const Shape& full, size_t limit);

/// An element of SaveV2's and RestoreV2's `shape_and_slices`.
struct ShapeAndSlice {
  Shape full;
  TensorSlice slice;
};
/// "10 20 0,5:-": the full extents, then the slice. InvalidArgument quoting the text. ("" is the caller's case.)
Result<ShapeAndSlice> ParseShapeAndSlice(std::string_view text);

/// The key under which a bundle keeps a slice of tensor `name`; starts with a zero byte, unlike any name.
std::string SliceKey(std::string_view name, const TensorSlice& slice);

}  // namespace weir::io

#endif  // WEIR_CORE_IO_TENSOR_SLICE_H_
