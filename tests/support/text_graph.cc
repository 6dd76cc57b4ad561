#include "tests/support/text_graph.h"

#include "core/ops/declare_all.h"

namespace weir::testing {

Result<graph::Graph> MakeGraph(const std::vector<NodeLine>& nodes) {
  WEIR_ASSIGN(const op::OpRegistry* const ops, ops::Catalogue());
  graph::Graph graph(*ops);
  std::vector<std::pair<graph::NodeId, int>> open;  // inputs that close loops
  for (const NodeLine& line : nodes) {
    graph::NodeSpec spec;
    spec.name = line.name;
    WEIR_ASSIGN(spec.op, ops->Get(line.op));
    spec.attrs = line.attrs;
    spec.device = line.device;
    for (const std::string& input : line.inputs) {
      WEIR_ASSIGN(const graph::InputName name, graph::ParseInputName(input));
      const graph::Node* from = graph.Find(name.node);
      if (from == nullptr && line.op == "Merge" && !name.control) {
        open.emplace_back(graph.num_nodes(), static_cast<int>(spec.inputs.size()));
        spec.inputs.push_back({});
        continue;
      }
      if (from == nullptr) return NotFound("test graph: no node '{}'", name.node);
      if (name.control) {
        spec.control_inputs.push_back(from->id());
      } else {
        spec.inputs.push_back({from->id(), name.index});
      }
    }
    WEIR_TRY(graph.Add(std::move(spec)).status());
  }
  for (const auto& [node, index] : open) {
    const std::string& from = nodes[static_cast<size_t>(node)].inputs[static_cast<size_t>(index)];
    WEIR_TRY(graph.SetInput(node, index, At(graph, from)));
  }
  return graph;
}

NodeLine Const(std::string name, const Tensor& value) {
  return {std::move(name), "Const", {}, {{"dtype", value.dtype()}, {"value", value}}};
}

NodeLine Placeholder(std::string name, const PartialShape& shape, DType dtype) {
  return {std::move(name), "Placeholder", {}, {{"dtype", dtype}, {"shape", shape}}};
}

graph::Endpoint At(const graph::Graph& graph, std::string_view name) {
  const Result<graph::InputName> parsed = graph::ParseInputName(name);
  const graph::Node* node = parsed.ok() ? graph.Find(parsed->node) : nullptr;
  return node == nullptr ? graph::Endpoint{} : graph::Endpoint{node->id(), parsed->index};
}

}  // namespace weir::testing
