// Declared costs, as a scheduling problem: what profiles, kernels, memory spaces and links say about a step.
#ifndef WEIR_CORE_PLACE_COST_TABLE_H_
#define WEIR_CORE_PLACE_COST_TABLE_H_

#include <optional>
#include <string>
#include <vector>

#include "core/place/constraints.h"
#include "core/place/explanation.h"
#include "core/place/problem.h"
#include "core/place/support.h"

namespace weir::place {

/// What a node costs on a device.
struct NodeCost {
  int64_t ns = kImpossible;
  Provenance provenance = Provenance::kGuess;
  const kernel::KernelEntry* kernel = nullptr;  // the cheapest; null for what the core runs
  int64_t refused_ns = 0;                       // by declared work, where every kernel refuses the node
};

/// Costs of one step. Tasks are the op nodes in order; groups are the constraints'.
struct CostTable {
  std::optional<Problem> problem;
  std::vector<int> task_of;         // by node, -1 for feeds and constants
  std::vector<int> node_of;         // by task
  std::vector<NodeCost> costs;      // task * devices
  std::vector<std::string> faults;  // of plugins whose figures are none; such figures count as unknown

  const NodeCost& At(int task, int device) const {
    return costs[static_cast<size_t>(task) * static_cast<size_t>(problem->device_count()) +
                 static_cast<size_t>(device)];
  }
};

/// Opens the devices that are candidates, to ask what they cost. A figure that a plugin gets wrong never fails a step.
/// A device where every kernel refuses the node (`supports`) is no candidate for it, unless it is the only one.
CostTable BuildCostTable(const PlaceOptions& options, const graph::StepGraph& step, const Constraints& constraints,
                         Support& support);

/// TensorFlow's order of device types: GPUs, then others, then CPUs.
int TypePriority(const device::Device& device);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_COST_TABLE_H_
