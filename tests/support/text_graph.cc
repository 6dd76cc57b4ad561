#include "tests/support/text_graph.h"

#include "core/graph/attr_proto.h"
#include "core/graph/graph_def.h"
#include "core/ops/declare_all.h"
#include "weir/proto/attr_value.pb.h"

namespace weir::testing {

Result<graph::Graph> MakeGraph(const std::vector<NodeLine>& nodes) {
  WEIR_ASSIGN(const op::OpRegistry* const ops, ops::Catalogue());
  std::string text;
  for (const NodeLine& line : nodes) {
    AttrTexts attrs;
    for (const auto& [name, value] : line.attrs) {
      tf::AttrValue proto;
      WEIR_TRY(graph::AttrToProto(value, proto));
      attrs.emplace_back(name, proto.ShortDebugString());
    }
    text += NodeText(line.name, line.op, line.inputs, attrs, line.device);
  }
  return graph::ParseGraph(text, *ops, {.allow_internal_names = true});
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

std::string NodeText(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                     const AttrTexts& attrs, const std::string& device) {
  std::string text = "node { name: \"" + name + "\" op: \"" + op + "\"";
  for (const std::string& input : inputs) text += " input: \"" + input + "\"";
  if (!device.empty()) text += " device: \"" + device + "\"";
  for (const auto& [key, value] : attrs) text += " attr { key: \"" + key + "\" value { " + value + " } }";
  return text + " }\n";
}

std::string ShapeText(const std::vector<int64_t>& dims) {
  std::string text;
  for (const int64_t dim : dims) text += " dim { size: " + std::to_string(dim) + " }";
  return text;
}

std::string PlaceholderText(const std::string& name, const std::string& dtype, const std::vector<int64_t>& dims) {
  return NodeText(name, "Placeholder", {},
                  {{"dtype", "type: " + dtype}, {"shape", "shape {" + ShapeText(dims) + " }"}});
}

std::string ConstText(const std::string& name, const std::string& dtype, const std::vector<int64_t>& dims,
                      const std::string& content) {
  const std::string tensor = "tensor { dtype: " + dtype + " tensor_shape {" + ShapeText(dims) + " } " + content + " }";
  return NodeText(name, "Const", {}, {{"dtype", "type: " + dtype}, {"value", tensor}});
}

std::string TypedText(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                      const std::string& dtype) {
  return NodeText(name, op, inputs, {{"T", "type: " + dtype}});
}

}  // namespace weir::testing
