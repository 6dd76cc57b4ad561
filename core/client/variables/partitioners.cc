#include "core/client/variables/partitioners.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <string>

#include "core/base/errors.h"

namespace weir {
namespace {

/// A variable with more parts than this is an error.
constexpr int64_t kMaxParts = 1 << 20;

/// Bytes of `elements` elements; the maximum on overflow.
int64_t BytesOf(int64_t elements, DType dtype, int64_t bytes_per_string) {
  const int64_t each = dtype == DType::kString ? bytes_per_string : static_cast<int64_t>(SizeOf(dtype));
  int64_t bytes = 0;
  return __builtin_mul_overflow(elements, each, &bytes) ? std::numeric_limits<int64_t>::max() : bytes;
}

/// One part along every axis except `axis`, which counts from the end if negative. Empty for an invalid axis;
/// CallPartitioner rejects that.
std::vector<int64_t> Along(const Shape& shape, int axis, int64_t parts) {
  if (axis < 0) axis += shape.rank();
  if (axis < 0 || axis >= shape.rank()) return {};
  std::vector<int64_t> all(static_cast<size_t>(shape.rank()), 1);
  all[static_cast<size_t>(axis)] = parts;
  return all;
}

int64_t Extent(const Shape& shape, int axis) {
  if (axis < 0) axis += shape.rank();
  return axis < 0 || axis >= shape.rank() ? 1 : shape.dim(axis);
}

int64_t DivideUp(int64_t value, int64_t by) { return by <= 0 ? value : value / by + (value % by > 0 ? 1 : 0); }

}  // namespace

Partitioner FixedSizePartitioner(int64_t num_shards, int axis) {
  return [=](const Shape& shape, DType) { return Along(shape, axis, std::min(num_shards, Extent(shape, axis))); };
}

Partitioner VariableAxisSizePartitioner(int64_t max_shard_bytes, int axis, int64_t bytes_per_string,
                                        int64_t max_shards) {
  return [=](const Shape& shape, DType dtype) {
    const int64_t extent = std::max<int64_t>(Extent(shape, axis), 1);
    const int64_t slice = BytesOf(shape.elements() / extent, dtype, bytes_per_string);
    const int64_t per_shard = std::max<int64_t>(1, slice == 0 ? extent : max_shard_bytes / slice);
    return Along(shape, axis, std::min(max_shards, DivideUp(extent, per_shard)));
  };
}

Partitioner MinMaxVariablePartitioner(int64_t max_partitions, int axis, int64_t min_slice_bytes,
                                      int64_t bytes_per_string) {
  return [=](const Shape& shape, DType dtype) {
    const int64_t wanted = DivideUp(BytesOf(shape.elements(), dtype, bytes_per_string), min_slice_bytes);
    return Along(shape, axis, std::max<int64_t>(1, std::min({Extent(shape, axis), max_partitions, wanted})));
  };
}

Result<std::vector<int64_t>> CallPartitioner(const Partitioner& partitioner, const PartialShape& shape, DType dtype) {
  const Result<Shape> known = shape.ToShape();
  if (!known.ok()) {
    return InvalidArgument("Shape of a new partitioned variable must be fully defined, but instead was {}.",
                           shape.ToTupleString());
  }
  if (known->rank() < 1) {
    return InvalidArgument("A partitioned Variable must have rank at least 1, shape: {}", shape.ToTupleString());
  }
  std::vector<int64_t> parts = partitioner(*known, dtype);
  const std::string text = fmt::format("[{}]", fmt::join(parts, ", "));
  if (parts.size() != static_cast<size_t>(known->rank())) {
    return InvalidArgument("Partitioner returned a partition list that does not match the Variable's rank: {} vs. {}",
                           text, shape.ToTupleString());
  }
  if (std::ranges::any_of(parts, [](int64_t n) { return n < 1; })) {
    return InvalidArgument("Partitioner returned zero partitions for some axes: {}", text);
  }
  if (std::ranges::count_if(parts, [](int64_t n) { return n > 1; }) > 1) {
    return InvalidArgument("Can only slice a variable along one dimension: shape: {}, partitioning: {}",
                           shape.ToTupleString(), text);
  }
  if (std::ranges::any_of(parts, [](int64_t n) { return n > kMaxParts; })) {
    return InvalidArgument("Partitioner returned {} for shape {}, wanted at most {} parts", text, shape.ToTupleString(),
                           kMaxParts);
  }
  return parts;
}

std::vector<Part> CutInto(const Shape& whole, std::span<const int64_t> partitions) {
  size_t axis = 0;
  for (size_t i = 0; i < partitions.size(); ++i) axis = partitions[i] > 1 ? i : axis;
  const Part all{std::vector<int64_t>(static_cast<size_t>(whole.rank()), 0),
                 {whole.dims().begin(), whole.dims().end()}};
  const int64_t count = partitions.empty() ? 1 : partitions[axis];
  const int64_t extent = all.size.empty() ? 0 : all.size[axis];
  std::vector<Part> parts;
  int64_t offset = 0;
  for (int64_t i = 0; i < count; ++i) {
    Part part = all;
    if (!part.size.empty()) {
      part.offset[axis] = offset;
      part.size[axis] = extent / count + (i < extent % count ? 1 : 0);
      offset += part.size[axis];
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace weir
