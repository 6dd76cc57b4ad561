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

/// Fixes the groups of state that this step only creates or sets: where the state should live is decided by what
/// computes with it, which the costs of this step do not know. They take the first device in `order` that has kernels
/// for everything in the whole graph that is tied to the state.
void SettleState(const graph::StepGraph& step, const std::vector<int>& order, Support& support,
                 Constraints& constraints);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_RULES_H_
