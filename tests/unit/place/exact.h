// The optimal schedule of a small problem without contention, by branch and bound.
#ifndef WEIR_TESTS_UNIT_PLACE_EXACT_H_
#define WEIR_TESTS_UNIT_PLACE_EXACT_H_

#include "core/place/problem.h"

namespace weir::place {

/// The shortest makespan over all orders and devices if transfers never wait and each task is a separate group. For
/// about ten tasks.
int64_t OptimumNs(const Problem& problem);

}  // namespace weir::place

#endif  // WEIR_TESTS_UNIT_PLACE_EXACT_H_
