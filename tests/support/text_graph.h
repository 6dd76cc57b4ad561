// Graphs for tests, written in GraphDef's text format: from one short record per node, or as text if a test needs an
// invalid graph.
#ifndef WEIR_TESTS_SUPPORT_TEXT_GRAPH_H_
#define WEIR_TESTS_SUPPORT_TEXT_GRAPH_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/graph/definition.h"
#include "core/op/attr_value.h"

namespace weir::testing {

/// One node of a test graph; inputs as in a GraphDef.
struct NodeLine {
  std::string name;
  std::string op;
  std::vector<std::string> inputs;
  op::AttrList attrs = {};
  std::string device = {};
};

/// The attributes of an op with one type attribute T, a float.
inline const op::AttrList kFloat = {{"T", DType::kFloat}};

/// Attribute names with the contents of their `value { }`: {"T", "type: DT_FLOAT"}.
using AttrTexts = std::vector<std::pair<std::string, std::string>>;

/// One function of a test graph. Inputs of nodes have the form of function bodies: "x" for an argument,
/// "node:output:0".
struct FunctionLine {
  std::string name;
  AttrTexts arguments;  // with the rest of the ArgDef: {"x", "type: DT_FLOAT"}
  AttrTexts results;
  std::vector<NodeLine> nodes;
  std::vector<std::pair<std::string, std::string>> returns;  // what each result is: {"y", "node:output:0"}
  std::vector<std::string> control_returns = {};             // nodes
  AttrTexts attrs = {};                                      // with the rest of the AttrDef: {"T", "type: 'type'"}
};

/// The graph of these nodes over weir's catalogue, imported in this order.
Result<graph::Definition> MakeGraph(const std::vector<NodeLine>& nodes,
                                    const std::vector<FunctionLine>& functions = {});

/// An attribute that names a function.
op::AttrValue Func(std::string name, op::AttrList attrs = {});
/// "function { … }" of a FunctionDefLibrary.
Result<std::string> FunctionText(const FunctionLine& function);

/// A Const of the tensor.
NodeLine Const(std::string name, const Tensor& value);
/// A Placeholder.
NodeLine Placeholder(std::string name, const PartialShape& shape, DType dtype = DType::kFloat);

/// Endpoint of "name" or "name:1"; node -1 if the graph has no such node.
graph::Endpoint At(const graph::Definition& graph, std::string_view name);

std::string NodeText(const std::string& name, const std::string& op, const std::vector<std::string>& inputs = {},
                     const AttrTexts& attrs = {}, const std::string& device = {});
std::string PlaceholderText(const std::string& name, const std::string& dtype, const std::vector<int64_t>& dims);
/// `content` is the rest of the TensorProto: "float_val: 1 float_val: 2".
std::string ConstText(const std::string& name, const std::string& dtype, const std::vector<int64_t>& dims,
                      const std::string& content);
/// An op with one type attribute T.
std::string TypedText(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                      const std::string& dtype = "DT_FLOAT");
/// " dim { size: 2 }" for each extent: the contents of a shape.
std::string ShapeText(const std::vector<int64_t>& dims);

}  // namespace weir::testing

#endif  // WEIR_TESTS_SUPPORT_TEXT_GRAPH_H_
