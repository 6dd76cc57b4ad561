// Further builders on arrays: broadcasts, reversals, bits, strided slices, coordinates, unique values, running sums.
#ifndef WEIR_CORE_CLIENT_OPS_ARRAY_EXTRA_OPS_H_
#define WEIR_CORE_CLIENT_OPS_ARRAY_EXTRA_OPS_H_

#include <cstdint>
#include <string_view>

#include "core/client/ops/operand.h"

namespace weir {

Output BroadcastTo(const Operand& input, const Operand& shape, std::string_view name = "BroadcastTo",
                   Where where = Where::current());

/// Reverses the given axes (int32 or int64 [n]).
Output Reverse(const Operand& tensor, const Operand& axis, std::string_view name = "ReverseV2",
               Where where = Where::current());
/// The same bits as another type.
Output Bitcast(const Operand& input, DType type, std::string_view name = "Bitcast", Where where = Where::current());

/// Bits of TensorFlow's masks: bit i is about position i of begin, end and strides.
struct StridedSliceOptions {
  int64_t begin_mask = 0;
  int64_t end_mask = 0;
  int64_t ellipsis_mask = 0;
  int64_t new_axis_mask = 0;
  int64_t shrink_axis_mask = 0;
  std::string_view name = "StridedSlice";
};
/// Elements begin, begin + stride, … before end along each axis, as Python's x[begin:end:stride].
Output StridedSlice(const Operand& input, const Operand& begin, const Operand& end, const Operand& strides,
                    const StridedSliceOptions& options = {}, Where where = Where::current());

/// Coordinates of the elements that are true (not 0): int64 [n, rank].
Output WhereTrue(const Operand& condition, std::string_view name = "Where", Where where = Where::current());

struct UniqueValues {
  Output values;   // [m], in order of first appearance
  Output indices;  // int32 [n]: where each element of x is in `values`
};
UniqueValues Unique(const Operand& x, std::string_view name = "Unique", Where where = Where::current());

struct ScanOptions {
  bool exclusive = false;
  bool reverse = false;
  std::string_view name = {};
};
Output Cumsum(const Operand& x, int axis = 0, const ScanOptions& options = {}, Where where = Where::current());
Output Cumprod(const Operand& x, int axis = 0, const ScanOptions& options = {}, Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_OPS_ARRAY_EXTRA_OPS_H_
