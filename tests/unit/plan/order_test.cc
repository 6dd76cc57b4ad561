#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/optimize/optimize.h"
#include "core/plan/order_internal.h"
#include "tests/support/text_graph.h"

namespace weir::plan {
namespace {

TEST(Order, RespectsEdgesAndWritesVariablesLate) {
  const Result<graph::Graph> graph =
      testing::MakeGraph({{"v", "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({2})}}},
                          testing::Const("delta", Tensor::Vector<float>({1, 1})),
                          {"update", "AssignSub", {"v", "delta"}, testing::kFloat},
                          {"read", "Identity", {"v"}, testing::kFloat},
                          {"use", "Neg", {"read"}, testing::kFloat},
                          {"after", "NoOp", {"^update"}}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  graph::StepRequest request;
  request.fetches = {testing::At(*graph, "use")};
  request.targets = {testing::At(*graph, "after").node};
  const auto step = optimize::Optimize({}, *graph, request, nullptr);
  ASSERT_TRUE(step.ok());
  const auto order = Order(*step, FindGuards(*step));
  ASSERT_TRUE(order.ok()) << order.status().ToString();
  std::vector<std::string> names;
  for (const TapeItem& item : *order) names.emplace_back(step->node(item.id).name());
  ASSERT_EQ(names.size(), step->nodes.size());
  const auto position = [&](const char* name) { return std::find(names.begin(), names.end(), name) - names.begin(); };
  EXPECT_LT(position("v"), position("read"));
  EXPECT_LT(position("use"), position("update")) << "the reader of the old value is done first";
  EXPECT_LT(position("update"), position("after"));
}

}  // namespace
}  // namespace weir::plan
