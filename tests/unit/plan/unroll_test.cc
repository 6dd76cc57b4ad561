#include "core/plan/unroll_internal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/graph/frames.h"
#include "core/optimize/optimize.h"
#include "tests/support/text_graph.h"

namespace weir::plan {
namespace {

using testing::Const;
using testing::kFloat;
using testing::NodeLine;

/// while (i < 8) { i += 1; carried = f(carried, x) } with what `body` adds, whose node "next" is the next value.
class UnrollTest : public ::testing::Test {
 protected:
  void Make(const std::vector<NodeLine>& body, int64_t parallel) {
    const auto enter = [&](DType type) {
      return op::AttrList{{"T", type}, {"frame_name", "w"}, {"parallel_iterations", parallel}};
    };
    const op::AttrList kInt = {{"T", DType::kInt32}};
    const auto merge = [](DType type) { return op::AttrList{{"T", type}, {"N", 2}}; };
    std::vector<NodeLine> lines = {Const("zero", Tensor::Scalar<int32_t>(0)),
                                   Const("start", Tensor::Scalar<float>(0)),
                                   {"ei", "Enter", {"zero"}, enter(DType::kInt32)},
                                   {"ev", "Enter", {"start"}, enter(DType::kFloat)},
                                   {"mi", "Merge", {"ei", "ei"}, merge(DType::kInt32)},
                                   {"mv", "Merge", {"ev", "ev"}, merge(DType::kFloat)},
                                   {"limit", "Const", {"^mi"}, Const("", Tensor::Scalar<int32_t>(8)).attrs},
                                   {"less", "Less", {"mi", "limit"}, kInt},
                                   {"go", "LoopCond", {"less"}},
                                   {"si", "Switch", {"mi", "go"}, kInt},
                                   {"sv", "Switch", {"mv", "go"}, kFloat},
                                   {"bi", "Identity", {"si:1"}, kInt},
                                   {"bv", "Identity", {"sv:1"}, kFloat},
                                   {"one", "Const", {"^bi"}, Const("", Tensor::Scalar<int32_t>(1)).attrs},
                                   {"step", "AddV2", {"bi", "one"}, kInt},
                                   {"ni", "NextIteration", {"step"}, kInt}};
    lines.insert(lines.end(), body.begin(), body.end());
    lines.push_back({"nv", "NextIteration", {"next"}, kFloat});
    lines.push_back({"out", "Exit", {"sv"}, kFloat});
    Result<graph::Definition> graph = testing::MakeGraph(lines);
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    graph_ = std::make_unique<graph::Definition>(std::move(*graph));
    ASSERT_TRUE(graph_->SetInput(testing::At(*graph_, "mi").node, 1, testing::At(*graph_, "ni")).ok());
    ASSERT_TRUE(graph_->SetInput(testing::At(*graph_, "mv").node, 1, testing::At(*graph_, "nv")).ok());
    graph::StepRequest request;
    request.fetches = {testing::At(*graph_, "out")};
    Result<graph::StepGraph> step = optimize::Optimize({}, *graph_, request, nullptr);
    ASSERT_TRUE(step.ok()) << step.status().ToString();
    step_ = std::move(*step);
    node_ns_.assign(step_.nodes.size(), 0);
  }

  void Takes(const std::string& name, double ns) {
    for (const graph::NodeId id : node_ns_.indices()) {
      if (step_.node(id).name() == name) node_ns_[id] = ns;
    }
  }
  double Share(int64_t copies) const { return CriticalShare(step_, FrameId(1), copies, node_ns_); }

