// Reductions of the rows of segments: how a row changes a segment's value, and the operands of the ops on chosen rows.
#ifndef WEIR_PLUGINS_FUNCTORS_SEGMENT_RULES_H_
#define WEIR_PLUGINS_FUNCTORS_SEGMENT_RULES_H_

#include "plugins/functors/arithmetic.h"
#include "sdk/cpp/context.h"

namespace weir::functors {

// Sums and products are Add and Mul. A maximum that is not a number is replaced by the next element, and an element
// that is not a number replaces the maximum, as in TensorFlow.
struct SegmentLargest {
  template <class C>
  WEIR_HD C operator()(C all, C x) const {
    return all > x ? all : x;
  }
};
struct SegmentSmallest {
  template <class C>
  WEIR_HD C operator()(C all, C x) const {
    return all < x ? all : x;
  }
};

/// What a segment's sum is divided by: nothing, the number of its rows, or the root of that.
enum class SegmentNorm { kNone, kCount, kRoot };

/// Inputs 1 and 2 of the ops on chosen rows: the rows, and the segment of each. Numbers: sdk::Integers, or a buffer of
/// integers in device memory.
template <class Numbers>
struct ChosenRows {
  Numbers indices, ids;
  int64_t count = 0;

  int32_t Read(const sdk::Context& ctx) {
    if (const int32_t code = ctx.Input(1, &indices); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(2, &ids); code != WEIR_OK) return code;
    if (indices.rank() != 1) return ctx.error().InvalidArgument("indices should be a vector.");
    if (ids.rank() != 1) return ctx.error().InvalidArgument("segment_ids should be a vector.");
    count = indices.size();
    if (count == ids.size()) return WEIR_OK;
    return ctx.error().InvalidArgument("segment_ids and indices should have same size.");
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_SEGMENT_RULES_H_
