// Placement by rules, without costs: TensorFlow's, and that of a default device.
#ifndef WEIR_CORE_PLACE_RULES_H_
#define WEIR_CORE_PLACE_RULES_H_

#include <vector>

#include "core/place/constraints.h"

namespace weir::place {

/// Devices by falling TypePriority, equals in their own order.
std::vector<int> TypeOrder(const device::DeviceSet& devices);

/// A device for every group: the first candidate in `order`. What only looks at or renames a tensor goes with its
/// input; a node without inputs and with one output goes with its consumers where they share a device.
std::vector<int> PlaceByOrder(const graph::StepGraph& step, const Constraints& constraints,
                              const std::vector<int>& order);

/// Fixes the groups of state that no step has placed yet: where state should live is decided by all that computes with
/// it, which the costs of one step do not know. It takes the candidate that comes first in `order`, whatever the step,
/// so that every step of a graph finds the same.
void SettleState(const graph::StepGraph& step, const std::vector<int>& order, Constraints& constraints);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_RULES_H_
