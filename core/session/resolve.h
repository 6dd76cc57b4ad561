// Names of feeds, fetches and targets -> endpoints of the graph.
#ifndef WEIR_CORE_SESSION_RESOLVE_H_
#define WEIR_CORE_SESSION_RESOLVE_H_

#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

namespace weir::session {

/// What a signature refers to.
struct ResolvedNames {
  std::vector<graph::Endpoint> feeds;
  std::vector<graph::Endpoint> fetches;
  std::vector<graph::NodeId> targets;
  std::vector<graph::NodeId> done;  // StepRequest::done
};

/// Who asks: TensorFlow words the same fault differently for Run and for in-process callables.
enum class Asking { kRun, kCallable };

/// InvalidArgument, NotFound or OutOfRange with TensorFlow's texts (and the nearest names) for a name that the graph
/// does not have, an index too large, a tensor fed twice or both fed and fetched, and for nothing to do at all.
Result<ResolvedNames> Resolve(const graph::Graph& graph, Asking asking, std::span<const std::string> feeds,
                              std::span<const std::string> fetches, std::span<const std::string> targets);

/// InvalidArgument with TensorFlow's texts for a value whose type or shape the endpoint cannot have.
Status CheckFeed(const graph::Graph& graph, graph::Endpoint endpoint, const Tensor& value);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_RESOLVE_H_
