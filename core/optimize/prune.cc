// Pruning: keeps the ancestors of fetches and targets, cut at the feeds.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/graph/frames.h"
#include "core/optimize/passes_internal.h"

namespace weir::optimize {
namespace {

using graph::Endpoint;
using graph::Node;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

bool IsPlaceholder(const Node& node) {
  const op::Traits& traits = node.op().traits;
  return traits.universal == op::Universal::kPlaceholder || traits.flow == op::Flow::kArgument;
}

Status NotFed(const Node& node, const std::string& path) {
  std::string shape;
  const PartialShape& known = node.output_shapes()[0];
  if (known.has_rank() && known.rank() > 0) shape = " and shape " + known.ToString();
  const Status status = InvalidArgument("You must feed a value for placeholder tensor '{}' with dtype {}{}",
                                        node.name(), Name(node.output_types()[0]), shape);
  return graph::AtNode(status, node).Append(path);
}

/// Walks the graph depth first from the roots to their inputs, and emits each node after its inputs.
class Pruner {
 public:
  Pruner(const graph::Definition& graph, const graph::StepRequest& request) : graph_(graph), request_(request) {
    step_.graph = &graph;
    step_of_.assign(static_cast<size_t>(graph.num_nodes()), -1);
    visiting_.assign(static_cast<size_t>(graph.num_nodes()), false);
    done_.assign(static_cast<size_t>(graph.num_nodes()), false);
    for (const NodeId id : request.done) done_[static_cast<size_t>(id)] = true;
  }

  Result<StepGraph> Run() {
    // Mapped memory at most: pages of nodes that the step does not have stay untouched.
    step_.nodes.reserve(step_of_.size() + request_.feeds.size());
    AddFeeds();
    for (const NodeId root : Roots()) WEIR_TRY(Visit(root));
    for (const Endpoint& fetch : request_.fetches) {
      const auto fed = feeds_.find(fetch);
      step_.fetches.push_back(fed != feeds_.end() ? Endpoint{fed->second, 0}
                                                  : Endpoint{StepOf(fetch.node), fetch.index});
    }
    for (NodeId target : request_.targets) {
      const NodeId replaced = ReplacedByFeed(target);
      step_.targets.push_back(replaced < 0 ? StepOf(target) : replaced);
    }
    WEIR_TRY(CloseLoops());
    WEIR_TRY(graph::FindFrames(step_));
    ListNodes();
    return std::move(step_);
  }

 private:
  NodeId StepOf(NodeId id) const { return step_of_[static_cast<size_t>(id)]; }

  bool IsDone(NodeId id) const { return done_[static_cast<size_t>(id)]; }

  bool ByName(const Endpoint& a, const Endpoint& b) const {
    return std::pair(std::string_view(graph_.node(a.node).name()), a.index) <
           std::pair(std::string_view(graph_.node(b.node).name()), b.index);
  }

  /// Fetched and targeted nodes that run. Sorted by name, like the feeds, so that the order of the request has no
  /// effect.
  std::vector<NodeId> Roots() const {
    std::vector<Endpoint> roots;
    for (const Endpoint& fetch : request_.fetches) {
      if (!feeds_.contains(fetch)) roots.push_back({fetch.node, 0});
    }
    for (const NodeId target : request_.targets) {
      if (ReplacedByFeed(target) < 0) roots.push_back({target, 0});
    }
    std::sort(roots.begin(), roots.end(), [this](const Endpoint& a, const Endpoint& b) { return ByName(a, b); });
    std::vector<NodeId> nodes;
    for (const Endpoint& root : roots) nodes.push_back(root.node);
    return nodes;
  }

