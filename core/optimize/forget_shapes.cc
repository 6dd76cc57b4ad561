#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/optimize/passes_internal.h"

namespace weir::optimize {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

/// The variables behind a reference, seen through ops that hand it on.
void AddVariables(const Graph& graph, Endpoint reference, std::set<NodeId>& variables) {
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

/// Variables of the whole graph, since any step may have assigned before this one runs.
std::set<NodeId> Unsettled(const Graph& graph) {
  std::set<NodeId> variables;
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (MayReshape(node)) AddVariables(graph, node.inputs()[0], variables);
  }
  return variables;
}

/// Shapes of a node's outputs from those of its inputs alone; unknown where they say nothing.
std::vector<PartialShape> Reinferred(const StepGraph& step, const StepNode& node) {
  std::vector<PartialShape> inputs;
  for (const Endpoint& input : node.inputs) inputs.push_back(step.ShapeOf(input));
  auto inferred = graph::InferShapes(*step.graph, *node.source, inputs,
                                     [&](int i) { return step.ValueOf(node.inputs[static_cast<size_t>(i)]); });
  return inferred.ok() ? std::move(*inferred) : std::vector<PartialShape>(node.types.size());
}

}  // namespace

bool MayReshape(const Node& node) {
  if (node.op().name != "Assign") return false;
  const Result<bool> validate = node.attrs().Bool("validate_shape");
  return validate.ok() && !*validate;
}

Status ForgetShapes(const PassContext&, StepGraph& step) {
  const std::set<NodeId> unsettled = Unsettled(*step.graph);
  if (unsettled.empty()) return Status();
  std::vector<bool> forgotten(step.nodes.size(), false);
  // Once more for each loop that one of them enters; every round but the last forgets something.
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < step.nodes.size(); ++i) {
      StepNode& node = step.nodes[i];
      if (node.kind != StepNode::Kind::kOp) continue;
      const bool source = node.inputs.empty() && unsettled.contains(node.source->id());
      const bool follows = std::ranges::any_of(
          node.inputs, [&](const Endpoint& input) { return forgotten[static_cast<size_t>(input.node)]; });
      if (!source && !follows) continue;
      const bool back =
          std::ranges::any_of(node.inputs, [&](const Endpoint& input) { return input.node >= static_cast<NodeId>(i); });
      node.shapes = source || back ? std::vector<PartialShape>(node.types.size()) : Reinferred(step, node);
      more = more || !forgotten[i];
      forgotten[i] = true;
    }
  }
  return Status();
}

}  // namespace weir::optimize
