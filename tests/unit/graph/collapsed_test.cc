// Graphs for viewers: scopes as single nodes.
#include "core/graph/collapsed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/proto/parse.h"
#include "tests/support/text_graph.h"
#include "weir/proto/graph.pb.h"

namespace weir::graph {
namespace {

using testing::kFloat;
using testing::NodeLine;

using Nodes = std::map<std::string, tf::NodeDef>;

Nodes Collapsed(const std::vector<NodeLine>& lines, const CollapseOptions& options) {
  const Result<Definition> graph = testing::MakeGraph(lines);
  EXPECT_TRUE(graph.ok()) << graph.status().ToString();
  if (!graph.ok()) return {};
  const Result<std::string> bytes = ExportCollapsed(*graph, options);
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  tf::GraphDef def;
  EXPECT_TRUE(bytes.ok() && proto::ParseBinary(*bytes, "GraphDef", def).ok());
  EXPECT_LE(static_cast<size_t>(def.node_size()), options.most_nodes);
  Nodes nodes;
  for (const tf::NodeDef& node : def.node()) nodes[node.name()] = node;
  EXPECT_EQ(nodes.size(), static_cast<size_t>(def.node_size())) << "names are unique";
  for (const auto& [name, node] : nodes) {
    for (const std::string& input : node.input()) {
      EXPECT_TRUE(nodes.contains(input.substr(input.starts_with('^') ? 1 : 0, input.find(':')))) << input;
    }
  }
  return nodes;
}

std::string Names(const Nodes& nodes) {
  std::string text;
  for (const auto& [name, node] : nodes) text += (text.empty() ? "" : " ") + name;
  return text;
}

std::string InputsOf(const Nodes& nodes, const std::string& name) {
  std::string text;
  const auto found = nodes.find(name);
  if (found == nodes.end()) return "no such node";
  for (const std::string& input : found->second.input()) text += (text.empty() ? "" : " ") + input;
  return text;
}

/// x -> a/p -> a/deep/q, a/deep/r -> b/s; the inner two on a GPU.
const std::vector<NodeLine> kScopes = {testing::Placeholder("x", PartialShape::Of({2})),
                                       {"a/p", "Neg", {"x"}, kFloat},
                                       {"a/deep/q", "Neg", {"a/p"}, kFloat, "/device:GPU:0"},
                                       {"a/deep/r", "Exp", {"a/deep/q", "^x"}, kFloat, "/device:GPU:0"},
                                       {"b/s", "AddV2", {"a/deep/r", "a/deep/q"}, kFloat}};

TEST(Collapsed, F347_ScopesAreOpenedFromOutsideAsLongAsThereIsRoom) {
  EXPECT_EQ(Names(Collapsed(kScopes, {.most_nodes = 3})), "a/collapsed b/s x") << "b costs nothing to open";
  EXPECT_EQ(Names(Collapsed(kScopes, {.most_nodes = 4})), "a/deep/collapsed a/p b/s x");
  EXPECT_EQ(Names(Collapsed(kScopes, {.most_nodes = 5})), "a/deep/q a/deep/r a/p b/s x");
  EXPECT_EQ(Names(Collapsed(kScopes, {.most_nodes = 1})), "scopes") << "everything";
}

TEST(Collapsed, F347_ClosedScopesHaveEdgesDevicesAndCounts) {
  const Nodes nodes = Collapsed(kScopes, {.most_nodes = 4});
  ASSERT_TRUE(nodes.contains("a/deep/collapsed")) << Names(nodes);
  const tf::NodeDef& deep = nodes.at("a/deep/collapsed");
  EXPECT_EQ(deep.op(), "Collapsed");
  EXPECT_EQ(deep.device(), "/device:GPU:0");
  EXPECT_EQ(deep.attr().at("nodes").i(), 2);
  EXPECT_EQ(deep.attr().at("ops").s(), "Exp 1, Neg 1");
  EXPECT_EQ(InputsOf(nodes, "a/deep/collapsed"), "a/p ^x");
  EXPECT_EQ(InputsOf(nodes, "b/s"), "a/deep/collapsed") << "two edges are one";
  EXPECT_EQ(InputsOf(nodes, "a/p"), "x");
  EXPECT_EQ(nodes.at("x").attr().count("_output_shapes"), 1u);
}

TEST(Collapsed, F347_LargeAttributesAreLeftOut) {
  const std::vector<NodeLine> lines = {testing::Const("large", Tensor::Vector<float>(std::vector<float>(1000, 1.0f))),
                                       testing::Const("small", Tensor::Vector<float>({1})),
                                       {"y", "AddV2", {"large", "small"}, kFloat}};
  const Nodes nodes = Collapsed(lines, {.most_nodes = 3, .most_attr_bytes = 64});
  ASSERT_EQ(Names(nodes), "large small y");
  EXPECT_EQ(nodes.at("large").attr().count("value"), 0u);
  EXPECT_EQ(nodes.at("large").attr().count("dtype"), 1u);
  EXPECT_EQ(nodes.at("small").attr().count("value"), 1u);
}

TEST(Collapsed, F347_ManyNodesOfOneScopeAreGroupedByOp) {
  std::vector<NodeLine> lines = {testing::Placeholder("x", PartialShape::Of({2}))};
  std::string last = "x";
  for (int i = 0; i < 100; ++i) {
    lines.push_back({fmt::format("flat/n{}", i), i % 2 == 0 ? "Neg" : "Exp", {last}, kFloat});
    last = lines.back().name;
  }
  const Nodes nodes = Collapsed(lines, {.most_nodes = 10});
  EXPECT_EQ(Names(nodes), "flat/Exp_nodes flat/Neg_nodes x");
  EXPECT_EQ(InputsOf(nodes, "flat/Neg_nodes"), "x flat/Exp_nodes");
  for (NodeLine& line : lines) {
    for (std::string* name : {&line.name, line.inputs.empty() ? &line.name : &line.inputs[0]}) {
      if (name->starts_with("flat/")) *name = name->substr(5);
    }
  }
  EXPECT_EQ(Names(Collapsed(lines, {.most_nodes = 10})), "Exp_nodes Neg_nodes x") << "also in the root";
}

TEST(Collapsed, F347_MoreScopesThanThereIsRoomForAreOne) {
  std::vector<NodeLine> lines = {testing::Placeholder("x", PartialShape::Of({2})), {"scopes", "Neg", {"x"}, kFloat}};
  for (int i = 0; i < 50; ++i) lines.push_back({fmt::format("layer_{}/n", i), "Neg", {"x"}, kFloat});
  const Nodes nodes = Collapsed(lines, {.most_nodes = 10});
  EXPECT_EQ(Names(nodes), "scopes scopes_1 x");
  EXPECT_EQ(nodes.at("scopes_1").attr().at("nodes").i(), 50);
}

}  // namespace
}  // namespace weir::graph
