// Why each node is where it is.
#ifndef WEIR_CORE_PLACE_EXPLANATION_H_
#define WEIR_CORE_PLACE_EXPLANATION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/place/portfolio.h"

namespace weir::place {

/// What soft placement gave up.
enum class SoftRule : uint8_t { kNone, kIdDropped, kTypeDropped };

/// Where a cost comes from.
enum class Provenance : uint8_t {
  kAnalytic,    // from the profile and the kernel's own estimate or declared work
  kCalibrated,  // the same with a measured profile
  kGuess,       // a shape or the profile is unknown
};

/// Why a node is on its device.
enum class Reason : uint8_t {
  kOnlyDevice,  // there is no other
  kRequested,   // the graph or the configuration asks for it
  kSoft,        // asked for another, which could not be had
  kState,       // its state lives there
  kNoKernel,    // no other device has kernels for it and what it is colocated with
  kCost,        // the plan that simulates best
  kMemory,      // better plans do not fit the memory
  kRule,        // TensorFlow's rules, or the default device
};

std::string_view Name(SoftRule rule);
std::string_view Name(Provenance provenance);
std::string_view Name(Reason reason);

/// One device in the eyes of one node. Times are of the simulated step, -1 where there are none.
struct CandidateReport {
  std::string device;
  std::string kernel;  // the plugin; empty for what the core runs
  bool possible = false;
  bool chosen = false;
  Provenance provenance = Provenance::kGuess;
  int64_t exec_ns = -1;
  int64_t inputs_ns = -1;     // transfers of its inputs
  int64_t link_wait_ns = -1;  // known for the chosen device
  int64_t queue_ns = -1;      // known for the chosen device
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
  std::string note;   // what soft placement did
  int64_t bytes = 0;  // of its outputs, or of the state that it makes
  std::vector<CandidateReport> candidates;
};

/// A node that a request feeds or needs, whatever became of it.
struct WrittenNode {
  std::string name;
  std::string op;
  std::string device;
  bool runs = false;  // else it is fed, constant, folded, equal to another or of no use
};

/// Where a node of the step is, in few words.
struct PlacedOp {
  std::string name;
  std::string op;
  std::string device;
  Reason reason = Reason::kOnlyDevice;
};

/// What a step is expected to need on a device, from shapes alone.
struct DeviceMemory {
  std::string device;
  int64_t capacity_bytes = -1;  // -1 = its plugin does not say
  int64_t state_bytes = 0;      // variables
  int64_t constant_bytes = 0;   // of those that its nodes use
  int64_t value_bytes = 0;      // the most that values between nodes take at one time
};

/// Filled by Place.
struct Explanation {
  std::vector<PlacedOp> placed;      // op nodes, in the order of the step
  std::vector<NodeReport> nodes;     // the same with their candidates; with kAll
  std::vector<WrittenNode> written;  // StepGraph::written; with kDevices and kAll
  std::string summary;               // one line
  std::vector<std::string> warnings;
  std::vector<Tried> tried;
  std::string winner;
  int64_t makespan_ns = 0;
  int64_t bound_ns = 0;
  int64_t transfers = 0;
  int64_t transferred_bytes = 0;
  uint64_t hash = 0;                 // of names and devices
  std::vector<DeviceMemory> memory;  // by device, with kAll; `nodes` say how large the outputs of each are
};

/// The explanation for people: the summary, the plan and its hash, then each node with its candidates.
std::string ToText(const Explanation& explanation);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_EXPLANATION_H_
