// Partitioners, and cutting variables into parts along one axis.
#ifndef WEIR_CORE_CLIENT_VARIABLES_PARTITIONERS_H_
#define WEIR_CORE_CLIENT_VARIABLES_PARTITIONERS_H_

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/client/variables/variable_scope.h"

namespace weir {

/// `num_shards` parts along `axis`, at most one per element of the axis.
Partitioner FixedSizePartitioner(int64_t num_shards, int axis = 0);
/// The smallest number of parts along `axis` that keeps each at or below `max_shard_bytes`, at most `max_shards`. A
/// string counts as `bytes_per_string`.
Partitioner VariableAxisSizePartitioner(int64_t max_shard_bytes, int axis = 0, int64_t bytes_per_string = 16,
                                        int64_t max_shards = std::numeric_limits<int64_t>::max());
/// Enough parts that none exceeds `min_slice_bytes`, at most `max_partitions` and one per element of the axis.
Partitioner MinMaxVariablePartitioner(int64_t max_partitions = 1, int axis = 0, int64_t min_slice_bytes = 256 << 10,
                                      int64_t bytes_per_string = 16);

/// Offset and size of a part along every axis.
struct Part {
  std::vector<int64_t> offset;
  std::vector<int64_t> size;
  bool operator==(const Part&) const = default;
};

/// Calls the partitioner. InvalidArgument with TensorFlow's texts unless the shape is fully known with rank at least 1
/// and the result has one positive number per axis, at most one of them above 1.
Result<std::vector<int64_t>> CallPartitioner(const Partitioner& partitioner, const PartialShape& shape, DType dtype);

/// The parts in order. If the extent is not divisible, the first parts are longer by one. `partitions` must come from
/// CallPartitioner.
std::vector<Part> CutInto(const Shape& whole, std::span<const int64_t> partitions);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_VARIABLES_PARTITIONERS_H_
