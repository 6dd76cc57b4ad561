// How variables are cut into parts along one axis.
#ifndef WEIR_CORE_SCOPE_PARTITION_H_
#define WEIR_CORE_SCOPE_PARTITION_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace weir::scope {

/// The number of parts along each axis of a variable of that shape (rank 1 at least) and type.
using Partitioner = std::function<std::vector<int64_t>(const Shape& shape, DType dtype)>;

/// `num_shards` parts along `axis`, or as many as it has elements when these are fewer.
Partitioner FixedSizePartitioner(int64_t num_shards, int axis = 0);
/// As few parts along `axis` as keep each at or below `max_shard_bytes`, and no more than `max_shards`. A string counts
/// as `bytes_per_string`.
Partitioner VariableAxisSizePartitioner(int64_t max_shard_bytes, int axis = 0, int64_t bytes_per_string = 16,
                                        int64_t max_shards = std::numeric_limits<int64_t>::max());
/// Parts of `min_slice_bytes` or less, but no more than `max_partitions`.
Partitioner MinMaxVariablePartitioner(int64_t max_partitions = 1, int axis = 0, int64_t min_slice_bytes = 256 << 10,
                                      int64_t bytes_per_string = 16);

/// Where a part begins in the whole, and how far it goes, along every axis.
struct Part {
  std::vector<int64_t> offset;
  std::vector<int64_t> size;
  bool operator==(const Part&) const = default;
};

/// What the partitioner says for a shape. InvalidArgument with TensorFlow's texts unless the shape is known, of rank 1
/// at least, and the answer has one positive number per axis, of which one is above 1 at most.
Result<std::vector<int64_t>> CallPartitioner(const Partitioner& partitioner, const PartialShape& shape, DType dtype);

/// The parts in order; the first ones are longer by one where the extent does not divide. `partitions` as
/// CallPartitioner returns them.
std::vector<Part> CutInto(const Shape& whole, std::span<const int64_t> partitions);

}  // namespace weir::scope

#endif  // WEIR_CORE_SCOPE_PARTITION_H_
