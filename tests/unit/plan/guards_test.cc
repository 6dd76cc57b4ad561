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

/// while (v < limit) v = -v, where `exits` are further nodes; with `under` the Enter nodes run under a Switch of p.
class LoopGuardsTest : public FindGuardsTest {
 protected:
  void Loop(const std::vector<NodeLine>& more, const std::vector<std::string>& fetches, bool under = false) {
    const op::AttrList in_loop = {{"T", DType::kFloat}, {"frame_name", "w"}};
    std::vector<NodeLine> lines = {Placeholder("x", PartialShape::Of({})), kPredicate};
    if (under) lines.push_back({"s0", "Switch", {"x", "p"}, kFloat});
    const std::string start = under ? "s0:1" : "x";
    lines.insert(lines.end(), {{"e", "Enter", {start}, in_loop},
                               {"m", "Merge", {"e", "e"}, {{"T", DType::kFloat}, {"N", 2}}},
                               {"l", "Less", {"m", "m"}, kFloat},
                               {"go", "LoopCond", {"l"}},
                               {"s", "Switch", {"m", "go"}, kFloat},
                               {"b", "Neg", {"s:1"}, kFloat},
                               {"n", "NextIteration", {"b"}, kFloat},
                               {"out", "Exit", {"s"}, kFloat}});
    lines.insert(lines.end(), more.begin(), more.end());
    Result<graph::Definition> graph = testing::MakeGraph(lines);
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    graph_ = std::make_unique<graph::Definition>(std::move(*graph));
    ASSERT_TRUE(graph_->SetInput(testing::At(*graph_, "m").node, 1, testing::At(*graph_, "n")).ok());
    graph::StepRequest request;
    for (const char* feed : {"x", "p"}) {
      const Endpoint at = testing::At(*graph_, feed);
      request.feeds.push_back({at, graph_->TypeOf(at), PartialShape::Of({})});
    }
    for (const std::string& fetch : fetches) request.fetches.push_back(testing::At(*graph_, fetch));
    Result<graph::StepGraph> step = optimize::Optimize({}, *graph_, request, nullptr);
    ASSERT_TRUE(step.ok()) << step.status().ToString();
    step_ = std::move(*step);
    guards_ = FindGuards(step_);
  }
};

TEST_F(LoopGuardsTest, ALoopWithOneCondIsStructured) {
  Loop({}, {"out"});
  EXPECT_TRUE(guards_.structured[FrameId(1)]);
  EXPECT_EQ(guards_.base[FrameId(1)], kAlways);
  EXPECT_EQ(Of("m"), kAlways);
  EXPECT_EQ(guards_.set.ExtraOutcome(Of("b"), kAlways), std::optional(true)) << "while the predicate holds";
  EXPECT_EQ(Of("n"), Of("b"));
  EXPECT_EQ(guards_.outcome[Id("out")], kAlways) << "each loop ends";
}

TEST_F(LoopGuardsTest, ALoopUnderAGuardEndsUnderIt) {
  Loop({{"after", "Exp", {"out"}, kFloat}}, {"after"}, true);
  EXPECT_TRUE(guards_.structured[FrameId(1)]);
  const GuardId base = guards_.base[FrameId(1)];
  EXPECT_NE(base, kAlways);
  EXPECT_EQ(Of("e"), base);
  EXPECT_EQ(guards_.outcome[Id("out")], base);
  EXPECT_EQ(Of("after"), base);
  EXPECT_TRUE(guards_.set.Implies(Of("b"), base));
}

TEST_F(LoopGuardsTest, WhatRunsInsideIsNotKnownOutside) {
  Loop({{"after", "Exp", {"out"}, kFloat}}, {"after"});
  EXPECT_EQ(Of("after"), kAlways);
  EXPECT_NE(Of("b"), kAlways);
}

TEST_F(LoopGuardsTest, ASecondVariableOfAnotherGuardMakesTheLoopUnstructured) {
  const op::AttrList in_loop = {{"T", DType::kFloat}, {"frame_name", "w"}};
  Loop({{"s1", "Switch", {"x", "p"}, kFloat},
        {"e1", "Enter", {"s1:1"}, in_loop},
        {"add", "AddV2", {"b", "e1"}, kFloat},
        {"m1", "Merge", {"e1", "add"}, {{"T", DType::kFloat}, {"N", 2}}},
        {"s2", "Switch", {"m1", "go"}, kFloat},
        {"out1", "Exit", {"s2"}, kFloat}},
       {"out", "out1"});
  EXPECT_FALSE(guards_.structured[FrameId(1)]);
  EXPECT_EQ(Of("m"), guards_.set.Of({RunCondition::Kind::kLive, Id("m")})) << "its liveness is tracked by the run";
}

}  // namespace
}  // namespace weir::plan