  std::unique_ptr<graph::Definition> graph_;
  graph::StepGraph step_;
  IndexedVector<graph::NodeId, double> node_ns_;
};

/// Heavy work on the counter, whose result is only added to the loop variable.
const std::vector<NodeLine> kIndependent = {{"f", "Cast", {"bi"}, {{"SrcT", DType::kInt32}, {"DstT", DType::kFloat}}},
                                            {"work", "Exp", {"f"}, kFloat},
                                            {"next", "AddV2", {"bv", "work"}, kFloat}};

TEST_F(UnrollTest, IndependentWorkOverlaps) {
  Make(kIndependent, 10);
  Takes("work", 90);
  Takes("next", 10);
  EXPECT_DOUBLE_EQ(Share(1), 1.0);
  EXPECT_DOUBLE_EQ(Share(2), (90 + 20) / 200.0) << "both at once, then one addition after the other";
  EXPECT_DOUBLE_EQ(Share(10), (90 + 100) / 1000.0);
}

TEST_F(UnrollTest, WorkOnTheLoopVariableIsSerial) {
  Make({{"work", "Exp", {"bv"}, kFloat}, {"next", "Neg", {"work"}, kFloat}}, 10);
  Takes("work", 90);
  Takes("next", 10);
  EXPECT_DOUBLE_EQ(Share(1), 1.0);
  EXPECT_DOUBLE_EQ(Share(8), 1.0);
}

TEST_F(UnrollTest, CallsOfAStatefulOpKeepTheirOrder) {
  const op::AttrList random = {{"T", DType::kInt32}, {"dtype", DType::kFloat}, {"seed", 1}, {"seed2", 1}};
  Make({Const("shape", Tensor::Vector<int32_t>({})),
        {"es", "Enter", {"shape"}, {{"T", DType::kInt32}, {"frame_name", "w"}, {"is_constant", true}}},
        {"work", "RandomUniform", {"es", "^bi"}, random},
        {"next", "AddV2", {"bv", "work"}, kFloat}},
       10);
  Takes("work", 90);
  Takes("next", 10);
  EXPECT_DOUBLE_EQ(Share(2), (180 + 10) / 200.0);
}

TEST_F(UnrollTest, TheLimitIsThatOfTheEnterNodes) {
  Make(kIndependent, 3);
  EXPECT_EQ(MostIterations(step_, FrameId(1)), 3);
}

TEST_F(UnrollTest, CopiesChainAndTheExitsMerge) {
  Make(kIndependent, 4);
  const graph::Placement placement{{"/device:CPU:0"}, IndexedVector<graph::NodeId, int>(step_.nodes.size(), 0)};
  const Result<PlacedStep> unrolled = Unroll(step_, placement, {}, FrameId(1), 3);
  ASSERT_TRUE(unrolled.ok()) << unrolled.status().ToString();
  EXPECT_TRUE(graph::Verify(unrolled->step).ok()) << graph::Verify(unrolled->step).ToString();
  EXPECT_EQ(unrolled->placement.device_of.size(), unrolled->step.nodes.size());
  const auto count = [&](const char* name) {
    return std::count_if(unrolled->step.nodes.begin(), unrolled->step.nodes.end(),
                         [&](const graph::StepNode& node) { return node.name() == name; });
  };
  EXPECT_EQ(count("work"), 3);
  EXPECT_EQ(count("mv"), 1) << "the Merge of a loop variable is not copied";
  EXPECT_EQ(count("ev"), 1);
  EXPECT_EQ(count("out"), 2) << "the Exit, and the Merge of the copies' values";
}

TEST_F(UnrollTest, AFetchFromInsideAllowsOneIteration) {
  Make(kIndependent, 10);
  for (const graph::NodeId id : node_ns_.indices()) {
    if (step_.node(id).name() == "work") step_.fetches.push_back({id, 0});
  }
  EXPECT_EQ(MostIterations(step_, FrameId(1)), 1) << "which iteration's value would it be?";
}

TEST_F(UnrollTest, AReadPositionOfAMergeAllowsOneIteration) {
  Make(kIndependent, 10);
  for (const graph::NodeId id : node_ns_.indices()) {
    if (step_.node(id).name() != "f") continue;
    for (const graph::NodeId merge : node_ns_.indices()) {
      if (step_.node(merge).name() == "mi") step_.nodes[static_cast<size_t>(id)].inputs[0] = {merge, 1};
    }
  }
  EXPECT_EQ(MostIterations(step_, FrameId(1)), 1);
}

TEST_F(UnrollTest, AnExitOfAnythingButASwitchAllowsOneIteration) {
  Make(kIndependent, 10);
  for (const graph::NodeId id : node_ns_.indices()) {
    if (step_.node(id).name() != "out") continue;
    for (const graph::NodeId other : node_ns_.indices()) {
      if (step_.node(other).name() == "bv") step_.nodes[static_cast<size_t>(id)].inputs[0] = {other, 0};
    }
  }
  EXPECT_EQ(MostIterations(step_, FrameId(1)), 1);
}

TEST_F(UnrollTest, TheNodesOfTheLoopAreCounted) {
  Make(kIndependent, 10);
  size_t repeated = 0;
  for (const graph::StepNode& node : step_.nodes) {
    const bool inside = node.kind == graph::StepNode::Kind::kOp && node.frame == FrameId(1);
    const graph::Flow flow = inside ? graph::FlowOf(node) : graph::Flow::kEnter;
    repeated += flow != graph::Flow::kEnter && flow != graph::Flow::kExit ? 1 : 0;
  }
  EXPECT_GT(repeated, 10u);
  EXPECT_EQ(NodesInside(step_, FrameId(1)), repeated) << "what enters and leaves is not repeated";
}

TEST_F(UnrollTest, TheCounterRunsBesideTheWork) {
  Make({{"work", "Exp", {"bv"}, kFloat}, {"next", "AddV2", {"work", "bv"}, kFloat}}, 10);
  Takes("work", 50);
  Takes("step", 50);
  EXPECT_DOUBLE_EQ(Share(1), 0.5) << "the counter and the value run beside each other";
  EXPECT_DOUBLE_EQ(Share(4), 0.5);
}

TEST_F(UnrollTest, CopiesReadTheNextValuesOfThoseBefore) {
  Make(kIndependent, 4);
  const graph::Placement placement{{"/device:CPU:0"}, IndexedVector<graph::NodeId, int>(step_.nodes.size(), 0)};
  const Result<PlacedStep> unrolled = Unroll(step_, placement, {}, FrameId(1), 2);
  ASSERT_TRUE(unrolled.ok()) << unrolled.status().ToString();
  const graph::StepGraph& step = unrolled->step;
  std::vector<graph::NodeId> adds;
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    if (step.nodes[n].name() == "next") adds.push_back(static_cast<graph::NodeId>(n));
  }
  ASSERT_EQ(adds.size(), 2u);
  // From the second addition back through views and Switches to the first.
  std::vector<graph::NodeId> open = {adds[1]};
  std::set<graph::NodeId> seen;
  while (!open.empty()) {
    const graph::NodeId at = open.back();
    open.pop_back();
    if (!seen.insert(at).second || at == adds[0]) continue;
    for (const graph::Endpoint& input : step.node(at).inputs) {
      if (step.node(input.node).name() != "mv") open.push_back(input.node);
    }
  }
  EXPECT_TRUE(seen.contains(adds[0]));
}

}  // namespace
}  // namespace weir::plan
