#include "tools/weir/run_request.h"

#include <algorithm>
#include <set>

#include "core/base/errors.h"
#include "core/graph/frames.h"
#include "core/graph/graph_def.h"
#include "core/graph/large_graph.h"
#include "core/io/file_bytes.h"
#include "core/ops/declare_all.h"
#include "core/session/resolve.h"
#include "core/session/runtime.h"
#include "tools/weir/run_files.h"

namespace weir::cli {
namespace {

constexpr uint64_t kMaxGraphBytes = uint64_t{2} << 30;

// By node: the number of conditions on which it runs, assuming matching pairs of Switch and Merge; a loop counts as one
// more.
std::vector<int> Conditions(const graph::Definition& graph) {
  std::vector<int> conditions(static_cast<size_t>(graph.num_nodes()), 0);
  for (graph::NodeId id = 0; id < graph.num_nodes(); ++id) {
    const graph::Node& node = graph.node(id);
    int most = 0;
    bool closes_loop = false;
    const auto on = [&](graph::NodeId from) {
      if (from >= 0 && from < id) most = std::max(most, conditions[static_cast<size_t>(from)]);
      closes_loop = closes_loop || from >= id;
    };
    for (const graph::Endpoint& input : node.inputs()) on(input.node);
    for (const graph::NodeId input : node.control_inputs()) on(input);
    const graph::Flow flow = graph::FlowOf(node);
    if (flow == graph::Flow::kSwitch || flow == graph::Flow::kEnter) ++most;
    if (flow == graph::Flow::kMerge && !closes_loop) --most;
    if (flow == graph::Flow::kExit) most -= 2;  // the loop and the Switch before the Exit
    conditions[static_cast<size_t>(id)] = std::max(most, 0);
  }
  return conditions;
}

// Outputs that can be stored in a file, that no node reads and that are live for every feed. Nodes that others wait
// for, placeholders and fed nodes are left out.
std::vector<std::string> UnreadOutputs(const graph::Definition& graph, const std::vector<session::Feed>& feeds) {
  std::set<graph::Endpoint> read;
  std::set<graph::NodeId> awaited;
  for (graph::NodeId id = 0; id < graph.num_nodes(); ++id) {
    for (const graph::Endpoint& input : graph.node(id).inputs()) read.insert(input);
    for (const graph::NodeId input : graph.node(id).control_inputs()) awaited.insert(input);
  }
  std::set<std::string> fed;
  for (const session::Feed& feed : feeds)
    fed.insert(feed.first.find(':') == std::string::npos ? feed.first + ":0" : feed.first);
  const std::vector<int> conditions = Conditions(graph);
  std::vector<std::string> names;
  for (graph::NodeId id = 0; id < graph.num_nodes(); ++id) {
    if (awaited.contains(id) || graph.node(id).op().traits.universal == op::Universal::kPlaceholder) continue;
    if (conditions[static_cast<size_t>(id)] != 0) continue;
    const bool chooses = graph::FlowOf(graph.node(id)) == graph::Flow::kMerge;
    for (int i = 0; i < (chooses ? 1 : graph.node(id).num_outputs()); ++i) {
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

Result<graph::Definition> ReadGraph(const std::string& path) {
  WEIR_ASSIGN(const op::OpRegistry* ops, ops::Catalogue());
  session::Runtime::LoadOpsOnDemand();
  WEIR_ASSIGN(const io::FileBytes file, io::FileBytes::Open(path, kMaxGraphBytes));
  graph::ImportOptions options;
  options.owner = file.owner();
  options.constants = graph::ConstantsBeside(path);
  Result<graph::Definition> graph = graph::ParseGraph(file.bytes(), *ops, options);
  if (!graph.ok()) return graph.status().Prepend(path + ": ");
  return graph;
}

Result<Request> MakeRequest(const RunCommandOptions& options, const graph::Definition& graph) {
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
          "{}: every output is read by a node or cannot be stored in a file; name an output with --fetch or a node "
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
