#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/graph/stacks.h"
#include "core/optimize/passes_internal.h"

namespace weir::optimize {
namespace {

using graph::Definition;
using graph::Endpoint;
using graph::Node;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

/// Finds the variables behind a reference, skipping ops that forward it.
void AddVariables(const Definition& graph, Endpoint reference, std::set<NodeId>& variables) {
  std::vector<Endpoint> open = {reference};
  std::set<NodeId> seen;
  while (!open.empty()) {
    const Endpoint at = open.back();
    open.pop_back();
    if (at.node < 0 || !IsRef(graph.TypeOf(at)) || !seen.insert(at.node).second) continue;
    const Node& node = graph.node(at.node);
    if (node.inputs().empty()) variables.insert(at.node);
    open.insert(open.end(), node.inputs().begin(), node.inputs().end());
  }
}

/// Variables that an Assign may reshape. Covers the whole graph, since an earlier step may have run the Assign.
std::set<NodeId> Unsettled(const Definition& graph) {
  std::set<NodeId> variables;
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (MayReshape(node)) AddVariables(graph, node.inputs()[0], variables);
  }
  return variables;
}

/// Output shapes of a node derived from its input shapes alone; unknown if inference fails.
std::vector<PartialShape> Reinferred(const StepGraph& step, const StepNode& node) {
  std::vector<PartialShape> inputs;
  for (const Endpoint& input : node.inputs) inputs.push_back(step.ShapeOf(input));
  auto inferred = graph::InferShapes(*step.graph, *node.source, inputs,
                                     [&](int i) { return step.ValueOf(node.inputs[static_cast<size_t>(i)]); });
  return inferred.ok() ? std::move(*inferred) : std::vector<PartialShape>(node.types.size());
}

/// The pushes of the stack that a node pops from, by pop.
std::map<NodeId, std::vector<NodeId>> PushesOfPops(const StepGraph& step) {
  std::map<NodeId, std::vector<NodeId>> pushes;
  for (const graph::PrivateStack& stack : graph::FindPrivateStacks(step)) {
    for (const NodeId pop : stack.pops) pushes.emplace(pop, stack.pushes);
  }
  return pushes;
}

}  // namespace

bool MayReshape(const Node& node) {
  if (node.op().traits.universal != op::Universal::kAssignVariable) return false;
  if (node.num_outputs() == 0) return false;  // variables behind handles keep the declared shape
  const Result<bool> validate = node.attrs().Bool("validate_shape");
  return validate.ok() && !*validate;
}

Status ForgetShapes(const PassContext&, StepGraph& step) {
  const std::set<NodeId> unsettled = Unsettled(*step.graph);
  if (unsettled.empty()) return Status();
  std::vector<bool> forgotten(step.nodes.size(), false);
  const std::map<NodeId, std::vector<NodeId>> pushes = PushesOfPops(step);
  const auto is_forgotten = [&](NodeId id) { return forgotten[static_cast<size_t>(id)]; };
  // Repeats once per loop that a forgotten shape enters; every round but the last forgets a shape.
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < step.nodes.size(); ++i) {
      StepNode& node = step.nodes[i];
      if (node.kind != StepNode::Kind::kOp) continue;
      const bool source = node.inputs.empty() && unsettled.contains(node.source->id());
      const bool follows = std::ranges::any_of(
          node.inputs, [&](const Endpoint& input) { return forgotten[static_cast<size_t>(input.node)]; });
      const auto pop = pushes.find(static_cast<NodeId>(i));
      const bool pops = pop != pushes.end() && std::ranges::any_of(pop->second, is_forgotten);
      if (!source && !follows && !pops) continue;
      const bool back =
          std::ranges::any_of(node.inputs, [&](const Endpoint& input) { return input.node >= static_cast<NodeId>(i); });
      node.shapes = source || back || pops ? std::vector<PartialShape>(node.types.size()) : Reinferred(step, node);
      more = more || !forgotten[i];
      forgotten[i] = true;
    }
  }
  return Status();
}

}  // namespace weir::optimize
