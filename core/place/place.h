// Decides which device runs each node of a step.
#ifndef WEIR_CORE_PLACE_PLACE_H_
#define WEIR_CORE_PLACE_PLACE_H_

#include <string>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/graph/placement.h"
#include "core/graph/step_graph.h"
#include "core/kernel/registry.h"

namespace weir::place {

/// Index of the host in Placement::device_of: feeds and constants live there, and builtin kernels run there.
inline constexpr int kHost = -1;

struct PlaceOptions {
  /// A request that cannot be met gives up device type and number, then the node goes where it can run.
  bool allow_soft_placement = true;
  /// For nodes that ask for nothing: a partial name; empty = the first CPU, else the first device that is not opt-in.
  std::string default_device;
};

/// Groups nodes that must share a device (reference and resource edges, `_class` "loc:@x"), merges their requests, and
/// gives each group the first device that matches the request and has kernels for all members. Deterministic.
/// Errors: InvalidArgument with TensorFlow's texts for a malformed request, a device that does not exist, colocated
/// nodes that contradict each other, and an op without kernel; FailedPrecondition when there is no device at all.
Result<graph::Placement> Place(const PlaceOptions& options, const graph::StepGraph& step,
                               const device::DeviceSet& devices, const kernel::KernelRegistry& kernels);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_PLACE_H_
