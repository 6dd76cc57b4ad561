// Regions of elementwise ops in a step.
#ifndef WEIR_CORE_FUSE_REGIONS_INTERNAL_H_
#define WEIR_CORE_FUSE_REGIONS_INTERNAL_H_

#include <vector>

#include "core/fuse/expression_internal.h"

namespace weir::fuse {

/// Sets of two or more elementwise ops on one device in one frame, whose values have one shape and type and, but for
/// the last one's, no users outside. Other inputs have that shape or one element. `result` is the op with the trait
/// `region`. Roots are in descending order.
std::vector<Found> FindRegions(const Scene& scene, const op::OpDef& result);

}  // namespace weir::fuse

#endif  // WEIR_CORE_FUSE_REGIONS_INTERNAL_H_
