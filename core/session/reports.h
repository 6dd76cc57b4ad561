// Reports: what a run did, where nodes are placed, what devices there are.
#ifndef WEIR_CORE_SESSION_REPORTS_H_
#define WEIR_CORE_SESSION_REPORTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/trace/span.h"

namespace weir::session {

/// A device as listed by TensorFlow's clients.
struct DeviceAttributes {
  std::string name;  // full
  std::string device_type;
  uint64_t memory_limit_bytes = 0;  // 0 = not declared by the plugin
};

/// Plugins and devices: available, loaded, visible and used.
struct DeviceReport {
  std::vector<std::string> compiled;  // plugins in the folders, including those that do not load
  std::vector<std::string> loaded;    // plugins that were loaded
  std::vector<std::string> visible;   // devices left by the configuration
  std::vector<std::string> used;      // devices that have run nodes of this session
};

/// The device of a node, and the reason: "cost", "requested", "only device", … (place::Reason).
struct PlacedNode {
  std::string node;
  std::string op;
  std::string device;  // full name
  std::string reason;
};
using Placement = std::vector<PlacedNode>;
/// One line per node: "y (Square): /job:localhost/replica:0/task:0/device:CPU:0  only device".
std::string ToText(const Placement& placement);
/// A list of objects with the keys of `weir explain --json`: name, op, device and reason.
std::string ToJson(const Placement& placement);

/// Report of one run, for tests and `weir run`. A run overwrites all fields.
struct RunReport {
  std::map<std::string, int> placement;     // device name -> nodes
  std::vector<std::string> executed_nodes;  // in tape order; only when RunOptions::collect_nodes
  int instructions = 0;
  uint64_t arena_bytes = 0;
  uint64_t live_bytes = 0;                    // peak of those in use when ops run serially
  trace::StepTrace trace;                     // only with RunOptions::trace; also for a failed run
  std::vector<std::string> partition_graphs;  // serialized GraphDefs; only when RunOptions::output_partition_graphs
};

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_REPORTS_H_
