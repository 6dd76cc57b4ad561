// Error messages for requests that cannot be satisfied.
#ifndef WEIR_CORE_PLACE_ERRORS_H_
#define WEIR_CORE_PLACE_ERRORS_H_

#include <string>

#include "core/base/status.h"
#include "core/place/constraints.h"

namespace weir::place {

/// The context of a failure in Constrain.
struct Refusal {
  const PlaceOptions& options;
  const graph::StepGraph& step;
  Support& support;
};

/// Sorted full names of all devices, separated by ", ".
std::string DeviceList(const device::DeviceSet& devices);

/// The error if the group has no candidate.
Status CannotAssign(const Refusal& refusal, const Group& group);
/// The error if the group's state lives on `group.fixed`, where a member has no kernel or which violates a request.
Status CannotMove(const Refusal& refusal, const Group& group);
/// The error if two nodes must share a device, but no device runs both and the nodes already colocated with them.
/// `later` is the node that requests the colocation; `why` may be empty.
Status CannotColocate(const Refusal& refusal, int later, int earlier, const std::string& why);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_ERRORS_H_
