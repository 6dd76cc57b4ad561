// Graphs for tests from one short record per node.
#ifndef WEIR_TESTS_SUPPORT_TEXT_GRAPH_H_
#define WEIR_TESTS_SUPPORT_TEXT_GRAPH_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"
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

/// The graph of these nodes over weir's catalogue, in this order.
Result<graph::Graph> MakeGraph(const std::vector<NodeLine>& nodes);

/// A Const of the tensor.
NodeLine Const(std::string name, const Tensor& value);
/// A Placeholder.
NodeLine Placeholder(std::string name, const PartialShape& shape, DType dtype = DType::kFloat);

/// Endpoint of "name" or "name:1"; node -1 when the graph has no such node.
graph::Endpoint At(const graph::Graph& graph, std::string_view name);

}  // namespace weir::testing

#endif  // WEIR_TESTS_SUPPORT_TEXT_GRAPH_H_
