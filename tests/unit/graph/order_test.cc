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
