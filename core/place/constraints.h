// Constraints on a placement: colocation groups, their device requests, and their candidate devices.
#ifndef WEIR_CORE_PLACE_CONSTRAINTS_H_
#define WEIR_CORE_PLACE_CONSTRAINTS_H_

#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/device/device_name.h"
#include "core/graph/step_graph.h"
#include "core/place/place.h"
#include "core/place/support.h"

namespace weir::place {

/// Nodes that share a device.
struct Group {
  std::vector<int> members;      // op nodes of the step, ascending
  device::DeviceName requested;  // merged requests of the members
  int asked = -1;                // the member that made the request; -1 = none
  int fixed = -1;                // the device of existing state
  std::vector<int> candidates;   // devices, ascending; never empty
  bool settled = false;          // the only candidate is PlaceOptions::preferred
  SoftRule rule = SoftRule::kNone;
  DeviceMask mask = 0;  // devices with kernels for all members, as far as known
  /// Devices with kernels for all members, where all kernels for one member reject its operands, with the reason.
  std::map<int, std::string> refused;
};

/// A node of a loop that does not share the loop's device, because its op lacks a kernel on some devices that have
/// kernels for the others.
struct LoopSplit {
  int loop = -1;  // a node of the loop that shares its device
  int node = -1;
};

struct Constraints {
  IndexedVector<GroupId, Group> groups;            // ordered by smallest member
  IndexedVector<graph::NodeId, GroupId> group_of;  // -1 for feeds and constants
  std::vector<std::string> notes;                  // requests dropped by soft placement, in order
  std::vector<LoopSplit> splits;
};

/// Joins nodes by reference and resource edges, loop frames and `_class` "loc:@x"; merges their requests and finds
/// candidates. Of a loop, the nodes stay apart whose ops lack a kernel on a device that runs all or nearly all others.
/// Errors: see Place.
Result<Constraints> Constrain(const PlaceOptions& options, const graph::StepGraph& step, Support& support);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_CONSTRAINTS_H_
