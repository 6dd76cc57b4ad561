// The texts of requests that cannot be met.
#ifndef WEIR_CORE_PLACE_ERRORS_H_
#define WEIR_CORE_PLACE_ERRORS_H_

#include <string>

#include "core/base/status.h"
#include "core/place/constraints.h"

namespace weir::place {

/// What Constrain knows when it gives up.
struct Refusal {
  const PlaceOptions& options;
  const graph::StepGraph& step;
  Support& support;
};

/// "[a, b]" without brackets: full names of all devices, sorted.
std::string DeviceList(const device::DeviceSet& devices);

/// No candidate is left for the group.
Status CannotAssign(const Refusal& refusal, const Group& group);
/// The group's state lives on `group.fixed`, where a member has no kernel, or which is not what a member asks for.
Status CannotMove(const Refusal& refusal, const Group& group);
/// Two nodes must share a device, and no device runs both with what is colocated already. `later` is the one that asks
/// for it; `why` may be empty.
Status CannotColocate(const Refusal& refusal, int later, int earlier, const std::string& why);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_ERRORS_H_
