// The scheduling problem of a step: costs from profiles, kernels, memory spaces and links.
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

/// The cost of a node on a device.
struct NodeCost {
  int64_t ns = kImpossible;
  Provenance provenance = Provenance::kGuess;
  const kernel::KernelEntry* kernel = nullptr;  // the cheapest; null if the core runs the node
  int64_t samples = 0;                          // of a measured time
  const std::string* outgrown = nullptr;        // MeasuredCosts::Outgrown, of a time that was not measured
  int64_t refused_ns = 0;                       // from declared work, if every kernel rejects the node
};

/// Costs of one step. Tasks are the op nodes in order; groups are those of the constraints.
struct CostTable {
  std::optional<Problem> problem;
  IndexedVector<graph::NodeId, TaskId> task_of;  // -1 for feeds and constants
  IndexedVector<TaskId, graph::NodeId> node_of;
  IndexedTable<TaskId, DeviceId, NodeCost> costs;
  std::vector<std::string> faults;  // plugins with invalid figures; these count as unknown

  const NodeCost& At(TaskId task, DeviceId device) const { return costs(task, device); }
};

/// Opens the candidate devices to query their costs. An invalid figure from a plugin never fails a step. A device where
/// every kernel rejects the node (`supports`) is excluded, unless no other is left.
CostTable BuildCostTable(const PlaceOptions& options, const graph::StepGraph& step, const Constraints& constraints,
                         Support& support);

/// TensorFlow's priority of device types: GPUs, then others, then CPUs; remote devices come after those of this
/// process.
int TypePriority(const device::Device& device);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_COST_TABLE_H_
