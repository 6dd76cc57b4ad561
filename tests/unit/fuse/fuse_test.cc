#include "core/fuse/fuse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/optimize/optimize.h"
#include "core/session/runtime.h"
#include "core/session/session.h"
#include "tests/support/test_device.h"
#include "tests/support/text_graph.h"

namespace weir::fuse {
namespace {

using testing::kFloat;
using testing::NodeLine;
using testing::Placeholder;

using Names = std::vector<std::string>;
using Ops = std::vector<std::string>;

NodeLine Variable(const char* name, const PartialShape& shape) {
  return {name, "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", shape}}};
}

/// v [3, 4] -= rate * x^T y for x [2, 3] and y [2, 4], then the nodes of `more`.
std::vector<NodeLine> Descent(const std::vector<NodeLine>& more = {}) {
  std::vector<NodeLine> nodes = {
      Variable("v", PartialShape::Of({3, 4})),
      Placeholder("x", PartialShape::Of({2, 3})),
      Placeholder("y", PartialShape::Of({2, 4})),
      Placeholder("rate", PartialShape::Of({})),
      {"product", "MatMul", {"x", "y"}, {{"T", DType::kFloat}, {"transpose_a", true}}},
      {"step", "ApplyGradientDescent", {"v", "rate", "product"}, kFloat},
  };
  nodes.insert(nodes.end(), more.begin(), more.end());
  return nodes;
}

/// The ops, in order, of the fused step for `wanted`, with all nodes on one CPU. Empty after a failure.
Ops OpsAfter(const std::vector<NodeLine>& nodes, const Names& wanted) {
  const Result<graph::Definition> graph = testing::MakeGraph(nodes);
  const Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Default();
  EXPECT_TRUE(graph.ok() && runtime.ok()) << graph.status().ToString() << runtime.status().ToString();
  if (!graph.ok() || !runtime.ok()) return {};
  graph::StepRequest request;
  for (const NodeLine& node : nodes) {
    if (node.op != "Placeholder") continue;
    const graph::Endpoint at = testing::At(*graph, node.name);
    const PartialShape& shape = graph->ShapeOf(at);  // the shape of a fed scalar may be unknown
    request.feeds.push_back({at, DType::kFloat, shape.has_rank() ? shape : PartialShape::Of({})});
  }
  for (const std::string& name : wanted) {
    const graph::Endpoint at = testing::At(*graph, name);
    if (graph->node(at.node).num_outputs() == 0) {
      request.targets.push_back(at.node);
    } else {
      request.fetches.push_back(at);
    }
  }
  Result<graph::StepGraph> step = optimize::Optimize({}, *graph, request, nullptr);
  EXPECT_TRUE(step.ok()) << step.status().ToString();
  if (!step.ok()) return {};
  graph::Placement placement{{"/device:CPU:0"}, IndexedVector<graph::NodeId, int>(step->nodes.size(), 0)};
  const plugin::Catalogue& plugins = *(*runtime)->plugins;
  const Status fused = Fuse({&plugins.devices(), &plugins.kernels(), {}}, *step, placement);
  EXPECT_TRUE(fused.ok()) << fused.ToString();
  EXPECT_EQ(placement.device_of.size(), step->nodes.size());
  Ops ops;
  for (size_t i = 0; i < step->nodes.size(); ++i) {
    const graph::StepNode& node = step->nodes[i];
    for (const graph::Endpoint& input : node.inputs) EXPECT_LT(input.node, static_cast<graph::NodeId>(i));
    if (node.kind == graph::StepNode::Kind::kOp) ops.push_back(node.source->op().name);
  }
  return ops;
}

TEST(Fuse, AProductOfOneDescentBecomesPartOfIt) {
  EXPECT_EQ(OpsAfter(Descent(), {"step"}), (Ops{"VariableV2", "_ApplyGradientDescentMatMul"}));
}

TEST(Fuse, NodesWithOtherReadersAreNotFused) {
  EXPECT_EQ(OpsAfter(Descent(), {"step", "product"}), (Ops{"MatMul", "VariableV2", "ApplyGradientDescent"}));
  EXPECT_EQ(OpsAfter(Descent({{"reader", "Neg", {"product"}, kFloat}}), {"step", "reader"}),
            (Ops{"MatMul", "Neg", "VariableV2", "ApplyGradientDescent"}));
}

TEST(Fuse, ControlEdgesOfTensorFlowsGradientsAreKept) {
  // The two gradients of an op, each behind an Identity that waits for both.
  std::vector<NodeLine> nodes = Descent({{"other", "Neg", {"x"}, kFloat},
                                         {"both", "NoOp", {"^product", "^other"}},
                                         {"mine", "Identity", {"product", "^both"}, kFloat},
                                         {"others", "Identity", {"other", "^both"}, kFloat}});
  std::rotate(nodes.begin() + 5, nodes.begin() + 6, nodes.end());
  nodes.back().inputs[2] = "mine";
  EXPECT_EQ(OpsAfter(nodes, {"step", "others"}),
            (Ops{"Neg", "NoOp", "Identity", "VariableV2", "_ApplyGradientDescentMatMul"}));
}

TEST(Fuse, OperandsThatTheStepItselfChangesStayOutside) {
  // v -= rate * v^T x reads the variable by reference while it is written.
  const std::vector<NodeLine> own = {Variable("v", PartialShape::Of({3, 3})),
                                     Placeholder("x", PartialShape::Of({3, 3})),
                                     Placeholder("rate", PartialShape::Of({})),
                                     {"product", "MatMul", {"v", "x"}, kFloat},
                                     {"step", "ApplyGradientDescent", {"v", "rate", "product"}, kFloat}};
  EXPECT_EQ(OpsAfter(own, {"step"}), (Ops{"VariableV2", "MatMul", "ApplyGradientDescent"}));
}

