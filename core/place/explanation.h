// The explanation of a placement.
#ifndef WEIR_CORE_PLACE_EXPLANATION_H_
#define WEIR_CORE_PLACE_EXPLANATION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/place/portfolio.h"

namespace weir::place {

/// The part of a request that soft placement dropped.
enum class SoftRule : uint8_t { kNone, kIdDropped, kTypeDropped };

/// Origin of a cost.
enum class Provenance : uint8_t {
  kAnalytic,    // from the profile and the kernel's own estimate or declared work
  kCalibrated,  // as kAnalytic, with a measured profile
  kGuess,       // a shape or the profile is unknown
  kMeasured,    // the median of measured times of the same kernel and shapes
};

/// The reason for a node's device.
enum class Reason : uint8_t {
  kOnlyDevice,  // the only device
  kRequested,   // requested by the graph or the configuration
  kSoft,        // a different device was requested but is not available
  kState,       // its state lives there
  kNoKernel,    // no other device has kernels for the node and its group
  kCost,        // the plan with the shortest simulated time
  kMemory,      // faster plans exceed the memory
  kRule,        // TensorFlow's rules or the default device
};

std::string_view Name(SoftRule rule);
std::string_view Name(Provenance provenance);
std::string_view Name(Reason reason);

/// One candidate device of a node. Times are from the simulated step; -1 if unknown.
struct CandidateReport {
  std::string device;
  std::string kernel;  // the plugin; empty if the core runs the node
  bool possible = false;
  bool chosen = false;
  Provenance provenance = Provenance::kGuess;
  int64_t samples = 0;  // of a measured time
  int64_t exec_ns = -1;
  int64_t inputs_ns = -1;     // transfers of its inputs
  int64_t link_wait_ns = -1;  // only for the chosen device
  int64_t queue_ns = -1;      // only for the chosen device
  int64_t finish_ns = -1;
  std::string verdict;
};

struct NodeReport {
  std::string name;
  std::string op;
  std::string operands;  // "float [128,784] x float [784,256] -> float [128,256]"
  std::string device;
  std::string requested;
  int group = -1;
  int group_size = 0;
  Reason reason = Reason::kOnlyDevice;
  std::string note;                      // the effect of soft placement
  int64_t bytes = 0;                     // of its outputs, or of the state that it creates
  std::vector<std::string> inputs = {};  // nodes whose values it uses, each once
  int64_t start_ns = 0;                  // in the simulated step
  int64_t finish_ns = 0;
  std::vector<CandidateReport> candidates;
};

/// A node that a request feeds or needs, whether or not the step runs it.
struct WrittenNode {
  std::string name;
  std::string op;
  std::string device;
  bool runs = false;  // otherwise fed, constant, folded, merged or unused
};

/// Summary of a node's placement. `op` and `device` are borrowed from the registry and the devices.
struct PlacedOp {
  std::string name;
  std::string_view op;
  std::string_view device;
  Reason reason = Reason::kOnlyDevice;
};

/// The expected memory use of a step on a device, from static shapes.
struct DeviceMemory {
  std::string device;
  int64_t capacity_bytes = -1;  // -1 = not declared by the plugin
  int64_t state_bytes = 0;      // variables
  int64_t constant_bytes = 0;   // used by its nodes
  int64_t value_bytes = 0;      // peak of the values between nodes
};

/// A transfer in the simulated step. Devices are short names, "GPU:0"; the host is that of the first host device.
struct TransferReport {
  std::string node, from, to;  // the node whose value it is
  int64_t bytes = 0;
  int64_t start_ns = 0;
  int64_t finish_ns = 0;
};

/// Memory in use on a device from this time on.
struct MemoryPoint {
  int device = 0;  // index into Explanation::memory
  int64_t time_ns = 0;
  int64_t bytes = 0;
};

/// Filled by Place.
struct Explanation {
  std::vector<PlacedOp> placed;      // op nodes in step order
  std::vector<NodeReport> nodes;     // as above with candidates; with kAll
  std::vector<WrittenNode> written;  // StepGraph::written; with kDevices and kAll
  std::string summary;               // one line
  std::vector<std::string> warnings;
  std::vector<Tried> tried;
  std::string winner;
  int64_t makespan_ns = 0;
  int64_t bound_ns = 0;        // no plan is shorter
  int64_t best_single_ns = 0;  // 0 = no single device holds the step
  int64_t transfers = 0;
  int64_t transferred_bytes = 0;
  uint64_t hash = 0;                       // of names and devices
  std::vector<TransferReport> course;      // with kAll
  std::vector<MemoryPoint> memory_course;  // with kAll, in order of time
  std::vector<DeviceMemory> memory;        // by device, with kAll; `nodes` has the output sizes
};

/// The explanation as text: the summary, the plan and its hash, then each node with its candidates.
std::string ToText(const Explanation& explanation);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_EXPLANATION_H_
