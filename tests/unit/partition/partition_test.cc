#include "core/partition/partition.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "core/optimize/optimize.h"
#include "tests/support/text_graph.h"

namespace weir::partition {
namespace {

using testing::At;
using testing::kFloat;

TEST(Partition, F019_OneRecvPerTensorAndReceiver) {
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
  EXPECT_TRUE(Verify(*step, placement, parts).ok());
  size_t nodes = 0;
  for (const graph::Subgraph& part : parts) nodes += part.nodes.size();
  EXPECT_EQ(nodes, step->nodes.size());
}

TEST(Partition, F305_APartThatIsNotThePlacementIsFound) {
  const Result<graph::Graph> graph = testing::MakeGraph(
      {testing::Placeholder("x", PartialShape()), {"a", "Neg", {"x"}, kFloat}, {"b", "Exp", {"a"}, kFloat}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  graph::StepRequest request;
  request.feeds = {{At(*graph, "x"), DType::kFloat, PartialShape::Of({2})}};
  request.fetches = {At(*graph, "b")};
  const auto step = optimize::Optimize({}, *graph, request, nullptr);
  ASSERT_TRUE(step.ok());
  const graph::Placement placement{{"d0", "d1"}, {-1, 0, 1}};
  const std::vector<graph::Subgraph> good = Partition(*step, placement);
  ASSERT_TRUE(Verify(*step, placement, good).ok());
  const auto fault = [&](const std::function<void(std::vector<graph::Subgraph>&)>& spoil) {
    std::vector<graph::Subgraph> parts = good;
    spoil(parts);
    const Status status = Verify(*step, placement, parts);
    EXPECT_EQ(status.code(), Code::kInternal) << status.ToString();
    return status.message();
  };
  EXPECT_EQ(fault([](auto& parts) { std::swap(parts[1].nodes, parts[2].nodes); }),
            "'b' was placed on d1 and is in the part of d0");
  EXPECT_EQ(fault([](auto& parts) { parts[2].nodes.push_back(2); }),
            "'b' was placed on d1 and is in the part of d1 twice");
  EXPECT_EQ(fault([](auto& parts) { parts[2].nodes.clear(); }), "'b' was placed and is in no part");
  EXPECT_EQ(fault([](auto& parts) { parts[2].recvs.clear(); }), "'b' on d1 uses 'a:0' of d0, which nobody receives");
  EXPECT_EQ(fault([](auto& parts) { parts[2].recvs.push_back(parts[2].recvs[0]); }), "'a:0' is received twice by d1");
  EXPECT_EQ(fault([](auto& parts) { parts[2].recvs[0].from_device = -1; }),
            "'a:0' is received from the host, but made on d0");
}

}  // namespace
}  // namespace weir::partition