TEST(Fuse, UnknownShapesAndOtherTypesStay) {
  std::vector<NodeLine> unknown = Descent();
  unknown[1] = Placeholder("x", PartialShape::Of({-1, 3}));
  EXPECT_EQ(OpsAfter(unknown, {"step"}).size(), 3u);
}

TEST(Fuse, ThePlacementLogHasTheNodesOfTheGraph) {
  const Result<graph::Definition> graph = testing::MakeGraph(
      Descent({testing::Const("ones", Tensor::Of<float>(Shape::Of({3, 4}), std::vector<float>(12, 1))),
               {"init", "Assign", {"v", "ones"}, kFloat}}));
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  std::string log;
  session::SessionOptions options;
  options.log_device_placement = true;
  options.placement_log = [&log](const std::string& lines) { log += lines; };
  const auto session = session::Session::Make(*session::Runtime::Default(), *graph, options);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const std::vector<session::Feed> feeds = {{"x:0", Tensor::Of<float>(Shape::Of({2, 3}), std::vector<float>(6, 1))},
                                            {"y:0", Tensor::Of<float>(Shape::Of({2, 4}), std::vector<float>(8, 1))},
                                            {"rate:0", Tensor::Scalar<float>(1)}};
  ASSERT_TRUE((*session)->Run({}, {}, Names{"init"}).ok());
  ASSERT_TRUE((*session)->Run(feeds, {}, Names{"step"}).ok());
  const std::string cpu = "/job:localhost/replica:0/task:0/device:CPU:0\n";
  EXPECT_NE(log.find("product: (MatMul): " + cpu), std::string::npos) << log;
  EXPECT_NE(log.find("step: (ApplyGradientDescent): " + cpu), std::string::npos) << log;
  EXPECT_EQ(log.find("_ApplyGradientDescentMatMul"), std::string::npos) << log;
}

std::shared_ptr<session::Runtime> Plugins() { return *session::Runtime::Default(); }

/// v after one step from ones.
std::vector<float> Stepped(const std::vector<NodeLine>& nodes, bool fusion, const char* read,
                           const std::shared_ptr<session::Runtime>& plugins = Plugins()) {
  const Result<graph::Definition> graph = testing::MakeGraph(nodes);
  EXPECT_TRUE(graph.ok()) << graph.status().ToString();
  session::SessionOptions options;
  options.fusion = fusion;
  const auto session = session::Session::Make(plugins, *graph, options);
  EXPECT_TRUE(session.ok()) << session.status().ToString();
  const Tensor x = Tensor::Of<float>(Shape::Of({2, 3}), {1, 2, 3, 4, 5, 6});
  const Tensor y = Tensor::Of<float>(Shape::Of({2, 4}), {1, 0, 2, 1, -1, 3, 1, 0});
  const std::vector<session::Feed> feeds = {{"x:0", x}, {"y:0", y}, {"rate:0", Tensor::Scalar<float>(0.5f)}};
  EXPECT_TRUE((*session)->Run({}, {}, Names{"init"}).ok());
  const auto ran = (*session)->Run(feeds, {}, Names{"step"});
  EXPECT_TRUE(ran.ok()) << ran.status().ToString();
  const auto value = (*session)->Run({}, Names{read}, {});
  EXPECT_TRUE(value.ok()) << value.status().ToString();
  if (!value.ok()) return {};
  const auto numbers = value->front().as<float>();
  return {numbers.begin(), numbers.end()};
}

TEST(Fuse, TheVariableGetsTheSameValue) {
  const std::vector<float> wanted = {2.5f, -5, -2, 0.5f, 2.5f, -6.5f, -3.5f, 0, 2.5f, -8, -5, -0.5f};
  const Tensor ones = Tensor::Of<float>(Shape::Of({3, 4}), std::vector<float>(12, 1));
  const std::vector<NodeLine> ref = Descent({testing::Const("ones", ones), {"init", "Assign", {"v", "ones"}, kFloat}});
  const op::AttrList handle = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({3, 4})}};
  const op::AttrList dtype = {{"dtype", DType::kFloat}};
  std::vector<NodeLine> resource = Descent({testing::Const("ones", ones),
                                            {"init", "AssignVariableOp", {"v", "ones"}, dtype},
                                            {"read", "ReadVariableOp", {"v"}, dtype}});
  resource[0] = {"v", "VarHandleOp", {}, handle};
  resource[5].op = "ResourceApplyGradientDescent";
  for (const bool fusion : {false, true}) {
    EXPECT_EQ(Stepped(ref, fusion, "v:0"), wanted) << fusion;
    EXPECT_EQ(Stepped(resource, fusion, "read:0"), wanted) << fusion;
  }
  EXPECT_EQ(OpsAfter(resource, {"step"}), (Ops{"VarHandleOp", "_ResourceApplyGradientDescentMatMul"}));

  // If the only kernel of the fused op declines, the separate ops run.
  plugin::LoadOptions options;
  options.folders = {WEIR_SHIPPED_PLUGINS, WEIR_DECLINING_PLUGIN};
  options.config.plugins.isa = testing::TestIsa();
  options.deny = {"kernels_onednn", "kernels_openblas"};
  const Result<std::shared_ptr<session::Runtime>> declining = session::Runtime::Load(options);
  ASSERT_TRUE(declining.ok()) << declining.status().ToString();
  ASSERT_EQ((*declining)->plugins->kernels().ForOp("_ApplyGradientDescentMatMul").size(), 1u);
  EXPECT_EQ(Stepped(ref, true, "v:0", *declining), wanted);
  EXPECT_EQ(Stepped(resource, true, "read:0", *declining), wanted);
}

}  // namespace
}  // namespace weir::fuse
