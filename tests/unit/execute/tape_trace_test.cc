// What the trace of a run says of its instructions.
#include "core/execute/tape_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "tests/unit/execute/compiled.h"

namespace weir::execute {
namespace {

using testing::Const;
using testing::kFloat;
using testing::MakeGraph;
using testing::NodeLine;
using testing::Placeholder;

constexpr char kCpu[] = "/job:localhost/replica:0/task:0/device:CPU:0";

/// The spans of one run by node; of several of a node, the last.
std::map<std::string, trace::Span> SpansOf(Compiled& step, const std::vector<Tensor>& feeds, int64_t step_id = 1) {
  TapeTrace times;
  times.RunsBy(step.runner().plan());
  StepArgs args;
  args.trace = &times;
  std::vector<Tensor> fetches;
  const Status ran = step.runner().Run(feeds, &fetches, args);
  EXPECT_TRUE(ran.ok()) << ran.ToString();
  const trace::StepTrace trace = times.Finish(step.runner().plan(), step_id);
  EXPECT_EQ(trace.step_id, step_id);
  std::map<std::string, trace::Span> spans;
  for (const trace::Span& span : trace.spans) {
    EXPECT_LE(span.start_ns, span.end_ns) << span.node;
    EXPECT_LE(span.end_ns, trace.total_ns) << span.node;
    spans[span.op == "fetch" ? "fetch of " + span.node : span.node] = span;
  }
  return spans;
}

const std::vector<std::pair<std::string, Shape>> kSquareFed = {{"x", Shape::Of({2, 2})}};
const Tensor kX = *Tensor::Vector<float>({1, 2, 3, 4}).Reshaped(Shape::Of({2, 2}));

TEST(TapeTrace, SpansHaveNodesDevicesAndOutputs) {
  Compiled step(MakeGraph({Placeholder("x", PartialShape::Of({2, 2})),
                           {"m", "MatMul", {"x", "x"}, kFloat},
                           {"y", "Tanh", {"m"}, kFloat}}),
                kSquareFed, {"y"}, 1, false);
  const auto spans = SpansOf(step, {kX}, 7);
  ASSERT_TRUE(spans.contains("m"));
  ASSERT_TRUE(spans.contains("y"));
  EXPECT_TRUE(spans.contains("fetch of y"));
  EXPECT_FALSE(spans.contains("x")) << "a feed is no work";
  const trace::Span& m = spans.at("m");
  EXPECT_EQ(m.op, "MatMul");
  EXPECT_EQ(m.device, kCpu);
  EXPECT_EQ(m.thread, 0);
  ASSERT_EQ(m.outputs.size(), 1u);
  EXPECT_EQ(m.outputs[0].dims, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(m.outputs[0].dtype, static_cast<int>(DType::kFloat));
  EXPECT_EQ(m.outputs[0].bytes, 16u);
  EXPECT_EQ(m.bytes, 16u) << "scratch memory is no output";
  EXPECT_EQ(spans.at("y").inputs, std::vector<std::string>{"m"});
  EXPECT_TRUE(m.inputs.empty()) << "nothing in the step made its inputs";
}

TEST(TapeTrace, F337_OutputsNameTheirMemory) {
  Compiled step(MakeGraph({Placeholder("x", PartialShape::Of({2, 2})), {"y", "Tanh", {"x"}, kFloat}}), kSquareFed,
                {"y"});
  EXPECT_EQ(SpansOf(step, {kX}).at("y").outputs[0].memory, kCpu);
}

TEST(TapeTrace, F343_SpansNameTheirKernels) {
  Compiled step(MakeGraph({Placeholder("x", PartialShape::Of({2, 2})), {"y", "Tanh", {"x"}, kFloat}}), kSquareFed,
                {"y"});
  const auto spans = SpansOf(step, {kX});
  EXPECT_TRUE(spans.at("y").kernel.starts_with("kernels_")) << spans.at("y").kernel;
  EXPECT_TRUE(spans.at("y").fused_from.empty()) << "it is a node of the graph";
  EXPECT_EQ(spans.at("fetch of y").kernel, "");
}

TEST(TapeTrace, F343_AFusedNodeNamesThoseItStandsFor) {
  const std::vector<NodeLine> nodes = {Placeholder("x", PartialShape::Of({2, 2})), Const("w", kX),
                                       Const("b", Tensor::Vector<float>({1, 2})),  {"m", "MatMul", {"x", "w"}, kFloat},
                                       {"s", "BiasAdd", {"m", "b"}, kFloat},       {"r", "Relu", {"s"}, kFloat}};
  Compiled fused(MakeGraph(nodes), kSquareFed, {"r"});
  const auto spans = SpansOf(fused, {kX});
  ASSERT_TRUE(spans.contains("r"));
  EXPECT_FALSE(spans.contains("m"));
  EXPECT_EQ(spans.at("r").fused_from, (std::vector<std::string>{"m", "s", "r"}));
  Compiled plain(MakeGraph(nodes), kSquareFed, {"r"}, 1, false);
  const auto each = SpansOf(plain, {kX});
  EXPECT_TRUE(each.contains("m"));
  EXPECT_TRUE(each.at("r").fused_from.empty());
}

TEST(TapeTrace, InputsAreFollowedThroughViews) {
  Compiled step(MakeGraph({Placeholder("x", PartialShape::Of({2, 2})),
                           {"a", "Tanh", {"x"}, kFloat},
                           {"same", "Identity", {"a"}, kFloat},
                           {"y", "Exp", {"same"}, kFloat}}),
                kSquareFed, {"y"}, 1, false);
  EXPECT_EQ(SpansOf(step, {kX}).at("y").inputs, std::vector<std::string>{"a"});
}

TEST(TapeTrace, ARunOfTasksHasASpanOfEachOp) {
  std::vector<NodeLine> nodes = {Placeholder("x", PartialShape::Of({256, 256}))};
  NodeLine sum{"y", "AddN", {}, {{"T", DType::kFloat}, {"N", int64_t{2}}}};
  for (int i = 0; i < 2; ++i) {
    const std::string name = "m" + std::to_string(i);
    nodes.push_back({name, "MatMul", {"x", "x"}, {{"T", DType::kFloat}, {"transpose_b", i % 2 == 1}}});
    nodes.push_back({name + "t", "MatMul", {name, "x"}, kFloat});
    sum.inputs.push_back(name + "t");
  }
  nodes.push_back(sum);
  Compiled step(MakeGraph(nodes), {{"x", Shape::Of({256, 256})}}, {"y"}, 4);
  ASSERT_EQ(step.runner().plan().tier, plan::Tier::kT2);
  Result<Tensor> x = Tensor::Make(DType::kFloat, Shape::Of({256, 256}));
  ASSERT_TRUE(x.ok());
  std::ranges::fill(x->mutable_as<float>(), 0.5f);
  const auto spans = SpansOf(step, {*x});
  for (const char* op : {"m0", "m0t", "m1", "m1t", "y"}) EXPECT_TRUE(spans.contains(op)) << op;
  EXPECT_EQ(spans.at("m1t").inputs, std::vector<std::string>{"m1"});
  EXPECT_EQ(spans.at("y").inputs, (std::vector<std::string>{"m0t", "m1t"}));
}

TEST(TapeTrace, AFailedRunHasTheSpansUpToItsError) {
  Compiled step(MakeGraph({Placeholder("x", PartialShape::Of({2, 2})),
                           {"a", "Tanh", {"x"}, kFloat},
                           {"c", "CheckNumerics", {"a"}, {{"T", DType::kFloat}, {"message", "odd"}}},
                           {"y", "Exp", {"c"}, kFloat}}),
                kSquareFed, {"y"}, 1, false);
  TapeTrace times;
  StepArgs args;
  args.trace = &times;
  std::vector<Tensor> fetches;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = *Tensor::Vector<float>({1, nan, 3, 4}).Reshaped(Shape::Of({2, 2}));
  const std::vector<Tensor> feeds = {x};
  EXPECT_FALSE(step.runner().Run(feeds, &fetches, args).ok());
  std::vector<std::string> nodes;
  for (const trace::Span& span : times.Finish(step.runner().plan(), 1).spans) nodes.push_back(span.node);
  EXPECT_EQ(nodes, (std::vector<std::string>{"a", "c"}));
}

}  // namespace
}  // namespace weir::execute
