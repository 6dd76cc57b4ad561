// Pruning: the step is what lies behind the fetches and targets, cut at the feeds.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/optimize/passes_internal.h"

namespace weir::optimize {
namespace {

using graph::Endpoint;
using graph::Node;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

bool IsPlaceholder(const Node& node) {
  const std::string& op = node.op().name;
  return op == "Placeholder" || op == "PlaceholderV2";
}

Status NotFed(const Node& node) {
  std::string shape;
  const PartialShape& known = node.output_shapes()[0];
  if (known.has_rank() && known.rank() > 0) shape = " and shape " + known.ToString();
  return graph::AtNode(InvalidArgument("You must feed a value for placeholder tensor '{}' with dtype {}{}", node.name(),
                                       Name(node.output_types()[0]), shape),
                       node);
}

/// Walks the graph backwards, depth first, and emits nodes after everything that they need.
class Pruner {
 public:
  Pruner(const graph::Graph& graph, const graph::StepRequest& request) : graph_(graph), request_(request) {
    step_.graph = &graph;
    step_of_.assign(static_cast<size_t>(graph.num_nodes()), -1);
    visiting_.assign(static_cast<size_t>(graph.num_nodes()), false);
  }

  Result<StepGraph> Run() {
    AddFeeds();
    for (const Endpoint& fetch : request_.fetches) {
      const auto fed = feeds_.find(fetch);
      if (fed == feeds_.end()) WEIR_TRY(Visit(fetch.node));
      step_.fetches.push_back(fed != feeds_.end() ? Endpoint{fed->second, 0}
                                                  : Endpoint{StepOf(fetch.node), fetch.index});
    }
    for (NodeId target : request_.targets) {
      const NodeId replaced = ReplacedByFeed(target);
      if (replaced < 0) WEIR_TRY(Visit(target));
      step_.targets.push_back(replaced < 0 ? StepOf(target) : replaced);
    }
    return std::move(step_);
  }

 private:
  NodeId StepOf(NodeId id) const { return step_of_[static_cast<size_t>(id)]; }

  void AddFeeds() {
    for (size_t i = 0; i < request_.feeds.size(); ++i) {
      const graph::FeedSpec& feed = request_.feeds[i];
      StepNode node;
      node.kind = StepNode::Kind::kFeed;
      node.source = &graph_.node(feed.endpoint.node);
      node.feed = static_cast<int>(i);
      node.types = {feed.dtype};
      node.shapes = {feed.shape};
      feeds_.emplace(feed.endpoint, static_cast<NodeId>(step_.nodes.size()));
      step_.nodes.push_back(std::move(node));
    }
  }

  /// A fed placeholder vanishes altogether, its control edges included; other fed nodes stay for their other uses.
  NodeId ReplacedByFeed(NodeId id) const {
    if (feeds_.empty() || !IsPlaceholder(graph_.node(id))) return -1;
    const auto fed = feeds_.find(Endpoint{id, 0});
    return fed == feeds_.end() ? -1 : fed->second;
  }

  /// What has to be emitted before node `id`, in order: unvisited data and control inputs.
  void PushInputs(NodeId id) {
    const Node& node = graph_.node(id);
    const auto controls = node.control_inputs();
    for (auto it = controls.rbegin(); it != controls.rend(); ++it) {
      if (StepOf(*it) < 0 && ReplacedByFeed(*it) < 0) stack_.push_back({*it, false});
    }
    const auto inputs = node.inputs();
    for (auto it = inputs.rbegin(); it != inputs.rend(); ++it) {
      if (StepOf(it->node) < 0 && !feeds_.contains(*it)) stack_.push_back({it->node, false});
    }
  }

