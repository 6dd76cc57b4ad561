// What nodes ask for, in their graph and outside it, and which devices meet it.
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
  /// The status of the options' pins.
  static Result<Requests> Make(const PlaceOptions& options);

  /// What a pin says, else what the graph says, else what the plan says; empty = nothing.
  std::string_view For(const graph::Node& node) const;

 private:
  explicit Requests(const PlaceOptions& options);

  const PlaceOptions* options_;
};

/// InvalidArgument, naming the node, for what is no device name.
Result<device::DeviceName> ParseRequest(std::string_view asked, const graph::Node& node);

/// Devices of a set that meet a request once the device number, or else the type too, is given up.
struct Softened {
  std::vector<int> devices;
  SoftRule rule = SoftRule::kNone;
};
Softened SoftCandidates(const Support& support, DeviceMask mask, device::DeviceName spec);

/// A device for each of StepGraph::written that the step does not run (it is fed, constant, folded, equal to another or
/// of no use): the first that it asks for, else the host's. -1 for nodes that the step runs. Requests that cannot be
/// met are errors, as Place's.
Result<std::vector<int>> PlaceWritten(const PlaceOptions& options, const graph::StepGraph& step, Support& support);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_REQUESTS_H_
