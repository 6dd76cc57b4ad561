// Placement by rules, without costs: TensorFlow's, and the rule for a default device.
#ifndef WEIR_CORE_PLACE_RULES_H_
#define WEIR_CORE_PLACE_RULES_H_

#include <map>
#include <vector>

#include "core/place/constraints.h"

namespace weir::place {

/// Devices by descending TypePriority; ties keep their order.
std::vector<int> TypeOrder(const device::DeviceSet& devices);

/// A device for every group: the first candidate in `order`. Ops that only inspect or forward a tensor are placed with
/// their input. A node without inputs and with one output is placed with its consumers if they share a device.
std::vector<int> PlaceByOrder(const graph::StepGraph& step, const Constraints& constraints,
                              const std::vector<int>& order);

struct StateRules {
  std::vector<int> order;  // of devices, for state whose device costs do not decide
  bool by_cost = false;
  const std::map<graph::NodeId, int>* preferred = nullptr;  // PlaceOptions::preferred
};

/// Narrows the candidates of groups of state that no step has placed yet: to the preferred device of a member, and
/// otherwise, unless costs decide, to the first candidate in `order`, so that every step of a graph chooses the same.
void SettleState(const graph::StepGraph& step, const StateRules& rules, Constraints& constraints);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_RULES_H_
