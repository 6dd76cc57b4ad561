// Decides which device runs each node of a step.
#ifndef WEIR_CORE_PLACE_PLACE_H_
#define WEIR_CORE_PLACE_PLACE_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/graph/placement.h"
#include "core/graph/step_graph.h"
#include "core/kernel/registry.h"
#include "core/place/explanation.h"
#include "core/place/portfolio.h"

namespace weir::config {
class Pins;
}

namespace weir::place {

/// Index of the host in Placement::device_of: feeds and constants live there.
inline constexpr int kHost = -1;

struct PlaceOptions {
  enum class Explain : uint8_t { kSummary, kDevices, kAll };

  /// A request that cannot be met gives up the device number, then the type; never job, replica or task.
  bool allow_soft_placement = true;
  /// For nodes that ask for nothing: a partial name. Set, it comes before all costs.
  std::string default_device;
  Algorithm algorithm = Algorithm::kCostSim;
  /// Node name -> device: a plan from outside. It counts as a request where the graph has none.
  std::map<std::string, std::string> plan;
  /// A pin replaces what the graph asks for; null = none.
  std::shared_ptr<const config::Pins> pins;
  /// What the graph's own `device` fields are: requests, or nothing, so that a model file decides nothing here.
  bool keep_graph_devices = true;
  /// What an unknown dimension counts in costs.
  int64_t unknown_dim = 32;
  /// A node that soft placement would move away from the kind of device it asks for is an error.
  bool strict_devices = false;
  /// Devices of nodes whose state exists already, by id in the graph; they stay.
  const std::map<graph::NodeId, int>* placed = nullptr;
  /// kDevices also fills Explanation::written; kAll that and Explanation::nodes, which takes costs of every node on
  /// every device.
  Explain explain = Explain::kSummary;
  /// What the configuration says of links, by "CPU:0->GPU:0", above what plugins declare; 0 = not said.
  struct LinkFigures {
    double latency_ns = 0;
    double bytes_per_ns = 0;
  };
  std::map<std::string, LinkFigures> links;
  /// Plugin files that are not there, "gpu.so: libcuda.so.1: cannot open …"; named when a request fails.
  std::vector<std::string> absent_plugins;
};

/// Gives every op node a device. Nodes that must share one do: the ends of reference and resource edges, `_class`
/// "loc:@x", the nodes of a loop. Where constraints leave a choice, `options.algorithm` makes it by declared costs;
/// where they leave none, nothing is computed. Deterministic to the bit. `explanation` may be null. What nodes ask for
/// that StepGraph::written has and the step does not run is checked like the rest.
///
/// Errors, with TensorFlow's texts, both nodes of a conflict, and a last line of ours that says what could be met and
/// which line of the configuration helps: InvalidArgument for a malformed request, a device that does not exist,
/// colocated nodes that contradict each other, an op without kernel; FailedPrecondition when there is no device at all.
Result<graph::Placement> Place(const PlaceOptions& options, const graph::StepGraph& step,
                               const device::DeviceSet& devices, const kernel::KernelRegistry& kernels,
                               Explanation* explanation = nullptr);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_PLACE_H_
