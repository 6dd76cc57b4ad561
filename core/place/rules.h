// Placement by rules, without costs: TensorFlow's, and the rule for a default device.
#ifndef WEIR_CORE_PLACE_RULES_H_
#define WEIR_CORE_PLACE_RULES_H_

#include <vector>

#include "core/place/constraints.h"

namespace weir::place {

/// Devices by descending TypePriority; ties keep their order.
std::vector<int> TypeOrder(const device::DeviceSet& devices);

/// A device for every group: the first candidate in `order`. Ops that only inspect or forward a tensor are placed with
/// their input. A node without inputs and with one output is placed with its consumers if they share a device.
std::vector<int> PlaceByOrder(const graph::StepGraph& step, const Constraints& constraints,
                              const std::vector<int>& order);

/// Fixes the groups of state that no step has placed yet. The best device depends on all steps that use the state,
/// which the costs of one step do not cover. Chooses the first candidate in `order`, so that every step of a graph
/// chooses the same device.
void SettleState(const graph::StepGraph& step, const std::vector<int>& order, Constraints& constraints);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_RULES_H_
