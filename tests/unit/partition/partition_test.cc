#include "core/partition/partition.h"

#include <gtest/gtest.h>

#include "core/optimize/optimize.h"
#include "tests/support/text_graph.h"

namespace weir::partition {
namespace {

using testing::At;

TEST(Partition, OneRecvPerTensorAndReceiver) {
  const op::AttrList kFloat = {{"T", DType::kFloat}};
  const Result<graph::Graph> graph = testing::MakeGraph({testing::Placeholder("x", PartialShape()),
                                                         {"a", "Neg", {"x"}, kFloat},
                                                         {"b", "Exp", {"a"}, kFloat},
                                                         {"c", "AddV2", {"a", "b"}, kFloat}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  graph::StepRequest request;
  request.feeds = {{At(*graph, "x"), DType::kFloat, PartialShape::Of({2})}};
  request.fetches = {At(*graph, "c")};
  const auto step = optimize::Optimize({}, *graph, request, nullptr);
  ASSERT_TRUE(step.ok());
  ASSERT_EQ(step->nodes.size(), 4u);  // feed, a, b, c
  graph::Placement placement{{"d0", "d1"}, {-1, 0, 1, 1}};
  const std::vector<graph::Subgraph> parts = Partition(*step, placement);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].device, -1);
  EXPECT_TRUE(parts[0].recvs.empty());
  ASSERT_EQ(parts[1].recvs.size(), 1u);
  EXPECT_EQ(parts[1].recvs[0].from_device, -1);
  EXPECT_EQ(parts[2].nodes.size(), 2u);
  ASSERT_EQ(parts[2].recvs.size(), 1u) << "a goes to b and c, which share a device";
  EXPECT_EQ(parts[2].recvs[0].from_device, 0);
  size_t nodes = 0;
  for (const graph::Subgraph& part : parts) nodes += part.nodes.size();
  EXPECT_EQ(nodes, step->nodes.size());
}

}  // namespace
}  // namespace weir::partition
