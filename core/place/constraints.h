// What limits a placement: groups of nodes that share a device, what they ask for, where they can run.
#ifndef WEIR_CORE_PLACE_CONSTRAINTS_H_
#define WEIR_CORE_PLACE_CONSTRAINTS_H_

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
  std::vector<int> members;      // op nodes of the step, rising
  device::DeviceName requested;  // what the members ask for, merged
  int asked = -1;                // the member whose request it is; -1 = nobody asks
  int fixed = -1;                // the device where its state lives already
  std::vector<int> candidates;   // devices, rising; never empty
  SoftRule rule = SoftRule::kNone;
  DeviceMask mask = 0;  // devices with kernels for all members
};

struct Constraints {
  std::vector<Group> groups;       // by least member
  std::vector<int> group_of;       // by node; -1 for feeds and constants
  std::vector<std::string> notes;  // what soft placement gave up, in order
};

/// Joins by reference and resource edges, loop frames and `_class` "loc:@x", merges requests and finds candidates.
/// Errors: see Place.
Result<Constraints> Constrain(const PlaceOptions& options, const graph::StepGraph& step, Support& support);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_CONSTRAINTS_H_
