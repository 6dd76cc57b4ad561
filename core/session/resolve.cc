#include "core/session/resolve.h"

#include <set>

#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/graph/step_graph.h"

namespace weir::session {

std::vector<Tensor> ValuesOf(std::span<const Feed> feeds) {
  std::vector<Tensor> values;
  values.reserve(feeds.size());
  for (const Feed& feed : feeds) values.push_back(feed.second);
  return values;
}

namespace {

using graph::Endpoint;
using graph::Node;

enum class Role { kFeed, kFetch };

Status NoSuchNode(Asking asking, Role role, const std::string& name, const std::string& hint) {
  if (asking == Asking::kCallable) {
    return InvalidArgument("Tensor {}, specified in either feed_devices or fetch_devices was not found in the Graph{}",
                           name, hint);
  }
  if (role == Role::kFeed) return NotFound("FeedInputs: unable to find feed output {}{}", name, hint);
  return NotFound("FetchOutputs node {}: not found{}", name, hint);
}

Status NoSuchOutput(Asking asking, Role role, const std::string& name, const Node& node, int index) {
  if (asking == Asking::kCallable) {
    return OutOfRange("Node '{}' (type: '{}', num of outputs: {}) does not have output {}", node.name(), node.op().name,
                      node.num_outputs(), index);
  }
  if (role == Role::kFeed)
    return InvalidArgument("FeedInputs: {} should have output index < {}", name, node.num_outputs());
  if (node.num_outputs() == 0) {
    return InvalidArgument(
        "Tried to fetch data for '{}', which produces no output.  To run to a node but not fetch any "
        "data, pass '{}' as an argument to the 'target_node_names' argument of the Session::Run API.",
        name, name);
  }
  return InvalidArgument("FetchOutputs {}: output index too large, must be < {}", name, node.num_outputs());
}

Result<Endpoint> FindEndpoint(const graph::Definition& graph, Asking asking, Role role, const std::string& name) {
  WEIR_ASSIGN(const graph::InputName parsed, graph::ParseInputName(name));
  const Node* node = parsed.control ? nullptr : graph.Find(parsed.node);
  if (node == nullptr) return NoSuchNode(asking, role, name, NearestHint(parsed.node, graph.Names()));
  if (parsed.index >= node->num_outputs() && graph.IsForeign(*node)) {  // its number of outputs is not known
    return graph::AtNode(graph.ops().Get(node->op().name).status(), *node);
  }
  if (parsed.index >= node->num_outputs()) return NoSuchOutput(asking, role, name, *node, parsed.index);
  return Endpoint{node->id(), parsed.index};
}

}  // namespace

Result<ResolvedNames> Resolve(const graph::Definition& graph, Asking asking, std::span<const std::string> feeds,
                              std::span<const std::string> fetches, std::span<const std::string> targets) {
  if (fetches.empty() && targets.empty()) {
    return InvalidArgument("Must specify at least one target to fetch or execute.");
  }
  ResolvedNames names;
  std::set<Endpoint> fed;
  for (const std::string& feed : feeds) {
    WEIR_ASSIGN(const Endpoint endpoint, FindEndpoint(graph, asking, Role::kFeed, feed));
    if (!fed.insert(endpoint).second) {
      return InvalidArgument("Endpoint \"{}\" fed more than once.", graph::FullEndpointName(graph, endpoint));
    }
    names.feeds.push_back(endpoint);
  }
  for (const std::string& fetch : fetches) {
    WEIR_ASSIGN(const Endpoint endpoint, FindEndpoint(graph, asking, Role::kFetch, fetch));
    if (fed.contains(endpoint)) {
      return InvalidArgument("{} is both fed and fetched.", graph::FullEndpointName(graph, endpoint));
    }
    names.fetches.push_back(endpoint);
  }
  std::string missing;
  std::string hint;
  for (const std::string& target : targets) {
    const Node* node = graph.Find(target);
    if (node == nullptr) {
      missing += (missing.empty() ? "" : " ") + target;
      hint += NearestHint(target, graph.Names());
      continue;
    }
    names.targets.push_back(node->id());
  }
  if (!missing.empty()) return NotFound("PruneForTargets: Some target nodes not found: {}{}", missing, hint);
  return names;
}

Status CheckFeed(const graph::Definition& graph, Endpoint endpoint, const Tensor& value) {
  const DType wanted = BaseType(graph.TypeOf(endpoint));
  const PartialShape& shape = graph.ShapeOf(endpoint);
  Status fault;
  if (value.dtype() != wanted) {
    fault = InvalidArgument("Cannot feed value of type {} for Tensor '{}', which has type {}", Name(value.dtype()),
                            graph::FullEndpointName(graph, endpoint), Name(wanted));
  } else if (!shape.CompatibleWith(value.shape())) {
    fault = InvalidArgument("Cannot feed value of shape {} for Tensor '{}', which has shape '{}'",
                            PartialShape(value.shape()).ToTupleString(), graph::FullEndpointName(graph, endpoint),
                            shape.ToTupleString());
  } else {
    return Status();
  }
  const Node& node = graph.node(endpoint.node);
  return fault.WithNode(node.name(), node.origin());
}

}  // namespace weir::session
