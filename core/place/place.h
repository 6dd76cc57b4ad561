// Placement: chooses the device of each node of a step.
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
#include "core/kernel/measured.h"
#include "core/kernel/registry.h"
#include "core/place/explanation.h"
#include "core/place/portfolio.h"

namespace weir::config {
class Pins;
}

namespace weir::place {

/// The host's index in Placement::device_of, for feeds and constants.
inline constexpr int kHost = -1;

struct PlaceOptions {
  enum class Explain : uint8_t { kSummary, kDevices, kAll };

  /// If a request cannot be satisfied, drops the device number, then the type; never job, replica or task.
  bool allow_soft_placement = true;
  /// A partial device name for nodes without a request. If set, it takes precedence over costs.
  std::string default_device;
  Algorithm algorithm = Algorithm::kCostSim;
  /// Node name -> device: an external plan, used as requests where the graph has none.
  std::map<std::string, std::string> plan;
  /// Node name -> device: an external plan that competes with those of kCostSim; nodes without an entry are placed by
  /// TensorFlow's rules in it.
  std::map<std::string, std::string> candidate;
  /// Device types that stand for the first of several devices that exists and can run a node: "FAST" ->
  /// {"/device:GPU:0", "/device:CPU:0"}.
  std::map<std::string, std::vector<std::string>> aliases;
  /// Simulations of kCostSim for improving its best plan; 0 = none.
  int64_t refine_iterations = 2000;
  /// Most devices of a plan by costs, as far as kernels, state and requests allow; 0 = all.
  int max_devices = 0;
  /// Pins override requests of the graph; null = none.
  std::shared_ptr<const config::Pins> pins;
  /// Treats the `device` fields of the graph's nodes as requests; otherwise ignores them, so that a model file cannot
  /// choose devices.
  bool keep_graph_devices = true;
  /// The extent assumed for an unknown dimension in costs.
  int64_t unknown_dim = 32;
  /// It is an error if soft placement would change the requested device type.
  bool strict_devices = false;
  /// Devices of nodes with existing state, by graph id; these are fixed.
  const std::map<graph::NodeId, int>* placed = nullptr;
  /// Devices for nodes that create state, chosen with more in view than this step; used where they are candidates.
  const std::map<graph::NodeId, int>* preferred = nullptr;
  /// kDevices also fills Explanation::written; kAll also fills Explanation::nodes, which needs the costs of every node
  /// on every device.
  Explain explain = Explain::kSummary;
  /// Configured figures of links such as "CPU:0->GPU:0"; they override the plugins' figures. 0 = not set.
  struct LinkFigures {
    double latency_ns = 0;
    double bytes_per_ns = 0;
  };
  std::map<std::string, LinkFigures> links;
  /// Measured times, which replace declared ones, and scale those of ops that were measured with other shapes. Null =
  /// none.
  std::shared_ptr<const kernel::MeasuredCosts> measured;
  /// Warns of nodes with larger operands than any that were measured.
  bool warn_of_outgrown = true;
  /// Missing plugin files, "gpu.so: libcuda.so.1: cannot open …"; named in errors of requests.
  std::vector<std::string> absent_plugins;
};

/// Gives every op node a device. These nodes share a device: the ends of reference and resource edges, nodes named by
/// `_class` "loc:@x", and the nodes of a loop, except those whose op lacks a kernel where the others have one. If
/// constraints leave a choice, `options.algorithm` decides by declared
/// costs; otherwise no costs are computed. The result is deterministic. `explanation` may be null. Also checks the
/// requests of nodes in StepGraph::written that the step does not run.
///
/// Errors have TensorFlow's texts, name both nodes of a conflict, and end in a line that gives a satisfiable request
/// and a configuration setting that helps. InvalidArgument for a malformed request, a device that does not exist,
/// colocated nodes with contradicting requests, and an op without a kernel; FailedPrecondition if there is no device.
Result<graph::Placement> Place(const PlaceOptions& options, const graph::StepGraph& step,
                               const device::DeviceSet& devices, const kernel::KernelRegistry& kernels,
                               Explanation* explanation = nullptr);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_PLACE_H_
