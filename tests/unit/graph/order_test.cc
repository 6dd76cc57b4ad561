#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/graph/order.h"
#include "core/optimize/optimize.h"
#include "tests/support/text_graph.h"

namespace weir::graph {
namespace {

TEST(Order, RespectsEdgesAndWritesVariablesLate) {
  const Result<Definition> graph =
      testing::MakeGraph({{"v", "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({2})}}},
                          testing::Const("delta", Tensor::Vector<float>({1, 1})),
                          {"update", "AssignSub", {"v", "delta"}, testing::kFloat},
                          {"read", "Identity", {"v"}, testing::kFloat},
                          {"use", "Neg", {"read"}, testing::kFloat},
                          {"after", "NoOp", {"^update"}}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  StepRequest request;
  request.fetches = {testing::At(*graph, "use")};
  request.targets = {testing::At(*graph, "after").node};
  const auto step = optimize::Optimize({}, *graph, request, nullptr);
  ASSERT_TRUE(step.ok());
  const auto order = Order(*step);
  ASSERT_TRUE(order.ok()) << order.status().ToString();
  std::vector<std::string> names;
  for (const OrderItem& item : *order) names.emplace_back(step->node(item.id).name());
  ASSERT_EQ(names.size(), step->nodes.size());
  const auto position = [&](const char* name) { return std::find(names.begin(), names.end(), name) - names.begin(); };
  EXPECT_LT(position("v"), position("read"));
  EXPECT_LT(position("use"), position("update")) << "the reader of the old value is done first";
  EXPECT_LT(position("update"), position("after"));
}

/// The names of the ops of a step in an order.
std::string OpsIn(const StepGraph& step, const OrderOptions& wishes) {
  const auto order = Order(step, wishes);
  if (!order.ok()) return order.status().ToString();
  std::string names;
  for (const OrderItem& item : *order) {
    const bool is_op = item.kind == OrderItem::Kind::kNode && step.node(item.id).kind == StepNode::Kind::kOp;
    if (is_op) names += std::string(step.node(item.id).name()) + " ";
  }
  return names;
}

TEST(Order, F016_LateNodesComeJustBeforeTheirUsers) {
  std::vector<testing::NodeLine> lines = {testing::Placeholder("x", PartialShape::Of({1})),
                                          testing::Const("w", Tensor::Vector<float>(std::vector<float>(100)))};
  for (const char* name : {"y1", "y2", "y3", "y4"}) lines.push_back({name, "AddV2", {"x", "w"}, testing::kFloat});
  lines.push_back({"z1", "Mul", {"y1", "y2"}, testing::kFloat});
  lines.push_back({"z2", "Mul", {"y3", "z1"}, testing::kFloat});
  lines.push_back({"z3", "Mul", {"y4", "z2"}, testing::kFloat});
  const Result<Definition> graph = testing::MakeGraph(lines);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  StepRequest request;
  request.feeds = {{testing::At(*graph, "x"), DType::kFloat, PartialShape::Of({1})}};
  request.fetches = {testing::At(*graph, "z3")};
  optimize::OptimizeOptions options;
  options.common_subexpressions = false;
  const auto step = optimize::Optimize(options, *graph, request, nullptr);
  ASSERT_TRUE(step.ok()) << step.status().ToString();
  OrderOptions late;
  late.late = true;
  EXPECT_EQ(OpsIn(*step, {}), "y4 y3 y1 y2 z1 z2 z3 ");
  EXPECT_EQ(OpsIn(*step, late), "y1 y2 z1 y3 z2 y4 z3 ");
}

TEST(Order, F016_LateNodesThatFreeMemoryAndReadersOfVariablesComeEarly) {
  const Result<Definition> graph = testing::MakeGraph(
      {{"v", "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({100})}}},
       testing::Const("delta", Tensor::Vector<float>(std::vector<float>(100))),
       testing::Const("all", Tensor::Vector<int32_t>({0})),
       {"update", "AssignSub", {"v", "delta"}, testing::kFloat},
       {"after", "Neg", {"update"}, testing::kFloat},
       {"read", "Identity", {"v"}, testing::kFloat},
       {"sum", "Sum", {"read", "all"}, {{"T", DType::kFloat}, {"Tidx", DType::kInt32}}},
       {"total", "AddV2", {"after", "sum"}, testing::kFloat}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  StepRequest request;
  request.fetches = {testing::At(*graph, "total")};
  const auto step = optimize::Optimize({}, *graph, request, nullptr);
  ASSERT_TRUE(step.ok()) << step.status().ToString();
  OrderOptions late;
  late.late = true;
  EXPECT_EQ(OpsIn(*step, late), "v read sum update after total ");
}

TEST(Order, OfAPartIsThatOfItsGraph) {
  const Result<Definition> graph =
      testing::MakeGraph({{"v", "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({2})}}},
                          testing::Const("delta", Tensor::Vector<float>({1, 1})),
                          {"update", "AssignSub", {"v", "delta"}, testing::kFloat},
                          {"read", "Identity", {"v"}, testing::kFloat},
                          {"a", "Neg", {"read"}, testing::kFloat}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  StepRequest request;
  request.fetches = {testing::At(*graph, "a")};
  request.targets = {testing::At(*graph, "update").node};
  const auto step = optimize::Optimize({}, *graph, request, nullptr);
  ASSERT_TRUE(step.ok());
  OrderOptions as_written;
  as_written.as_in_graph = true;
  const auto order = Order(*step, as_written);
  ASSERT_TRUE(order.ok()) << order.status().ToString();
  std::string names;
  for (const OrderItem& item : *order) names += std::string(step->node(item.id).name()) + " ";
  EXPECT_EQ(names, "delta v update read a ");
}

}  // namespace
}  // namespace weir::graph
