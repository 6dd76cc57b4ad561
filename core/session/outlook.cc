#include "core/session/outlook.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/graph/frames.h"
#include "core/place/support.h"

namespace weir::session {
namespace {

using graph::Definition;
using graph::Endpoint;
using graph::Node;
using graph::NodeId;

bool IsPlaceholder(const Node& node) {
  return node.op().traits.universal == op::Universal::kPlaceholder || graph::FlowOf(node) == graph::Flow::kArgument;
}

class Outlook {
 public:
  explicit Outlook(const graph::StepGraph& step)
      : step_(step), graph_(*step.graph), depends_(static_cast<size_t>(graph_.num_nodes()), false) {}

  std::optional<graph::StepRequest> Run() {
    std::vector<NodeId> updates, users;
    std::vector<bool> has_users(depends_.size(), false);
    for (NodeId id = 0; id < graph_.num_nodes(); ++id) Look(graph_.node(id), updates, users, has_users);
    std::vector<NodeId> targets = std::move(updates);
    if (targets.empty()) {
      for (const NodeId id : users) {
        if (!has_users[static_cast<size_t>(id)]) targets.push_back(id);
      }
    }
    if (targets.empty() || Runs(targets)) return std::nullopt;
    graph::StepRequest request;
    request.targets = std::move(targets);
    Feed(request);
    return request;
  }

 private:
  /// True for a value input by which the node gets the state's value, false for one that leads to the state itself.
  static bool Reads(const Node& node, DType given, DType taken) {
    if (IsRef(given)) return !IsRef(taken);
    if (given != DType::kResource) return false;
    return std::ranges::any_of(node.output_types(), [](DType type) {
      return !place::TiesToProducer(type) && HasFixedSize(BaseType(type)) && type != DType::kBool;
    });
  }

  void Look(const Node& node, std::vector<NodeId>& updates, std::vector<NodeId>& users, std::vector<bool>& has_users) {
    const auto id = static_cast<size_t>(node.id());
    const std::vector<DType>& taken = node.signature().inputs;
    bool ties = false, computed = false, reads = false;
    for (size_t k = 0; k < node.inputs().size(); ++k) {
      const Endpoint& input = node.inputs()[k];
      if (input.node < 0) continue;
      const DType given = graph_.TypeOf(input);
      if (place::TiesToProducer(given) && !Reads(node, given, taken[k])) {
        ties = true;
      } else if (place::TiesToProducer(given)) {
        reads = true;
      } else if (HasFixedSize(given)) {
        computed = computed || depends_[static_cast<size_t>(input.node)];
      }
    }
    const bool source = IsPlaceholder(node) && !node.output_types().empty() && HasFixedSize(node.output_types()[0]);
    depends_[id] = reads || computed || source;
    if (ties && computed) updates.push_back(node.id());
    if (ties || !(reads || computed)) return;
    users.push_back(node.id());
    for (const Endpoint& input : node.inputs()) {
      if (input.node >= 0) has_users[static_cast<size_t>(input.node)] = true;
    }
  }

  bool Runs(const std::vector<NodeId>& targets) const {
    std::vector<bool> runs(depends_.size(), false);
    for (const graph::StepNode& node : step_.nodes) {
      const NodeId id = node.kind == graph::StepNode::Kind::kOp ? node.source->id() : -1;
      if (id >= 0 && static_cast<size_t>(id) < runs.size()) runs[static_cast<size_t>(id)] = true;
    }
    return std::ranges::any_of(targets, [&](NodeId id) { return runs[static_cast<size_t>(id)]; });
  }

  /// Feeds the placeholders that the targets need.
  void Feed(graph::StepRequest& request) const {
    std::vector<bool> seen(depends_.size(), false);
    std::vector<NodeId> stack = request.targets;
    std::vector<NodeId> placeholders;
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (id < 0 || seen[static_cast<size_t>(id)]) continue;
      seen[static_cast<size_t>(id)] = true;
      const Node& node = graph_.node(id);
      if (IsPlaceholder(node)) placeholders.push_back(id);
      for (const Endpoint& input : node.inputs()) stack.push_back(input.node);
      stack.insert(stack.end(), node.control_inputs().begin(), node.control_inputs().end());
    }
    std::sort(placeholders.begin(), placeholders.end());
    for (const NodeId id : placeholders) {
      const Node& node = graph_.node(id);
      const Result<PartialShape> shape = node.attrs().ShapeAttr("shape");
      graph::FeedSpec feed{{id, 0}, node.output_types()[0], shape.ok() ? *shape : PartialShape()};
      for (const graph::StepNode& fed : step_.nodes) {
        if (fed.kind == graph::StepNode::Kind::kFeed && fed.source == &node) feed.shape = fed.shapes[0];
      }
      request.feeds.push_back(std::move(feed));
    }
  }

  const graph::StepGraph& step_;
  const Definition& graph_;
  std::vector<bool> depends_;  // by node: its value depends on a variable or a placeholder
};

}  // namespace

std::optional<graph::StepRequest> UseOfState(const graph::StepGraph& step, const std::map<NodeId, int>& known) {
  const bool creates = std::ranges::any_of(step.nodes, [&](const graph::StepNode& node) {
    return place::MakesState(node) && !known.contains(node.source->id());
  });
  return creates ? Outlook(step).Run() : std::nullopt;
}

}  // namespace weir::session