  void AddFeeds() {
    std::vector<size_t> order(request_.feeds.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
      return ByName(request_.feeds[a].endpoint, request_.feeds[b].endpoint);
    });
    for (const size_t i : order) {
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

  /// A fed placeholder is replaced completely, including its control edges; other fed nodes stay for their other
  /// outputs.
  NodeId ReplacedByFeed(NodeId id) const {
    if (feeds_.empty() || !IsPlaceholder(graph_.node(id))) return -1;
    const auto fed = feeds_.find(Endpoint{id, 0});
    return fed == feeds_.end() ? -1 : fed->second;
  }

  /// Pushes the unvisited data and control inputs of node `id`, which must be emitted before it.
  void PushInputs(NodeId id) {
    const Node& node = graph_.node(id);
    const auto controls = node.control_inputs();
    for (auto it = controls.rbegin(); it != controls.rend(); ++it) {
      if (StepOf(*it) < 0 && ReplacedByFeed(*it) < 0 && !IsDone(*it)) stack_.push_back({*it, false});
    }
    const auto inputs = node.inputs();
    for (auto it = inputs.rbegin(); it != inputs.rend(); ++it) {
      if (StepOf(it->node) < 0 && !feeds_.contains(*it) && !ClosesLoop(node, *it)) stack_.push_back({it->node, false});
    }
  }

  bool ClosesLoop(const Node& to, const Endpoint& from) const {
    return graph::FlowOf(to) == graph::Flow::kMerge &&
           graph::FlowOf(graph_.node(from.node)) == graph::Flow::kNextIteration;
  }

  /// Visits the nodes reached only through back edges, then sets the inputs of those edges.
  Status CloseLoops() {
    for (size_t i = 0; i < back_edges_.size(); ++i) {  // visiting may add back edges
      const Endpoint from = graph_.node(back_edges_[i].to).inputs()[back_edges_[i].input];
      if (StepOf(from.node) < 0) WEIR_TRY(Visit(from.node));
    }
    for (const BackEdge& edge : back_edges_) {
      const Endpoint from = graph_.node(edge.to).inputs()[edge.input];
      step_.nodes[static_cast<size_t>(StepOf(edge.to))].inputs[edge.input] = {StepOf(from.node), from.index};
    }
    return Status();
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
        WEIR_TRY(Emit(current));
        continue;
      }
      if (visiting_[static_cast<size_t>(current)]) return CycleAt(current);
      visiting_[static_cast<size_t>(current)] = true;
      expanded = true;
      const Node& node = graph_.node(current);
      if (IsPlaceholder(node)) return NotFed(node, PathTo(root));
      if (graph_.IsForeign(node)) return graph::AtNode(graph_.ops().Get(node.op().name).status(), node);
      PushInputs(current);
    }
    return Status();
  }

  bool IsFetched(NodeId id) const {
    return std::ranges::any_of(request_.fetches, [id](const Endpoint& fetch) { return fetch.node == id; });
  }

  /// True if a node on the visit stack is a summary op.
  bool OfSummary() const {
    return std::ranges::any_of(stack_, [this](const auto& each) {
      return each.second && graph_.node(each.first).op().category == op::Category::kSummary;
    });
  }

  /// The path to the node on top of the stack: "\nneeded by fetch 'loss' via 'add', 'x'".
  std::string PathTo(NodeId root) const {
    constexpr size_t kShown = 8;
    std::vector<NodeId> path;
    for (const auto& [id, expanded] : stack_) {
      if (expanded && id != root && id != stack_.back().first) path.push_back(id);
    }
    if (stack_.back().first == root) return {};
    std::string text =
        fmt::format("\nneeded by {} '{}'", IsFetched(root) ? "fetch" : "target", graph_.node(root).name());
    for (size_t i = 0; i < path.size(); ++i) {
      if (path.size() > kShown && i == kShown / 2) {
        text += fmt::format(", {} more", path.size() - kShown);
        i = path.size() - kShown / 2;
      }
      text += (i == 0 ? " via '" : ", '") + graph_.node(path[i]).name() + "'";
    }
    if (OfSummary()) {
      text +=
          "\na summary needs it: merge_all takes every summary of the graph, those of other models and inputs too; "
          "merge "
          "those that this run can compute, or feed the placeholder";
    }
    return text;
  }

