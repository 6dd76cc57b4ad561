#include "core/place/rules.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/place/cost_table.h"

namespace weir::place {
namespace {

using graph::Endpoint;
using graph::StepGraph;
using graph::StepNode;

bool IsCandidate(const Group& group, int device) {
  return std::binary_search(group.candidates.begin(), group.candidates.end(), device);
}

int FirstInOrder(const Group& group, const std::vector<int>& order) {
  const auto first = std::find_if(order.begin(), order.end(), [&](int d) { return IsCandidate(group, d); });
  return first == order.end() ? group.candidates.front() : *first;
}

/// One node that has no inputs and gives one tensor that is no state.
bool IsGenerator(const StepGraph& step, const Group& group) {
  if (group.members.size() != 1) return false;
  const StepNode& node = step.nodes[static_cast<size_t>(group.members[0])];
  return node.inputs.empty() && node.types.size() == 1 && !TiesToProducer(node.types[0]);
}

/// Nodes of a whole graph that reference and resource edges tie together, and the devices that run all of them.
class TiedNodes {
 public:
  TiedNodes(const graph::Graph& graph, Support& support) : parent_(static_cast<size_t>(graph.num_nodes())) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (graph::NodeId id = 0; id < graph.num_nodes(); ++id) {
      for (const Endpoint& input : graph.node(id).inputs()) {
        if (input.node >= 0 && TiesToProducer(graph.TypeOf(input)))
          parent_[static_cast<size_t>(Root(id))] = Root(input.node);
      }
    }
    mask_.assign(parent_.size(), -1);
    for (graph::NodeId id = 0; id < graph.num_nodes(); ++id) {
      DeviceMask& mask = mask_[static_cast<size_t>(Root(id))];
      const DeviceMask own = support.Of(graph.node(id));
      mask = mask < 0 ? own : support.And(mask, own);
    }
  }

  DeviceMask MaskOf(graph::NodeId id) { return mask_[static_cast<size_t>(Root(id))]; }

 private:
  graph::NodeId Root(graph::NodeId id) {
    while (parent_[static_cast<size_t>(id)] != id) {
      graph::NodeId& parent = parent_[static_cast<size_t>(id)];
      parent = parent_[static_cast<size_t>(parent)];
      id = parent;
    }
    return id;
  }

  std::vector<graph::NodeId> parent_;
  std::vector<DeviceMask> mask_;  // by root
};

/// The group has state, takes something from outside, and no kernel of a plugin is in it.
bool OnlySetsState(const StepGraph& step, const Constraints& constraints, size_t group) {
  bool state = false;
  bool takes = false;
  for (const int i : constraints.groups[group].members) {
    const StepNode& node = step.nodes[static_cast<size_t>(i)];
    if (node.source->op().run_by == op::RunBy::kPlugin) return false;
    state = state || (node.inputs.empty() && node.types.size() == 1 && TiesToProducer(node.types[0]));
    for (const Endpoint& input : node.inputs) {
      if (input.node < 0) continue;
      takes = takes || constraints.group_of[static_cast<size_t>(input.node)] != static_cast<int>(group);
    }
  }
  return state && takes;
}

}  // namespace

std::vector<int> TypeOrder(const device::DeviceSet& devices) {
  const auto& all = devices.all();
  std::vector<int> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return TypePriority(*all[static_cast<size_t>(a)]) > TypePriority(*all[static_cast<size_t>(b)]);
  });
  return order;
}

std::vector<int> PlaceByOrder(const StepGraph& step, const Constraints& constraints, const std::vector<int>& order) {
  std::vector<int> device_of(constraints.groups.size(), -1);
  for (size_t g = 0; g < constraints.groups.size(); ++g) {
    const Group& group = constraints.groups[g];
    const StepNode& first = step.nodes[static_cast<size_t>(group.members.front())];
    device_of[g] = FirstInOrder(group, order);
    if (first.source->op().run_by != op::RunBy::kUniversal || first.inputs.empty() || first.inputs[0].node < 0)
      continue;
    const int input = constraints.group_of[static_cast<size_t>(first.inputs[0].node)];
    if (input >= 0 && static_cast<size_t>(input) < g && IsCandidate(group, device_of[static_cast<size_t>(input)])) {
      device_of[g] = device_of[static_cast<size_t>(input)];
    }
  }
  std::vector<int> shared(constraints.groups.size(), -1);  // device of the consumers; -2 when they differ
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    const int to = constraints.group_of[i];
    if (to < 0) continue;
    for (const Endpoint& input : step.nodes[i].inputs) {
      const int from = input.node < 0 ? -1 : constraints.group_of[static_cast<size_t>(input.node)];
      if (from < 0 || from == to) continue;
      int& device = shared[static_cast<size_t>(from)];
      const int wanted = device_of[static_cast<size_t>(to)];
      device = device == -1 || device == wanted ? wanted : -2;
    }
  }
  for (size_t g = 0; g < constraints.groups.size(); ++g) {
    const Group& group = constraints.groups[g];
    if (shared[g] >= 0 && IsGenerator(step, group) && IsCandidate(group, shared[g])) device_of[g] = shared[g];
  }
  return device_of;
}

void SettleState(const StepGraph& step, const std::vector<int>& order, Support& support, Constraints& constraints) {
  std::optional<TiedNodes> tied;
  for (size_t g = 0; g < constraints.groups.size(); ++g) {
    Group& group = constraints.groups[g];
    if (group.candidates.size() < 2 || !OnlySetsState(step, constraints, g)) continue;
    if (!tied) tied.emplace(*step.graph, support);
    const DeviceMask users = tied->MaskOf(step.nodes[static_cast<size_t>(group.members.front())].source->id());
    const auto first =
        std::find_if(order.begin(), order.end(), [&](int d) { return IsCandidate(group, d) && support.Has(users, d); });
    group.candidates = {first == order.end() ? FirstInOrder(group, order) : *first};
  }
}

}  // namespace weir::place
