#include "tests/support/text_graph.h"

#include "core/graph/attr_proto.h"
#include "core/graph/graph_def.h"
#include "core/ops/declare_all.h"
#include "core/proto/descriptors.h"
#include "weir/proto/attr_value.pb.h"

namespace weir::testing {

namespace {

Result<std::string> LineText(const NodeLine& line) {
  proto::NeedDescriptors();
  AttrTexts attrs;
  for (const auto& [name, value] : line.attrs) {
    tf::AttrValue proto;
    WEIR_TRY(graph::AttrToProto(value, proto));
    attrs.emplace_back(name, proto.ShortDebugString());
  }
  return NodeText(line.name, line.op, line.inputs, attrs, line.device);
}

}  // namespace

Result<graph::Definition> MakeGraph(const std::vector<NodeLine>& nodes, const std::vector<FunctionLine>& functions) {
  WEIR_ASSIGN(const op::OpRegistry* const ops, ops::Catalogue());
  std::string text;
  for (const NodeLine& line : nodes) {
    WEIR_ASSIGN(const std::string node, LineText(line));
    text += node;
  }
  std::string library;
  for (const FunctionLine& function : functions) {
    WEIR_ASSIGN(const std::string definition, FunctionText(function));
    library += definition;
  }
  if (!library.empty()) text += "library { " + library + " }\n";
  return graph::ParseGraph(text, *ops, {.allow_internal_names = true});
}

op::AttrValue Func(std::string name, op::AttrList attrs) {
  return op::FuncRef{std::move(name), std::make_shared<const op::AttrList>(std::move(attrs))};
}

Result<std::string> FunctionText(const FunctionLine& function) {
  std::string text = "function { signature { name: \"" + function.name + "\"";
  const auto list = [&text](const std::string& field, const AttrTexts& entries) {
    for (const auto& [name, rest] : entries) text += " " + field + " { name: \"" + name + "\" " + rest + " }";
  };
  list("input_arg", function.arguments);
  list("output_arg", function.results);
  list("attr", function.attrs);
  for (const std::string& node : function.control_returns) text += " control_output: \"" + node + "\"";
  text += " }\n";
  for (const NodeLine& line : function.nodes) {
    WEIR_ASSIGN(const std::string node, LineText(line));
    text += "node_def" + node.substr(std::string_view("node").size());
  }
  const auto map = [&text](const std::string& field, const std::string& key, const std::string& value) {
    text += field + " { key: \"" + key + "\" value: \"" + value + "\" }\n";
  };
  for (const auto& [result, value] : function.returns) map("ret", result, value);
  for (const std::string& node : function.control_returns) map("control_ret", node, node);
  return text + "}\n";
}

NodeLine Const(std::string name, const Tensor& value) {
  return {std::move(name), "Const", {}, {{"dtype", value.dtype()}, {"value", value}}};
}

NodeLine Placeholder(std::string name, const PartialShape& shape, DType dtype) {
  return {std::move(name), "Placeholder", {}, {{"dtype", dtype}, {"shape", shape}}};
}

graph::Endpoint At(const graph::Definition& graph, std::string_view name) {
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
