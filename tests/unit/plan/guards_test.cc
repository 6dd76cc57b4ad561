#include "core/plan/guards_internal.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/optimize/optimize.h"
#include "tests/support/text_graph.h"

namespace weir::plan {
namespace {

using graph::Endpoint;
using testing::kFloat;
using testing::NodeLine;
using testing::Placeholder;

constexpr Endpoint kP{1, 0}, kQ{2, 0};

TEST(GuardSet, EqualConjunctionsAreOneGuard) {
  GuardSet set;
  const GuardId p = set.With(kAlways, kP, true), q = set.With(kAlways, kQ, false);
  EXPECT_NE(p, q);
  EXPECT_EQ(set.And(p, q), set.With(q, kP, true));
  EXPECT_EQ(set.With(p, kP, true), p) << "a repeated literal changes nothing";
  EXPECT_EQ(set.And(p, kAlways), p);
}

TEST(GuardSet, AConjunctionImpliesItsParts) {
  GuardSet set;
  const GuardId p = set.With(kAlways, kP, true), q = set.With(kAlways, kQ, true), both = set.And(p, q);
  EXPECT_TRUE(set.Implies(both, p));
  EXPECT_TRUE(set.Implies(both, q));
  EXPECT_TRUE(set.Implies(p, kAlways));
  EXPECT_FALSE(set.Implies(p, both));
  EXPECT_FALSE(set.Implies(p, set.With(kAlways, kP, false)));
  EXPECT_EQ(set.Parts(both), std::pair(p, q));
  EXPECT_FALSE(set.Parts(p).first.valid()) << "a Switch sets it";
}

TEST(GuardSet, OppositeOutcomesJoinToTheirCommonPart) {
  GuardSet set;
  const GuardId p = set.With(kAlways, kP, true), not_p = set.With(kAlways, kP, false);
  EXPECT_EQ(set.Or({p, not_p}), kAlways);
  const GuardId q = set.With(kAlways, kQ, true);
  EXPECT_EQ(set.Or({set.And(q, p), set.And(q, not_p)}), q);
  EXPECT_EQ(set.Or({p, set.And(p, q)}), p) << "one implies the other";
  EXPECT_FALSE(set.Or({p, q}).valid()) << "no conjunction";
  EXPECT_EQ(set.Or({set.With(p, kQ, true), set.With(p, kQ, false), not_p}), kAlways) << "joined step by step";
  EXPECT_EQ(set.Or({}), kAlways);
}

TEST(GuardSet, TheExtraOutcomeIsThatOfOneMoreLiteral) {
  GuardSet set;
  const GuardId p = set.With(kAlways, kP, true), q = set.With(p, kQ, false);
  EXPECT_EQ(set.ExtraOutcome(q, p), std::optional(false));
  EXPECT_EQ(set.ExtraOutcome(p, kAlways), std::optional(true));
  EXPECT_EQ(set.ExtraOutcome(q, kAlways), std::nullopt) << "two literals more";
  EXPECT_EQ(set.ExtraOutcome(p, q), std::nullopt);
}

TEST(GuardSet, RunConditionsOfOneNodeDifferByKind) {
  GuardSet set;
  const GuardId live = set.Of({RunCondition::Kind::kLive, 3});
  EXPECT_EQ(set.Of({RunCondition::Kind::kLive, 3}), live);
  EXPECT_NE(set.Of({RunCondition::Kind::kLive, 4}), live);
  EXPECT_NE(set.Of({RunCondition::Kind::kKept, 3}), live);
  EXPECT_NE(set.Of({RunCondition::Kind::kIterates, 3}), set.Of({RunCondition::Kind::kReturns, 3}));
}

/// The guards of an optimized step.
class FindGuardsTest : public ::testing::Test {
 protected:
  void Find(const std::vector<NodeLine>& lines, const std::vector<std::string>& fetches) {
    Result<graph::Definition> graph = testing::MakeGraph(lines);
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    graph_ = std::make_unique<graph::Definition>(std::move(*graph));
    graph::StepRequest request;
    for (const NodeLine& line : lines) {
      if (line.op != "Placeholder") continue;
      const Endpoint at = testing::At(*graph_, line.name);
      request.feeds.push_back({at, graph_->TypeOf(at), PartialShape::Of({})});
    }
    for (const std::string& fetch : fetches) request.fetches.push_back(testing::At(*graph_, fetch));
    Result<graph::StepGraph> step = optimize::Optimize({}, *graph_, request, nullptr);
    ASSERT_TRUE(step.ok()) << step.status().ToString();
    step_ = std::move(*step);
    guards_ = FindGuards(step_);
  }