  Status Visit(NodeId root) {
    stack_.push_back({root, false});
    while (!stack_.empty()) {
      auto& [id, expanded] = stack_.back();
      const NodeId current = id;
      if (StepOf(current) >= 0) {
        stack_.pop_back();
        continue;
      }
      if (expanded) {
        stack_.pop_back();
        Emit(current);
        continue;
      }
      if (visiting_[static_cast<size_t>(current)]) return CycleAt(current);
      visiting_[static_cast<size_t>(current)] = true;
      expanded = true;
      const Node& node = graph_.node(current);
      if (IsPlaceholder(node)) return NotFed(node);
      PushInputs(current);
    }
    return Status();
  }

  Status CycleAt(NodeId id) const {
    std::string path;
    for (auto it = stack_.rbegin(); it != stack_.rend(); ++it) {
      if (!it->second && it->first != id) continue;
      path += (path.empty() ? "" : " <- ") + graph_.node(it->first).name();
      if (it->second && it->first == id) break;
    }
    return graph::AtNode(Unimplemented("the graph has a cycle ({}): loops need the dataflow executor", path),
                         graph_.node(id));
  }

  void Emit(NodeId id) {
    const Node& node = graph_.node(id);
    StepNode out;
    out.source = &node;
    out.types.assign(node.output_types().begin(), node.output_types().end());
    out.shapes.assign(node.output_shapes().begin(), node.output_shapes().end());
    out.inputs.reserve(node.inputs().size());
    for (const Endpoint& input : node.inputs()) {
      const auto fed = feeds_.empty() ? feeds_.end() : feeds_.find(input);
      out.inputs.push_back(fed != feeds_.end() ? Endpoint{fed->second, 0} : Endpoint{StepOf(input.node), input.index});
    }
    for (NodeId control : node.control_inputs()) {
      const NodeId replaced = ReplacedByFeed(control);
      out.control_inputs.push_back(replaced < 0 ? StepOf(control) : replaced);
    }
    step_of_[static_cast<size_t>(id)] = static_cast<NodeId>(step_.nodes.size());
    step_.nodes.push_back(std::move(out));
  }

  const graph::Graph& graph_;
  const graph::StepRequest& request_;
  StepGraph step_;
  std::map<Endpoint, NodeId> feeds_;  // graph endpoint -> step node
  std::vector<NodeId> step_of_;       // graph node -> step node, -1 not emitted
  std::vector<bool> visiting_;
  std::vector<std::pair<NodeId, bool>> stack_;  // node, inputs pushed
};

}  // namespace

Result<StepGraph> Prune(const graph::Graph& graph, const graph::StepRequest& request) {
  return Pruner(graph, request).Run();
}

Status DropUnused(const PassContext&, StepGraph& step) {
  std::vector<bool> needed(step.nodes.size(), false);
  for (const Endpoint& fetch : step.fetches) needed[static_cast<size_t>(fetch.node)] = true;
  for (NodeId target : step.targets) needed[static_cast<size_t>(target)] = true;
  for (size_t i = step.nodes.size(); i-- > 0;) {
    if (!needed[i]) continue;
    for (const Endpoint& input : step.nodes[i].inputs) needed[static_cast<size_t>(input.node)] = true;
    for (NodeId control : step.nodes[i].control_inputs) needed[static_cast<size_t>(control)] = true;
  }
  std::vector<NodeId> moved(step.nodes.size(), -1);
  size_t kept = 0;
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    if (!needed[i]) continue;
    StepNode& node = step.nodes[i];
    for (Endpoint& input : node.inputs) input.node = moved[static_cast<size_t>(input.node)];
    for (NodeId& control : node.control_inputs) control = moved[static_cast<size_t>(control)];
    moved[i] = static_cast<NodeId>(kept);
    if (kept != i) step.nodes[kept] = std::move(node);
    ++kept;
  }
  step.nodes.resize(kept);
  for (Endpoint& fetch : step.fetches) fetch.node = moved[static_cast<size_t>(fetch.node)];
  for (NodeId& target : step.targets) target = moved[static_cast<size_t>(target)];
  return Status();
}

}  // namespace weir::optimize
