// Slices of tensors in checkpoints: the parts of a partitioned variable.
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

/// Indices [start, start + length) of one dimension; length kWholeDim means all (start is 0).
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

/// The slice with explicit lengths; InvalidArgument if it does not fit `full`.
Result<TensorSlice> Resolve(const TensorSlice& slice, const Shape& full);
/// Shape of a resolved slice.
Result<Shape> ShapeOf(const TensorSlice& resolved);
/// The intersection of two resolved slices of equal rank; nullopt if it is empty. Slices of a scalar intersect.
std::optional<TensorSlice> Intersect(const TensorSlice& a, const TensorSlice& b);

/// The positions of the first two resolved slices of one tensor that overlap; nullopt if none do. ResourceExhausted if
/// the check would take too long for the number and arrangement of slices.
Result<std::optional<std::pair<size_t, size_t>>> FindOverlap(const std::vector<TensorSlice>& resolved);
/// The parts of `full` that no resolved slice covers, as at most `limit` slices.
std::vector<TensorSlice> FindGaps(const std::vector<TensorSlice>& resolved, const Shape& full, size_t limit);

/// An element of SaveV2's and RestoreV2's `shape_and_slices`.
struct ShapeAndSlice {
  Shape full;
  TensorSlice slice;
};
/// Parses "10 20 0,5:-": the full extents, then the slice. InvalidArgument quotes the text. The caller handles "".
Result<ShapeAndSlice> ParseShapeAndSlice(std::string_view text);

/// The bundle key of a slice of tensor `name`. Starts with a zero byte, unlike any name.
std::string SliceKey(std::string_view name, const TensorSlice& slice);

}  // namespace weir::io

#endif  // WEIR_CORE_IO_TENSOR_SLICE_H_
