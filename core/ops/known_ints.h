// Rules for known small integers: the arithmetic that models apply to shapes.
#ifndef WEIR_CORE_OPS_KNOWN_INTS_H_
#define WEIR_CORE_OPS_KNOWN_INTS_H_

#include "core/op/known_ints.h"

namespace weir::ops {

/// Combines two known elements; kUnknownInt on overflow or if undefined.
using CombineFn = int64_t (*)(int64_t a, int64_t b);
int64_t AddInts(int64_t a, int64_t b);
int64_t SubtractInts(int64_t a, int64_t b);
int64_t MultiplyInts(int64_t a, int64_t b);
int64_t LargerInt(int64_t a, int64_t b);
int64_t SmallerInt(int64_t a, int64_t b);
int64_t FloorQuotient(int64_t a, int64_t b);
int64_t FloorRemainder(int64_t a, int64_t b);

using KnownInts = std::optional<op::Ints>;

/// Element by element; a scalar or a single element broadcasts to a vector.
template <CombineFn combine>
KnownInts KnownElementwise(op::KnownIntsContext& c);
/// Reduces all elements of a vector, starting with `first`. The axes are irrelevant, since there is only one.
template <CombineFn combine, int64_t first>
KnownInts KnownTotal(op::KnownIntsContext& c);

KnownInts KnownSame(op::KnownIntsContext& c);      // the value of input 0
KnownInts KnownReshaped(op::KnownIntsContext& c);  // the value of input 0 in the output's rank
KnownInts KnownExtents(op::KnownIntsContext& c);   // output i: the shape of input i
KnownInts KnownRank(op::KnownIntsContext& c);
KnownInts KnownSize(op::KnownIntsContext& c);
KnownInts KnownPack(op::KnownIntsContext& c);
KnownInts KnownConcat(op::KnownIntsContext& c);
KnownInts KnownStridedSlice(op::KnownIntsContext& c);
KnownInts KnownSlice(op::KnownIntsContext& c);
KnownInts KnownGather(op::KnownIntsContext& c);
KnownInts KnownRange(op::KnownIntsContext& c);

namespace known_ints_internal {
KnownInts Elementwise(op::KnownIntsContext& c, CombineFn combine);
KnownInts Reduction(op::KnownIntsContext& c, CombineFn combine, int64_t first);
}  // namespace known_ints_internal

template <CombineFn combine>
KnownInts KnownElementwise(op::KnownIntsContext& c) {
  return known_ints_internal::Elementwise(c, combine);
}
template <CombineFn combine, int64_t first>
KnownInts KnownTotal(op::KnownIntsContext& c) {
  return known_ints_internal::Reduction(c, combine, first);
}

}  // namespace weir::ops

#endif  // WEIR_CORE_OPS_KNOWN_INTS_H_
