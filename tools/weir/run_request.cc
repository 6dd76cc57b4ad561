#include "tools/weir/run_request.h"

#include <set>

#include "core/graph/graph_def.h"
#include "core/io/files.h"
#include "core/ops/declare_all.h"
#include "core/session/resolve.h"
#include "tools/weir/run_files.h"

namespace weir::cli {
namespace {

constexpr uint64_t kMaxGraphBytes = uint64_t{2} << 30;

// Outputs that a file can hold and that no node reads; nodes that others wait for, placeholders and what is fed are
// left out.
std::vector<std::string> UnreadOutputs(const graph::Graph& graph, const std::vector<session::Feed>& feeds) {
  std::set<graph::Endpoint> read;
  std::set<graph::NodeId> awaited;
  for (graph::NodeId id = 0; id < graph.num_nodes(); ++id) {
    for (const graph::Endpoint& input : graph.node(id).inputs()) read.insert(input);
    for (const graph::NodeId input : graph.node(id).control_inputs()) awaited.insert(input);
  }
  std::set<std::string> fed;
  for (const session::Feed& feed : feeds)
    fed.insert(feed.first.find(':') == std::string::npos ? feed.first + ":0" : feed.first);
  std::vector<std::string> names;
  for (graph::NodeId id = 0; id < graph.num_nodes(); ++id) {
    if (awaited.contains(id) || graph.node(id).op().name == "Placeholder") continue;
    for (int i = 0; i < graph.node(id).num_outputs(); ++i) {
      const graph::Endpoint endpoint{id, i};
      const DType dtype = BaseType(graph.TypeOf(endpoint));
      if (read.contains(endpoint) || dtype == DType::kResource || dtype == DType::kVariant) continue;
      if (!fed.contains(graph::FullEndpointName(graph, endpoint)))
        names.push_back(graph::EndpointName(graph, endpoint));
    }
  }
  return names;
}

}  // namespace

Result<graph::Graph> ReadGraph(const std::string& path) {
  WEIR_ASSIGN(const op::OpRegistry* ops, ops::Catalogue());
  WEIR_ASSIGN(const std::string bytes, io::ReadFile(path, kMaxGraphBytes));
  Result<graph::Graph> graph = graph::ParseGraph(bytes, *ops);
  if (!graph.ok()) return graph.status().Prepend(path + ": ");
  return graph;
}

Result<Request> MakeRequest(const RunCommandOptions& options, const graph::Graph& graph) {
  Request request;
  std::vector<std::string> feed_names;
  for (const std::string& feed : options.feeds) {
    feed_names.push_back(SplitFeed(feed).first);
    request.feeds.emplace_back(feed_names.back(), Tensor());
  }
  request.fetches = options.fetches;
  if (request.fetches.empty() && options.targets.empty()) {
    request.fetches = UnreadOutputs(graph, request.feeds);
    if (request.fetches.empty()) {
      return InvalidArgument(
          "{}: no output is left that a file can hold and no node reads; name one with --fetch or a node "
          "with --target",
          options.graph);
    }
  }
  std::vector<std::string> nodes = options.targets;
  nodes.insert(nodes.end(), options.inits.begin(), options.inits.end());
  WEIR_ASSIGN(const session::ResolvedNames names,
              session::Resolve(graph, session::Asking::kRun, feed_names, request.fetches, nodes));
  if (!options.out_dir.empty()) {
    WEIR_ASSIGN(request.files, OutputFiles(options.out_dir, request.fetches));
  }
  for (size_t i = 0; i < options.feeds.size(); ++i) {
    const graph::Endpoint endpoint = names.feeds[i];
    Result<Tensor> value =
        ReadFeed(feed_names[i], SplitFeed(options.feeds[i]).second, BaseType(graph.TypeOf(endpoint)));
    if (!value.ok()) return value.status().WithNode(graph.node(endpoint.node).name());
    request.feeds[i].second = std::move(*value);
  }
  return request;
}

}  // namespace weir::cli
