// Device requests of nodes, from the graph and from options, and the devices that satisfy them.
#ifndef WEIR_CORE_PLACE_REQUESTS_H_
#define WEIR_CORE_PLACE_REQUESTS_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/place/place.h"
#include "core/place/support.h"

namespace weir::place {

/// Borrows the options.
class Requests {
 public:
  /// Fails with the status of the options' pins.
  static Result<Requests> Make(const PlaceOptions& options);

  /// The request of a pin, else of the graph, else of the plan; empty = none.
  std::string_view For(const graph::Node& node) const;

  /// InvalidArgument if two pins that match the node's name equally well ask for different devices.
  Status CheckPins(const graph::Node& node) const;
  /// "\nweir: [placement.pin] "^a" = "/device:GPU:0" pins 'a/b'", or nothing if the node is not pinned.
  std::string PinText(const graph::Node& node) const;

  /// If the request's type is an alias: the first device of the alias that exists and is in `mask`; if none is, the
  /// first that exists, or the first. Job, replica and task stay.
  device::DeviceName Resolve(device::DeviceName spec, const Support& support, DeviceMask mask) const;

 private:
  explicit Requests(const PlaceOptions& options);

  const PlaceOptions* options_;
};

/// InvalidArgument, naming the node, for an invalid device name.
Result<device::DeviceName> ParseRequest(std::string_view asked, const graph::Node& node);

/// Devices that satisfy a request after dropping the device number, or also the type.
struct Softened {
  std::vector<int> devices;
  SoftRule rule = SoftRule::kNone;
};
Softened SoftCandidates(const Support& support, DeviceMask mask, device::DeviceName spec);

/// A device for each node of StepGraph::written that the step does not run (because it is fed, constant, folded, merged
/// or unused): the first one that satisfies its request, else the host's. -1 for nodes that the step runs.
/// Unsatisfiable requests are errors, as in Place.
Result<std::vector<int>> PlaceWritten(const PlaceOptions& options, const graph::StepGraph& step, Support& support);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_REQUESTS_H_
