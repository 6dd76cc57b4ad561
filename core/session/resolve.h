// Resolves names of feeds, fetches and targets to endpoints, and checks feeds.
#ifndef WEIR_CORE_SESSION_RESOLVE_H_
#define WEIR_CORE_SESSION_RESOLVE_H_

#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/definition.h"
#include "core/session/call.h"
#include "core/tensor/tensor.h"

namespace weir::session {

/// The fed values, without their names.
std::vector<Tensor> ValuesOf(std::span<const Feed> feeds);

/// The resolved names of a signature.
struct ResolvedNames {
  std::vector<graph::Endpoint> feeds;
  std::vector<graph::Endpoint> fetches;
  std::vector<graph::NodeId> targets;
  std::vector<graph::NodeId> done;  // StepRequest::done
};

/// The caller: TensorFlow's texts differ between Run and in-process callables.
enum class Asking { kRun, kCallable };

/// InvalidArgument, NotFound or OutOfRange with TensorFlow's texts and the nearest names: for an unknown name, an index
/// out of range, a tensor that is fed twice or both fed and fetched, and an empty request.
Result<ResolvedNames> Resolve(const graph::Definition& graph, Asking asking, std::span<const std::string> feeds,
                              std::span<const std::string> fetches, std::span<const std::string> targets);

/// InvalidArgument, naming the tensor, if `value` has another type or a shape incompatible with the graph.
Status CheckFeed(const graph::Definition& graph, graph::Endpoint endpoint, const Tensor& value);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_RESOLVE_H_
