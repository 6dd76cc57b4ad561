#include "core/graph/rewriter.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/text_graph.h"

namespace weir::graph {
namespace {

using testing::kFloat;
using testing::NodeLine;
using testing::Placeholder;

/// The graph as a step in its order: edges that close loops keep their later node.
class RewriterTest : public ::testing::Test {
 protected:
  void Make(const std::vector<NodeLine>& lines, const std::vector<std::string>& fetches) {
    Result<Definition> made = testing::MakeGraph(lines);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    graph_ = std::make_unique<Definition>(std::move(*made));
    step_.graph = graph_.get();
    step_.frames.resize(1);
    for (NodeId id = 0; id < graph_->num_nodes(); ++id) {
      const Node& source = graph_->node(id);
      StepNode node;
      node.source = &source;
      node.inputs.assign(source.inputs().begin(), source.inputs().end());
      node.control_inputs.assign(source.control_inputs().begin(), source.control_inputs().end());
      node.types.assign(source.output_types().begin(), source.output_types().end());
      node.shapes.assign(source.output_shapes().begin(), source.output_shapes().end());
      step_.nodes.push_back(std::move(node));
    }
    for (const std::string& fetch : fetches) step_.fetches.push_back(testing::At(*graph_, fetch));
  }

  NodeId Id(const std::string& name) const { return testing::At(*graph_, name).node; }
  std::string Text() const {
    EXPECT_TRUE(Verify(step_).ok()) << Verify(step_).ToString();
    std::string text;
    for (const StepNode& node : step_.nodes) {
      text += std::string(node.name()) + "(";
      for (const Endpoint& input : node.inputs) text += std::string(step_.node(input.node).name()) + " ";
      for (const NodeId control : node.control_inputs) text += "^" + std::string(step_.node(control).name()) + " ";
      text += ")";
    }
    for (const Endpoint& fetch : step_.fetches) text += " " + std::string(step_.node(fetch.node).name());
    return text;
  }

  std::unique_ptr<Definition> graph_;
  StepGraph step_;
};

const std::vector<NodeLine> kLines = {Placeholder("x", PartialShape::Of({2})),
                                      {"a", "Exp", {"x"}, kFloat},
                                      {"b", "Exp", {"x"}, kFloat},
                                      {"c", "Neg", {"b"}, kFloat},
                                      {"d", "AddV2", {"a", "c"}, kFloat},
                                      {"e", "Neg", {"x", "^c"}, kFloat}};

TEST_F(RewriterTest, UsersAreInputsFetchesAndTargets) {
  Make(kLines, {"d", "d"});
  step_.targets = {Id("e")};
  const IndexedVector<NodeId, int> users = CountUsers(step_);
  EXPECT_EQ(users[Id("x")], 3);
  EXPECT_EQ(users[Id("c")], 1) << "a control edge is no use";
  EXPECT_EQ(users[Id("d")], 2);
  EXPECT_EQ(users[Id("e")], 1);
}

TEST_F(RewriterTest, NoEditChangesNothing) {
  Make(kLines, {"d"});
  const std::string before = Text();
  Rewriter rewriter(step_);
  EXPECT_TRUE(rewriter.Finish().empty());
  EXPECT_EQ(Text(), before);
}

TEST_F(RewriterTest, ANodeOfKnownValuesKeepsItsEdgesUntilItIsAConstant) {
  Make({Placeholder("x", PartialShape()), {"a", "Exp", {"x"}, kFloat}, {"y", "Abs", {"a"}, kFloat}}, {"y"});
  Rewriter rewriter(step_);
  rewriter.SetValues(Id("a"), {Tensor::Vector<float>({1, 2})});
  EXPECT_EQ(step_.ShapeOf({Id("a"), 0}), PartialShape::Of({2}));
  EXPECT_EQ(Text(), "x()a(x )y(a ) y") << "it may be dead as its input";
  rewriter.MakeConstant(Id("a"));
  (void)rewriter.Finish();
  EXPECT_EQ(step_.node(Id("a")).kind, StepNode::Kind::kConstant);
  EXPECT_EQ(Text(), "x()a()y(a ) y");
}

TEST_F(RewriterTest, UsersOfAReplacedNodeFollow) {
  Make(kLines, {"b"});
  Rewriter rewriter(step_);
  for (NodeId id = 0; id < 6; ++id) {
    const StepNode& node = rewriter.Visit(id);
    if (id == Id("b")) rewriter.Replace(id, Id("a"));
    if (id != Id("c")) continue;
    EXPECT_EQ(node.inputs[0].node, Id("a")) << "a node shows the edits when it is visited";
  }
  EXPECT_TRUE(rewriter.Finish().empty());
  EXPECT_EQ(Text(), "x()a(x )b(x )c(a )d(a c )e(x ^c ) a");
}

TEST_F(RewriterTest, AnEditReachesNodesThatWereVisitedBefore) {
  Make(kLines, {"d"});
  Rewriter rewriter(step_);
  for (NodeId id = 0; id < 6; ++id) rewriter.Visit(id);
  rewriter.Replace(Id("b"), Id("a"));
  (void)rewriter.Finish();
  EXPECT_EQ(Text(), "x()a(x )b(x )c(a )d(a c )e(x ^c ) d");
}

TEST_F(RewriterTest, ReplacementsOfReplacementsAreFollowedToTheEnd) {
  Make({Placeholder("x", PartialShape::Of({2})),
        {"a", "Exp", {"x"}, kFloat},
        {"b", "Exp", {"x"}, kFloat},
        {"c", "Exp", {"x"}, kFloat},
        {"d", "Neg", {"c", "^b"}, kFloat}},
       {"d"});
  Rewriter rewriter(step_);
  rewriter.Replace(Id("c"), Id("b"));
  rewriter.Replace(Id("b"), Id("a"));
  (void)rewriter.Finish();
  EXPECT_EQ(Text(), "x()a(x )b(x )c(x )d(a ^a ) d");
}

TEST_F(RewriterTest, ABypassedNodeHandsItsOrderOn) {
  Make({Placeholder("x", PartialShape::Of({2})),
        {"p", "Exp", {"x"}, kFloat},
        {"q", "Exp", {"x"}, kFloat},
        {"m", "AddV2", {"p", "q", "^p"}, kFloat},
        {"n", "Neg", {"m"}, kFloat},
        {"y", "Abs", {"x", "^n", "^q"}, kFloat}},
       {"y"});
  Rewriter rewriter(step_);
  EXPECT_FALSE(rewriter.Bypass(Id("m"), 1)) << "it waits for two nodes";
  EXPECT_TRUE(rewriter.Bypass(Id("m"), 2));
  EXPECT_TRUE(rewriter.Bypass(Id("n")));
  (void)rewriter.Finish();
  EXPECT_EQ(Text(), "x()p(x )q(x )m(p q ^p )n(m )y(x ^p ^q ) y");
}

TEST_F(RewriterTest, AnErasedNodeIsGoneAndIdsMoveUp) {
  Make({Placeholder("x", PartialShape::Of({2})),
        {"p", "Exp", {"x"}, kFloat},
        {"m", "Neg", {"p"}, kFloat},
        {"y", "Abs", {"x", "^m"}, kFloat}},
       {"y"});
  Rewriter rewriter(step_);
  rewriter.Erase(Id("m"));
  EXPECT_EQ(rewriter.Finish(), (IndexedVector<NodeId, NodeId>{0, 1, -1, 2}));
  EXPECT_EQ(Text(), "x()p(x )y(x ^p ) y");
}

}  // namespace
}  // namespace weir::graph