  graph::NodeId Id(const std::string& name) const {
    for (const graph::NodeId id : guards_.node.indices()) {
      if (step_.node(id).name() == name) return id;
    }
    ADD_FAILURE() << "no node " << name;
    return 0;
  }
  GuardId Of(const std::string& name) const { return guards_.node[Id(name)]; }

  std::unique_ptr<graph::Definition> graph_;
  graph::StepGraph step_;
  StepGuards guards_;
};

const NodeLine kPredicate = {"p", "Placeholder", {}, {{"dtype", DType::kBool}}};

TEST_F(FindGuardsTest, ANodeWithoutSwitchesRunsAlways) {
  Find({Placeholder("x", PartialShape::Of({})), {"y", "Neg", {"x"}, kFloat}}, {"y"});
  EXPECT_FALSE(guards_.any);
  EXPECT_EQ(Of("y"), kAlways);
}

TEST_F(FindGuardsTest, BranchesHaveOppositeGuardsAndTheMergeRunsAlways) {
  Find({Placeholder("x", PartialShape::Of({})),
        kPredicate,
        {"s", "Switch", {"x", "p"}, kFloat},
        {"no", "Neg", {"s"}, kFloat},
        {"yes", "Exp", {"s:1"}, kFloat},
        {"after", "Abs", {"yes"}, kFloat},
        {"y", "Merge", {"no", "after"}, {{"T", DType::kFloat}, {"N", 2}}}},
       {"y"});
  EXPECT_TRUE(guards_.any);
  EXPECT_EQ(Of("yes"), Of("after"));
  EXPECT_NE(Of("yes"), Of("no"));
  EXPECT_EQ(guards_.set.Or({Of("yes"), Of("no")}), kAlways);
  EXPECT_EQ(Of("y"), kAlways);
}

TEST_F(FindGuardsTest, ControlEdgesPutNodesUnderTheGuard) {
  Find({Placeholder("x", PartialShape::Of({})),
        kPredicate,
        {"s", "Switch", {"x", "p"}, kFloat},
        {"yes", "Exp", {"s:1"}, kFloat},
        {"y", "Neg", {"x", "^yes"}, kFloat}},
       {"y"});
  EXPECT_EQ(Of("y"), Of("yes"));
}

TEST_F(FindGuardsTest, AMergeOfUnrelatedBranchesHasARunCondition) {
  Find({Placeholder("x", PartialShape::Of({})),
        kPredicate,
        {"q", "Placeholder", {}, {{"dtype", DType::kBool}}},
        {"s", "Switch", {"x", "p"}, kFloat},
        {"t", "Switch", {"x", "q"}, kFloat},
        {"y", "Merge", {"s:1", "t:1"}, {{"T", DType::kFloat}, {"N", 2}}}},
       {"y"});
  EXPECT_EQ(Of("y"), guards_.set.Of({RunCondition::Kind::kLive, Id("y")}));
}

TEST_F(FindGuardsTest, PredicatesAreFollowedThroughIdentity) {
  Find({Placeholder("x", PartialShape::Of({})),
        kPredicate,
        {"same", "Identity", {"p"}, {{"T", DType::kBool}}},
        {"s", "Switch", {"x", "p"}, kFloat},
        {"t", "Switch", {"x", "same"}, kFloat},
        {"a", "Exp", {"s:1"}, kFloat},
        {"b", "Neg", {"t:1"}, kFloat},
        {"y", "AddV2", {"a", "b"}, kFloat}},
       {"y"});
  EXPECT_EQ(Of("a"), Of("b"));
  EXPECT_EQ(Of("y"), Of("a"));
}

}  // namespace
}  // namespace weir::plan
