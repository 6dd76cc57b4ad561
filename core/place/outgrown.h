// A warning of steps whose shapes exceed those of the runs that their predicted times come from.
#ifndef WEIR_CORE_PLACE_OUTGROWN_H_
#define WEIR_CORE_PLACE_OUTGROWN_H_

#include <string>

#include "core/place/explain.h"

namespace weir::place {

/// Names the ops with larger operands than any that were measured on their devices, with an example. Empty if there are
/// none, if no op of a kind was measured at all, or if nothing was placed by cost.
std::string LargerThanMeasured(const Findings& findings);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_OUTGROWN_H_
