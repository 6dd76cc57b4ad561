#include "core/graph/stacks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/optimize/optimize.h"
#include "tests/support/text_graph.h"

namespace weir::graph {
namespace {

using testing::NodeLine;

const op::AttrList kInt = {{"T", DType::kInt32}};
const op::AttrList kElement = {{"elem_type", DType::kInt32}};

op::AttrList EnterOf(DType type, bool constant) {
  return {{"T", type}, {"frame_name", std::string("w")}, {"is_constant", constant}};
}

/// A loop that pushes its counter on stack `s`, from which `pop` takes one element after it.
std::vector<NodeLine> Loop() {
  return {testing::Const("most", Tensor::Scalar<int32_t>(7)),
          testing::Const("zero", Tensor::Scalar<int32_t>(0)),
          {"s", "StackV2", {"most"}, kElement},
          {"es", "Enter", {"s"}, EnterOf(DType::kResource, true)},
          {"e", "Enter", {"zero"}, EnterOf(DType::kInt32, false)},
          {"m", "Merge", {"e", "n"}, {{"T", DType::kInt32}, {"N", int64_t{2}}}},
          {"less", "Less", {"m", "m"}, kInt},
          {"go", "LoopCond", {"less"}},
          {"sw", "Switch", {"m", "go"}, kInt},
          {"push", "StackPushV2", {"es", "sw:1"}, kInt},
          {"n", "NextIteration", {"push"}, kInt},
          {"x", "Exit", {"sw"}, kInt},
          {"pop", "StackPopV2", {"s", "^x"}, kElement}};
}

/// The stacks of a step, each as "name of its op, limit, pushes, pops".
std::string Found(const std::vector<NodeLine>& nodes, const std::vector<std::string>& fetches) {
  const Result<Definition> graph = testing::MakeGraph(nodes);
  EXPECT_TRUE(graph.ok()) << graph.status().ToString();
  if (!graph.ok()) return "?";
  StepRequest request;
  for (const std::string& fetch : fetches) request.fetches.push_back(testing::At(*graph, fetch));
  const auto step = optimize::Optimize({}, *graph, request, nullptr);
  EXPECT_TRUE(step.ok()) << step.status().ToString();
  if (!step.ok()) return "?";
  std::string text;
  for (const PrivateStack& stack : FindPrivateStacks(*step)) {
    text += std::string(step->node(stack.make).name()) + " " + std::to_string(stack.most) + ":";
    for (const NodeId push : stack.pushes) text += " " + std::string(step->node(push).name());
    text += " |";
    for (const NodeId pop : stack.pops) text += " " + std::string(step->node(pop).name());
  }
  return text;
}

TEST(PrivateStacks, AreThoseThatOnlyPushesAndPopsUse) {
  EXPECT_EQ(Found(Loop(), {"pop"}), "s 7: push | pop");
  EXPECT_EQ(Found(Loop(), {"x"}), "s 7: push |");
}

TEST(PrivateStacks, AreNotThoseWhoseHandleGoesElsewhere) {
  EXPECT_EQ(Found(Loop(), {"pop", "s"}), "") << "fetched";
  std::vector<NodeLine> nodes = Loop();
  nodes.push_back({"close", "StackCloseV2", {"s", "^pop"}});
  nodes.push_back({"all", "Identity", {"pop", "^close"}, kInt});
  EXPECT_EQ(Found(nodes, {"all"}), "") << "closed";
  nodes = Loop();
  nodes.push_back(testing::Const("p", Tensor::Scalar(true)));
  nodes.push_back({"other", "StackV2", {"most"}, kElement});
  nodes.push_back({"one", "Select", {"p", "pop", "pop"}, kInt});
  nodes.push_back({"either", "Merge", {"s", "other"}, {{"T", DType::kResource}, {"N", int64_t{2}}}});
  nodes.push_back({"pop2", "StackPopV2", {"either", "^one"}, kElement});
  EXPECT_EQ(Found(nodes, {"pop2"}), "") << "one of several";
}

TEST(PrivateStacks, HaveOneTypeAndAKnownLimit) {
  std::vector<NodeLine> nodes = Loop();
  nodes.back() = {"pop", "StackPopV2", {"s", "^x"}, {{"elem_type", DType::kFloat}}};
  EXPECT_EQ(Found(nodes, {"pop"}), "") << "popped as another type";
  nodes = Loop();
  nodes[0] = {"most", "VariableV2", {}, {{"dtype", DType::kInt32}, {"shape", PartialShape::Of({})}}};
  EXPECT_EQ(Found(nodes, {"pop"}), "") << "a limit that a step finds out";
  nodes[0] = testing::Const("most", Tensor::Vector<int32_t>({1, 2}));
  EXPECT_EQ(Found(nodes, {"pop"}), "") << "no scalar";
}

TEST(PrivateStacks, NeedALoop) {
  EXPECT_EQ(Found({testing::Const("most", Tensor::Scalar<int32_t>(-1)),
                   {"s", "StackV2", {"most"}, kElement},
                   {"push", "StackPushV2", {"s", "most"}, kInt},
                   {"pop", "StackPopV2", {"s", "^push"}, kElement}},
                  {"pop"}),
            "");
}

}  // namespace
}  // namespace weir::graph
