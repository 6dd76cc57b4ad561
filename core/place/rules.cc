#include "core/place/rules.h"

#include <algorithm>
#include <numeric>

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

/// True for a single node without inputs and with one output that is not state.
bool IsGenerator(const StepGraph& step, const Group& group) {
  if (group.members.size() != 1) return false;
  const StepNode& node = step.nodes[group.members[0]];
  return node.inputs.empty() && node.types.size() == 1 && !TiesToProducer(node.types[0]);
}

}  // namespace

std::vector<int> TypeOrder(const device::DeviceSet& devices) {
  const auto& all = devices.all();
  std::vector<int> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return TypePriority(*all[a]) > TypePriority(*all[b]); });
  return order;
}

std::vector<int> PlaceByOrder(const StepGraph& step, const Constraints& constraints, const std::vector<int>& order) {
  std::vector<int> device_of(constraints.groups.size(), -1);
  for (size_t g = 0; g < constraints.groups.size(); ++g) {
    const Group& group = constraints.groups[g];
    const StepNode& first = step.nodes[group.members.front()];
    device_of[g] = FirstInOrder(group, order);
    if (first.source->op().run_by != op::RunBy::kUniversal || first.inputs.empty() || first.inputs[0].node < 0)
      continue;
    const int input = constraints.group_of[first.inputs[0].node];
    if (input >= 0 && PositionOf(input) < g && IsCandidate(group, device_of[input])) {
      device_of[g] = device_of[input];
    }
  }
  std::vector<int> shared(constraints.groups.size(), -1);  // device of the consumers; -2 if they differ
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    const int to = constraints.group_of[i];
    if (to < 0) continue;
    for (const Endpoint& input : step.nodes[i].inputs) {
      const int from = input.node < 0 ? -1 : constraints.group_of[input.node];
      if (from < 0 || from == to) continue;
      int& device = shared[from];
      const int wanted = device_of[to];
      device = device == -1 || device == wanted ? wanted : -2;
    }
  }
  for (size_t g = 0; g < constraints.groups.size(); ++g) {
    const Group& group = constraints.groups[g];
    if (shared[g] >= 0 && IsGenerator(step, group) && IsCandidate(group, shared[g])) device_of[g] = shared[g];
  }
  return device_of;
}

void SettleState(const StepGraph& step, const StateRules& rules, Constraints& constraints) {
  for (Group& group : constraints.groups) {
    if (group.fixed >= 0) continue;
    bool state = false;
    for (const int i : group.members) {
      const StepNode& node = step.nodes[i];
      if (!MakesState(node)) continue;
      state = true;
      if (rules.preferred == nullptr) continue;
      const auto found = rules.preferred->find(node.source->id());
      if (found == rules.preferred->end() || !IsCandidate(group, found->second)) continue;
      group.settled = group.candidates.size() > 1;
      group.candidates = {found->second};
      break;
    }
    if (state && !rules.by_cost) group.candidates = {FirstInOrder(group, rules.order)};
  }
}

}  // namespace weir::place
