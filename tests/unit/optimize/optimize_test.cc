#include "core/optimize/optimize.h"
#include "core/base/errors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/text_graph.h"

namespace weir::optimize {
namespace {

using testing::At;
using testing::Const;
using testing::kFloat;
using testing::MakeGraph;
using testing::NodeLine;
using testing::Placeholder;

/// Adds int or float vectors and counts its calls.
class Adder : public Evaluator {
 public:
  Result<std::vector<Tensor>> Evaluate(const graph::Node& node, const std::vector<Tensor>& inputs) override {
    ++calls;
    if (node.op().name != "AddV2") return Unimplemented("only additions");
    return std::vector<Tensor>{Tensor::Scalar<float>(*inputs[0].scalar<float>() + *inputs[1].scalar<float>())};
  }
  int calls = 0;
};

std::vector<std::string> OpNames(const graph::StepGraph& step) {
  std::vector<std::string> names;
  for (const graph::StepNode& node : step.nodes) {
    if (node.kind == graph::StepNode::Kind::kOp) names.emplace_back(node.name());
  }
  std::sort(names.begin(), names.end());
  return names;
}

graph::StepRequest Request(const graph::Definition& graph, const std::vector<std::string>& feeds,
                           const std::vector<std::string>& fetches, const PartialShape& shape = PartialShape::Of({2})) {
  graph::StepRequest request;
  for (const std::string& feed : feeds) request.feeds.push_back({At(graph, feed), DType::kFloat, shape});
  for (const std::string& fetch : fetches) request.fetches.push_back(At(graph, fetch));
  return request;
}

const std::vector<NodeLine> kDiamond = {
    Placeholder("x", PartialShape()), {"a", "Neg", {"x"}, kFloat},        {"b", "Exp", {"a"}, kFloat},
    {"c", "Exp", {"a"}, kFloat},      {"d", "AddV2", {"b", "c"}, kFloat}, {"other", "Log", {"x"}, kFloat},
};

TEST(Optimize, EachPassIsWatchedAndVerified) {
  const Result<graph::Definition> graph = MakeGraph(kDiamond);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  std::vector<std::string> passes;
  OptimizeOptions options;
  options.passes.disabled = {"relax_controls"};
  options.passes.watch = [&passes](const PassReport& report) {
    passes.emplace_back(report.pass);
    EXPECT_GE(report.ns, 0);
    EXPECT_EQ(report.stage, "optimize");
    EXPECT_NE(report.text().find("fetch d"), std::string::npos) << report.text();
  };
  ASSERT_TRUE(Optimize(options, *graph, Request(*graph, {"x"}, {"d"}), nullptr).ok());
  EXPECT_EQ(passes.front(), "prune");
  EXPECT_EQ(std::count(passes.begin(), passes.end(), "merge_equal_nodes"), 1);
  EXPECT_EQ(std::count(passes.begin(), passes.end(), "relax_controls"), 0);
}

TEST(StepGraph, VerifyNamesTheFault) {
  const Result<graph::Definition> graph = MakeGraph(kDiamond);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto sound = Optimize({}, *graph, Request(*graph, {"x"}, {"d"}), nullptr);
  ASSERT_TRUE(sound.ok()) << sound.status().ToString();
  EXPECT_TRUE(graph::Verify(*sound).ok());
  const auto broken = [&](auto change) {
    graph::StepGraph step = *sound;
    change(step);
    const Status status = graph::Verify(step);
    EXPECT_EQ(status.code(), Code::kInternal);
    return std::string(status.message());
  };
  EXPECT_EQ(broken([](auto& step) { step.nodes.back().inputs[0].index = 7; }), "'d' reads output 7 of node 2");
  EXPECT_EQ(broken([](auto& step) { std::swap(step.nodes[1], step.nodes[2]); }), "'b' reads 'b', which comes later");
  EXPECT_EQ(broken([](auto& step) { step.nodes.back().shapes.clear(); }), "'d' has 1 types and 0 shapes");
  EXPECT_EQ(broken([](auto& step) { step.fetches[0].node = 9; }), "a fetch is output 0 of node 9, which is not there");
  EXPECT_EQ(broken([](auto& step) { step.nodes.back().values = {Tensor::Scalar<int32_t>(1)}; }),
            "value 0 of 'd' is int32 [], wanted float [2]");
}

TEST(StepGraph, IsShownAsText) {
  const Result<graph::Definition> graph = MakeGraph(kDiamond);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto step = Optimize({}, *graph, Request(*graph, {"x"}, {"b"}), nullptr);
  ASSERT_TRUE(step.ok()) << step.status().ToString();
  EXPECT_EQ(graph::ToString(*step),
            "x = feed 0 -> float [2]\na = Neg(x) -> float [2]\nb = Exp(a) -> float [2]\nfetch b\n");
}

TEST(Optimize, KeepsAncestorsOfFetchesOnly) {
  const Result<graph::Definition> graph = MakeGraph(kDiamond);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto step = Optimize({}, *graph, Request(*graph, {"x"}, {"b"}), nullptr);
  ASSERT_TRUE(step.ok()) << step.status().ToString();
  EXPECT_EQ(OpNames(*step), (std::vector<std::string>{"a", "b"}));
}

TEST(Optimize, FeedCutsOffItsAncestors) {
  const Result<graph::Definition> graph = MakeGraph(kDiamond);
  ASSERT_TRUE(graph.ok());
  const auto step = Optimize({}, *graph, Request(*graph, {"a"}, {"b"}), nullptr);
  ASSERT_TRUE(step.ok()) << step.status().ToString();
  EXPECT_EQ(OpNames(*step), std::vector<std::string>{"b"});
}

TEST(Optimize, EqualRequestsInAnyOrderGiveEqualSteps) {
  const std::vector<NodeLine> rest = {
      {"b", "Exp", {"x"}, kFloat}, {"c", "Exp", {"x"}, kFloat}, {"d", "Log", {"y"}, kFloat}};
  const auto steps = [&](bool turned) {
    std::vector<NodeLine> lines = {Placeholder("x", PartialShape()), Placeholder("y", PartialShape())};
    std::vector<std::string> feeds = {"x", "y"};
    std::vector<std::string> fetches = {"d", "c", "b"};
    lines.insert(lines.end(), rest.begin(), rest.end());
    if (turned) {
      for (auto* names : {&feeds, &fetches}) std::reverse(names->begin(), names->end());
      std::reverse(lines.begin() + 2, lines.end());
    }
    const Result<graph::Definition> graph = MakeGraph(lines);
    EXPECT_TRUE(graph.ok()) << graph.status().ToString();
    graph::StepRequest request = Request(*graph, feeds, fetches);
    request.fetches.pop_back();
    request.targets = {At(*graph, fetches.back()).node};
    const auto step = Optimize({}, *graph, request, nullptr);
    EXPECT_TRUE(step.ok()) << step.status().ToString();
    EXPECT_EQ(step->node(step->fetches[turned ? 1 : 0].node).name(), turned ? "b" : "d");  // b and c are merged
    std::vector<std::string> names;
    for (const graph::StepNode& node : step->nodes) {
      names.emplace_back(node.name());
      if (node.feed >= 0) {
        EXPECT_EQ(node.name(), feeds[static_cast<size_t>(node.feed)]);
      }
    }
    return names;
  };
  EXPECT_EQ(steps(false), (std::vector<std::string>{"x", "y", "b", "d"}));
  EXPECT_EQ(steps(true), steps(false));
}

TEST(Optimize, UnfedPlaceholderIsNamed) {
  const Result<graph::Definition> graph =
      MakeGraph({Placeholder("x", PartialShape::Of({-1, 3})), {"a", "Neg", {"x"}, kFloat}});
  ASSERT_TRUE(graph.ok());
  const auto step = Optimize({}, *graph, Request(*graph, {}, {"a"}), nullptr);
  EXPECT_EQ(step.status().code(), Code::kInvalidArgument);
  EXPECT_NE(
      step.status().message().find("You must feed a value for placeholder tensor 'x' with dtype float and shape [?,3]"),
      std::string::npos);
  EXPECT_EQ(step.status().node(), "x");
}

TEST(Optimize, EqualNodesRunOnce) {
  const Result<graph::Definition> graph = MakeGraph(kDiamond);
  ASSERT_TRUE(graph.ok());
  const auto merged = Optimize({}, *graph, Request(*graph, {"x"}, {"d"}), nullptr);
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(OpNames(*merged), (std::vector<std::string>{"a", "b", "d"}));
  OptimizeOptions options;
  options.common_subexpressions = false;
  const auto whole = Optimize(options, *graph, Request(*graph, {"x"}, {"d"}), nullptr);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(OpNames(*whole), (std::vector<std::string>{"a", "b", "c", "d"}));
}

TEST(Optimize, RandomNodesAreNeverMerged) {
  const op::AttrList random = {{"T", DType::kInt32}, {"dtype", DType::kFloat}, {"seed", 1}, {"seed2", 2}};
  const Result<graph::Definition> graph = MakeGraph({Const("shape", Tensor::Vector<int32_t>({2})),
                                                     {"r1", "RandomUniform", {"shape"}, random},
                                                     {"r2", "RandomUniform", {"shape"}, random}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto step = Optimize({}, *graph, Request(*graph, {}, {"r1", "r2"}), nullptr);
  ASSERT_TRUE(step.ok());
  EXPECT_EQ(OpNames(*step), (std::vector<std::string>{"r1", "r2"}));
}

TEST(Optimize, ShapesOfFedTensorsBecomeConstants) {
  const Result<graph::Definition> graph = MakeGraph(
      {Placeholder("x", PartialShape()), {"s", "Shape", {"x"}, {{"T", DType::kFloat}, {"out_type", DType::kInt32}}}});
  ASSERT_TRUE(graph.ok());
  const auto step = Optimize({}, *graph, Request(*graph, {"x"}, {"s"}, PartialShape::Of({4, 5})), nullptr);
  ASSERT_TRUE(step.ok());
  const Tensor* value = step->ValueOf(step->fetches[0]);
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(std::vector<int32_t>(value->as<int32_t>().begin(), value->as<int32_t>().end()),
            (std::vector<int32_t>{4, 5}));
}

TEST(Optimize, FoldsThroughTheEvaluatorUnlessTurnedOff) {
  const Result<graph::Definition> graph = MakeGraph({Const("a", Tensor::Scalar<float>(1)),
                                                     Const("b", Tensor::Scalar<float>(2)),
                                                     {"c", "AddV2", {"a", "b"}, kFloat},
                                                     {"d", "AddV2", {"c", "a"}, kFloat}});
  ASSERT_TRUE(graph.ok());
  Adder adder;
  const auto folded = Optimize({}, *graph, Request(*graph, {}, {"d"}), &adder);
  ASSERT_TRUE(folded.ok());
  EXPECT_EQ(adder.calls, 2);
  ASSERT_NE(folded->ValueOf(folded->fetches[0]), nullptr);
  EXPECT_EQ(folded->ValueOf(folded->fetches[0])->scalar<float>(), 4);
  EXPECT_EQ(folded->nodes.size(), 1u);
  OptimizeOptions options;
  options.constant_folding = false;
  const auto whole = Optimize(options, *graph, Request(*graph, {}, {"d"}), &adder);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(adder.calls, 2);
  EXPECT_EQ(OpNames(*whole), (std::vector<std::string>{"c", "d"}));
}

// Results of 16 and 8 bytes, from operands of 8 and 16.
TEST(Optimize, ResultsLargerThanTheLimitAndTheirOperandsAreNotEvaluated) {
  const Result<graph::Definition> graph = MakeGraph({Const("dims", Tensor::Vector<int32_t>({4})),
                                                     Const("one", Tensor::Scalar<float>(1)),
                                                     {"grown", "Fill", {"dims", "one"}, kFloat},
                                                     Const("two", Tensor::Vector<float>({1, 2})),
                                                     {"sum", "AddV2", {"two", "two"}, kFloat}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto evaluated = [&](const char* fetch, uint64_t limit) {
    Adder adder;
    OptimizeOptions options;
    options.max_folded_bytes = limit;
    EXPECT_TRUE(Optimize(options, *graph, Request(*graph, {}, {fetch}), &adder).ok());
    return adder.calls;
  };
  EXPECT_EQ(evaluated("grown", 15), 0);
  EXPECT_EQ(evaluated("grown", 16), 1);
  EXPECT_EQ(evaluated("sum", 1), 1);
}

TEST(Optimize, ShapeErrorOfAFedShapeIsLeftToTheRun) {
  const Result<graph::Definition> graph = MakeGraph({Placeholder("x", PartialShape()),
                                                     Const("b", Tensor::Vector<float>({1, 2, 3})),
                                                     {"sum", "AddV2", {"x", "b"}, kFloat}});
  ASSERT_TRUE(graph.ok());
  const auto step = Optimize({}, *graph, Request(*graph, {"x"}, {"sum"}, PartialShape::Of({2})), nullptr);
  ASSERT_TRUE(step.ok()) << step.status().ToString();
  EXPECT_FALSE(step->ShapeOf(step->fetches[0]).has_rank());
}

TEST(Optimize, ContradictedShapesLeaveNoInferredShapes) {
  const Result<graph::Definition> graph =
      MakeGraph({Placeholder("x", PartialShape()),
                 {"p", "PlaceholderWithDefault", {"x"}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({1})}}},
                 {"y", "Neg", {"p"}, kFloat},
                 {"z", "Neg", {"y"}, kFloat}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto fits = Optimize({}, *graph, Request(*graph, {"x"}, {"z"}, PartialShape::Of({1})), nullptr);
  ASSERT_TRUE(fits.ok()) << fits.status().ToString();
  EXPECT_EQ(fits->ShapeOf(fits->fetches[0]).ToString(), "[1]");
  const auto larger = Optimize({}, *graph, Request(*graph, {"x"}, {"z"}, PartialShape::Of({5})), nullptr);
  ASSERT_TRUE(larger.ok()) << larger.status().ToString();
  EXPECT_FALSE(larger->ShapeOf(larger->fetches[0]).has_rank()) << larger->ShapeOf(larger->fetches[0]).ToString();
}

TEST(Optimize, ControlEdgesFromUnreadStatelessNodesAreDropped) {
  // As in TensorFlow's gradients: the group waits for both halves, and only one is read.
  const Result<graph::Definition> graph =
      MakeGraph({Placeholder("x", PartialShape::Of({2})),
                 {"state", "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", Shape::Of({2})}}},
                 {"set", "Assign", {"state", "x"}, kFloat},
                 {"a", "Neg", {"x", "^set"}, kFloat},
                 {"unread", "Exp", {"a"}, kFloat},
                 {"deeper", "Log", {"unread"}, kFloat},
                 {"group", "NoOp", {"^deeper", "^a"}},
                 {"y", "Square", {"x", "^group"}, kFloat}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto step = Optimize({}, *graph, Request(*graph, {"x"}, {"y"}), nullptr);
  ASSERT_TRUE(step.ok()) << step.status().ToString();
  EXPECT_EQ(OpNames(*step), (std::vector<std::string>{"group", "set", "state", "y"}))
      << "the assignment behind them still comes first";
  OptimizeOptions options;
  options.passes.disabled = {"relax_controls"};
  const auto whole = Optimize(options, *graph, Request(*graph, {"x"}, {"y"}), nullptr);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->nodes.size(), 8u);
}

TEST(Optimize, ManyInputsStayBehindTheNodeThatGathersThem) {
  constexpr int kMany = 40;
  std::vector<NodeLine> lines = {Placeholder("x", PartialShape::Of({2})),
                                 {"state", "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", Shape::Of({2})}}}};
  std::vector<std::string> sets;
  for (int i = 0; i < kMany; ++i) {
    sets.push_back("set" + std::to_string(i));
    lines.push_back({sets.back(), "AssignAdd", {"state", "x"}, kFloat});
  }
  lines.push_back({"sum", "AddN", sets, {{"T", DType::kFloat}, {"N", kMany}}});
  lines.push_back({"y", "Neg", {"x", "^sum"}, kFloat});
  const Result<graph::Definition> graph = MakeGraph(lines);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto step = Optimize({}, *graph, Request(*graph, {"x"}, {"y"}), nullptr);
  ASSERT_TRUE(step.ok());
  EXPECT_EQ(step->nodes.size(), lines.size());
}

TEST(Optimize, LoopInputsKeepTheirShapes) {
  const auto in_loop = [](bool constant) {
    return op::AttrList{{"T", DType::kInt32}, {"frame_name", "loop"}, {"is_constant", constant}};
  };
  const op::AttrList kInt = {{"T", DType::kInt32}};
  Result<graph::Definition> graph =
      MakeGraph({Const("start", Tensor::Vector<int32_t>({0, 0})),
                 Const("one", Tensor::Scalar<int32_t>(1)),
                 Const("stop", Tensor::Scalar<bool>(false)),
                 {"enter", "Enter", {"start"}, in_loop(false)},
                 {"more", "Enter", {"one"}, in_loop(true)},
                 {"i", "Merge", {"enter", "enter"}, {{"T", DType::kInt32}, {"N", 2}}},
                 {"go", "Enter", {"stop"}, {{"T", DType::kBool}, {"frame_name", "loop"}, {"is_constant", true}}},
                 {"cond", "LoopCond", {"go"}},
                 {"switch", "Switch", {"i", "cond"}, kInt},
                 {"sum", "AddV2", {"switch:1", "more"}, kInt},
                 {"next", "NextIteration", {"sum"}, kInt},
                 {"exit", "Exit", {"switch:0"}, kInt}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  ASSERT_TRUE(graph->SetInput(At(*graph, "i").node, 1, At(*graph, "next")).ok());
  EXPECT_FALSE(graph->ShapeOf(At(*graph, "exit")).has_rank()) << "the ops themselves promise nothing";
  const auto step = Optimize({}, *graph, Request(*graph, {}, {"exit", "sum"}), nullptr);
  ASSERT_TRUE(step.ok()) << step.status().ToString();
  for (const graph::Endpoint& fetch : step->fetches) {
    EXPECT_EQ(step->ShapeOf(fetch), PartialShape::Of({2})) << step->node(fetch.node).name();
  }
}

TEST(Optimize, KnownValuesKeepTheOrderOfTheirInputs) {
  NodeLine late = Const("late", Tensor::Scalar<float>(1));
  late.inputs = {"^say"};
  const Result<graph::Definition> graph = MakeGraph({Placeholder("x", PartialShape()),
                                                     Const("text", Tensor::Scalar<std::string>("first")),
                                                     {"say", "PrintV2", {"text"}},
                                                     late,
                                                     {"sum", "AddV2", {"late", "late"}, kFloat},
                                                     {"y", "Neg", {"x", "^sum"}, kFloat}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  Adder adder;
  const auto step = Optimize({}, *graph, Request(*graph, {"x"}, {"y"}), &adder);
  ASSERT_TRUE(step.ok()) << step.status().ToString();
  const std::vector<std::string> ops = OpNames(*step);
  EXPECT_NE(std::find(ops.begin(), ops.end(), "say"), ops.end());
}

TEST(Optimize, DisabledPassDoesNotRun) {
  const Result<graph::Definition> graph = MakeGraph(kDiamond);
  ASSERT_TRUE(graph.ok());
  OptimizeOptions options;
  options.passes.disabled = {"merge_equal_nodes"};
  const auto step = Optimize(options, *graph, Request(*graph, {"x"}, {"d"}), nullptr);
  ASSERT_TRUE(step.ok());
  EXPECT_EQ(step->nodes.size(), 5u);
}

}  // namespace
}  // namespace weir::optimize