  Status CycleAt(NodeId id) const {
    std::string path;
    for (auto it = stack_.rbegin(); it != stack_.rend(); ++it) {
      if (!it->second && it->first != id) continue;
      path += (path.empty() ? "" : " <- ") + graph_.node(it->first).name();
      if (it->second && it->first == id) break;
    }
    return graph::AtNode(
        InvalidArgument("the graph has a cycle ({}); only an edge from NextIteration to Merge may close a loop", path),
        graph_.node(id));
  }

  /// A feed belongs to the caller and is never written, so it cannot be the reference input of an op.
  Status CheckFedInput(const Node& node, size_t input, const StepNode& feed) const {
    const DType wanted = node.signature().inputs[input];
    if (!IsRef(wanted)) return Status();
    return graph::AtNode(InvalidArgument("Input {} of node {} was passed {} from _arg_{}_{}_{}:0 incompatible with "
                                         "expected {}.",
                                         input, node.name(), Name(feed.types[0]), feed.name(),
                                         node.inputs()[input].index, feed.feed, Name(wanted)),
                         node);
  }

  Status Emit(NodeId id) {
    const Node& node = graph_.node(id);
    StepNode out;
    out.source = &node;
    out.types.assign(node.output_types().begin(), node.output_types().end());
    out.shapes.assign(node.output_shapes().begin(), node.output_shapes().end());
    out.inputs.reserve(node.inputs().size());
    for (const Endpoint& input : node.inputs()) {
      const auto fed = feeds_.empty() ? feeds_.end() : feeds_.find(input);
      if (fed != feeds_.end()) WEIR_TRY(CheckFedInput(node, out.inputs.size(), step_.node(fed->second)));
      if (fed == feeds_.end() && ClosesLoop(node, input)) back_edges_.push_back({id, out.inputs.size()});
      out.inputs.push_back(fed != feeds_.end() ? Endpoint{fed->second, 0} : Endpoint{StepOf(input.node), input.index});
    }
    for (NodeId control : node.control_inputs()) {
      if (IsDone(control)) continue;
      const NodeId replaced = ReplacedByFeed(control);
      out.control_inputs.push_back(replaced < 0 ? StepOf(control) : replaced);
    }
    step_of_[static_cast<size_t>(id)] = static_cast<NodeId>(step_.nodes.size());
    step_.nodes.push_back(std::move(out));
    return Status();
  }

  void ListNodes() {
    std::vector<bool> listed(step_of_.size(), false);
    step_.written.reserve(step_.nodes.size());
    for (const StepNode& node : step_.nodes) {
      std::vector<bool>::reference seen = listed[static_cast<size_t>(node.source->id())];
      if (!seen) step_.written.push_back(node.source);
      seen = true;
    }
  }

  struct BackEdge {
    NodeId to = -1;  // in the graph
    size_t input = 0;
  };

  const graph::Definition& graph_;
  const graph::StepRequest& request_;
  StepGraph step_;
  std::vector<BackEdge> back_edges_;
  std::map<Endpoint, NodeId> feeds_;  // graph endpoint -> step node
  std::vector<NodeId> step_of_;       // graph node -> step node, -1 not emitted
  std::vector<bool> visiting_;
  std::vector<bool> done_;                      // StepRequest::done
  std::vector<std::pair<NodeId, bool>> stack_;  // node, inputs pushed
};

}  // namespace

Status Prune(const PassContext& context, StepGraph& step) {
  WEIR_ASSIGN(step, Pruner(context.graph, context.request).Run());
  return Status();
}

Status DropUnused(const PassContext&, StepGraph& step) {
  IndexedVector<NodeId, bool> needed(step.nodes.size(), false);
  std::vector<NodeId> waiting;
  const auto need = [&](NodeId id) {
    if (needed[id]) return;
    needed[id] = true;
    waiting.push_back(id);
  };
  for (const Endpoint& fetch : step.fetches) need(fetch.node);
  for (const NodeId target : step.targets) need(target);
  while (!waiting.empty()) {
    const StepNode& node = step.node(waiting.back());
    waiting.pop_back();
    for (const Endpoint& input : node.inputs) need(input.node);
    for (const NodeId control : node.control_inputs) need(control);
  }
  (void)graph::Keep(step, needed);
  return Status();
}

}  // namespace weir::optimize
