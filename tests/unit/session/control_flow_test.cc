// v1 control flow through sessions: guards, merges, loops and their errors.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/session/session.h"
#include "tests/support/test_device.h"
#include "tests/support/text_graph.h"
#include "tests/unit/session/flow.h"

namespace weir::session {
namespace {

using testing::Const;
using testing::kFloat;
using testing::MakeGraph;
using testing::NodeLine;
using testing::Placeholder;

using Nodes = std::vector<NodeLine>;

const op::AttrList kInt = {{"T", DType::kInt32}};
const op::AttrList kBool = {{"T", DType::kBool}};
const op::AttrList kMerge2 = {{"T", DType::kFloat}, {"N", int64_t{2}}};
const op::AttrList kMerge2Int = {{"T", DType::kInt32}, {"N", int64_t{2}}};

op::AttrList In(const std::string& frame, DType dtype = DType::kInt32, bool constant = false) {
  return {{"T", dtype}, {"frame_name", frame}, {"is_constant", constant}};
}

TEST(ControlFlow, CondTakesOneBranch) {
  const Tensor x = Tensor::Vector<float>({3, 4});
  const auto yes = RunNodes(Choice(), {{"p:0", Tensor::Scalar<bool>(true)}, {"x:0", x}}, {"z:0", "y:0", "y:1"});
  ASSERT_TRUE(yes.ok()) << yes.status().ToString();
  EXPECT_TRUE((*yes)[0].SameBits(Tensor::Vector<float>({12, 20})));
  EXPECT_TRUE((*yes)[1].SameBits(Tensor::Vector<float>({9, 16})));
  EXPECT_TRUE((*yes)[2].SameBits(Tensor::Scalar<int32_t>(1)));
  const auto no = RunNodes(Choice(), {{"p:0", Tensor::Scalar<bool>(false)}, {"x:0", x}}, {"z:0", "y:0", "y:1"});
  ASSERT_TRUE(no.ok()) << no.status().ToString();
  EXPECT_TRUE((*no)[0].SameBits(Tensor::Vector<float>({0, 0})));
  EXPECT_TRUE((*no)[1].SameBits(Tensor::Vector<float>({-3, -4})));
  EXPECT_TRUE((*no)[2].SameBits(Tensor::Scalar<int32_t>(0)));
}

TEST(ControlFlow, FetchOfTheBranchNotTakenIsAnError) {
  const std::vector<Feed> feeds = {{"p:0", Tensor::Scalar<bool>(true)}, {"x:0", Tensor::Scalar<float>(1)}};
  ASSERT_TRUE(RunNodes(Choice(), feeds, {"square:0"}).ok());
  const auto dead = RunNodes(Choice(), feeds, {"neg:0"});
  EXPECT_EQ(dead.status().code(), Code::kInvalidArgument);
  EXPECT_NE(dead.status().message().find("Retval[0] does not have value"), std::string::npos)
      << dead.status().ToString();
}

TEST(ControlFlow, SideEffectsOfTheBranchNotTakenDoNotHappen) {
  const Nodes nodes = {Placeholder("p", PartialShape(Shape()), DType::kBool),
                       Const("one", Tensor::Scalar<float>(1)),
                       Const("zero", Tensor::Scalar<float>(0)),
                       {"v", "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape(Shape())}}},
                       {"init", "Assign", {"v", "zero"}, kFloat},
                       {"s", "Switch", {"p", "p"}, kBool},
                       {"pivot", "Identity", {"s:1"}, kBool},
                       {"one_here", "Identity", {"one", "^pivot"}, kFloat},
                       {"add", "AssignAdd", {"v", "one_here"}, kFloat},
                       {"read", "Identity", {"v"}, kFloat}};
  const Result<std::shared_ptr<Runtime>> runtime = Runtime::Default();
  ASSERT_TRUE(runtime.ok());
  const Result<graph::Definition> graph = MakeGraph(nodes);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto session = Session::Make(*runtime, *graph, {});
  ASSERT_TRUE(session.ok());
  const std::vector<std::string> none, init = {"init"}, add = {"add"}, read = {"read:0"};
  ASSERT_TRUE((*session)->Run({}, none, init).ok());
  float expected = 0;
  for (const bool p : {true, false, true, false, false}) {
    const std::vector<Feed> feeds = {{"p:0", Tensor::Scalar<bool>(p)}};
    ASSERT_TRUE((*session)->Run(feeds, none, add).ok());
    expected += p ? 1.0f : 0.0f;
    const auto value = (*session)->Run({}, read, none);
    ASSERT_TRUE(value.ok());
    EXPECT_TRUE((*value)[0].SameBits(Tensor::Scalar<float>(expected)));
  }
}

/// (i, a, b) = (0, x, y); while i < n: (i + 1, b, a + b)
Nodes Fibonacci(DType dtype = DType::kInt32) {
  const op::AttrList type = {{"T", dtype}};
  const op::AttrList merge = {{"T", dtype}, {"N", int64_t{2}}};
  return {Placeholder("n", PartialShape(Shape()), DType::kInt32),
          Placeholder("x", PartialShape(), dtype),
          Placeholder("y", PartialShape(), dtype),
          Const("zero", Tensor::Scalar<int32_t>(0)),
          Const("one", Tensor::Scalar<int32_t>(1)),
          {"i_in", "Enter", {"zero"}, In("w")},
          {"a_in", "Enter", {"x"}, In("w", dtype)},
          {"b_in", "Enter", {"y"}, In("w", dtype)},
          {"n_in", "Enter", {"n"}, In("w", DType::kInt32, true)},
          {"one_in", "Enter", {"one"}, In("w", DType::kInt32, true)},
          {"i", "Merge", {"i_in", "i_next"}, kMerge2Int},
          {"a", "Merge", {"a_in", "a_next"}, merge},
          {"b", "Merge", {"b_in", "b_next"}, merge},
          {"less", "Less", {"i", "n_in"}, kInt},
          {"on", "LoopCond", {"less"}},
          {"i_s", "Switch", {"i", "on"}, kInt},
          {"a_s", "Switch", {"a", "on"}, type},
          {"b_s", "Switch", {"b", "on"}, type},
          {"i_more", "AddV2", {"i_s:1", "one_in"}, kInt},
          {"sum", "AddV2", {"a_s:1", "b_s:1"}, type},
          {"i_next", "NextIteration", {"i_more"}, kInt},
          {"a_next", "NextIteration", {"b_s:1"}, type},
          {"b_next", "NextIteration", {"sum"}, type},
          {"i_out", "Exit", {"i_s"}, kInt},
          {"a_out", "Exit", {"a_s"}, type},
          {"b_out", "Exit", {"b_s"}, type}};
}

TEST(ControlFlow, LargeLoopVariablesChangePlaces) {
  const auto all = [](float value) { return Tensor::Vector<float>(std::vector<float>(1000, value)); };
  Nodes nodes = Fibonacci(DType::kFloat);
  nodes.push_back({"later", "Sub", {"b_out", "a_out"}, kFloat});
  float a = 1, b = 2;
  for (int n = 0; n < 6; ++n) {
    const auto got = RunNodes(nodes, {{"n:0", Tensor::Scalar<int32_t>(n)}, {"x:0", all(1)}, {"y:0", all(2)}},
                              {"a_out:0", "b_out:0", "later:0"});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_TRUE((*got)[0].SameBits(all(a))) << n;
    EXPECT_TRUE((*got)[1].SameBits(all(b))) << n;
    EXPECT_TRUE((*got)[2].SameBits(all(b - a))) << n;
    b += std::exchange(a, b);
  }
}

TEST(ControlFlow, LoopCarriesItsVariablesAtOnce) {
  for (const int n : {0, 1, 2, 10}) {
    const auto got = RunNodes(
        Fibonacci(),
        {{"n:0", Tensor::Scalar<int32_t>(n)}, {"x:0", Tensor::Scalar<int32_t>(0)}, {"y:0", Tensor::Scalar<int32_t>(1)}},
        {"a_out:0", "b_out:0", "i_out:0"});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    int a = 0, b = 1;
    for (int i = 0; i < n; ++i) a = std::exchange(b, a + b);
    EXPECT_TRUE((*got)[0].SameBits(Tensor::Scalar<int32_t>(a))) << n;
    EXPECT_TRUE((*got)[1].SameBits(Tensor::Scalar<int32_t>(b))) << n;
    EXPECT_TRUE((*got)[2].SameBits(Tensor::Scalar<int32_t>(n))) << n;
  }
}

TEST(ControlFlow, LoopOverVectors) {
  const auto vectors = RunNodes(Fibonacci(DType::kFloat),
                                {{"n:0", Tensor::Scalar<int32_t>(3)},
                                 {"x:0", Tensor::Vector<float>({1, 2})},
                                 {"y:0", Tensor::Vector<float>({10, 20})}},
                                {"a_out:0", "b_out:0"});
  ASSERT_TRUE(vectors.ok()) << vectors.status().ToString();
  EXPECT_TRUE((*vectors)[0].SameBits(Tensor::Vector<float>({21, 42})));
  EXPECT_TRUE((*vectors)[1].SameBits(Tensor::Vector<float>({32, 64})));
}

/// b, which enters dead, is live from the second iteration on, with a's old value; each leaves through its own Exit.
TEST(ControlFlow, VariablesOfALoopLiveAndDieByThemselves) {
  const Nodes nodes = {Placeholder("x", PartialShape(Shape())),
                       Placeholder("p", PartialShape(Shape()), DType::kBool),
                       Const("limit", Tensor::Scalar<float>(5)),
                       {"dead", "Switch", {"x", "p"}, kFloat},
                       {"a_in", "Enter", {"x"}, In("w", DType::kFloat)},
                       {"b_in", "Enter", {"dead:1"}, In("w", DType::kFloat)},
                       {"limit_in", "Enter", {"limit"}, In("w", DType::kFloat, true)},
                       {"a", "Merge", {"a_in", "a_next"}, kMerge2},
                       {"b", "Merge", {"b_in", "b_next"}, kMerge2},
                       {"less", "Less", {"a", "limit_in"}, kFloat},
                       {"on", "LoopCond", {"less"}},
                       {"a_s", "Switch", {"a", "on"}, kFloat},
                       {"more", "AddV2", {"a_s:1", "limit_in"}, kFloat},
                       {"a_next", "NextIteration", {"more"}, kFloat},
                       {"b_next", "NextIteration", {"a"}, kFloat},
                       {"a_out", "Exit", {"a_s"}, kFloat},
                       {"b_out", "Exit", {"b"}, kFloat}};
  const std::vector<Feed> feeds = {{"x:0", Tensor::Scalar<float>(7)}, {"p:0", Tensor::Scalar<bool>(false)}};
  for (const auto& fetches : {std::vector<std::string>{"a_out:0", "b_out:0"}, {"b_out:0", "a_out:0"}}) {
    const auto got = RunNodes(nodes, feeds, fetches);
    ASSERT_TRUE(got.ok()) << fetches[0] << " first: " << got.status().ToString();
    for (const Tensor& value : *got) EXPECT_TRUE(value.SameBits(Tensor::Scalar<float>(7)));
  }
}

/// while i < n: (i + 1, concat(x, x)): the shape changes in every iteration.
TEST(ControlFlow, LoopVariableMayGrow) {
  const op::AttrList concat = {{"T", DType::kFloat}, {"N", int64_t{2}}, {"Tidx", DType::kInt32}};
  const Nodes nodes = {
      Placeholder("n", PartialShape(Shape()), DType::kInt32),
      Const("x0", Tensor::Vector<float>({1, 2})),
      Const("zero", Tensor::Scalar<int32_t>(0)),
      Const("one", Tensor::Scalar<int32_t>(1)),
      {"i_in", "Enter", {"zero"}, In("w")},
      {"x_in", "Enter", {"x0"}, In("w", DType::kFloat)},
      {"n_in", "Enter", {"n"}, In("w", DType::kInt32, true)},
      {"i", "Merge", {"i_in", "i_next"}, kMerge2Int},
      {"x", "Merge", {"x_in", "x_next"}, kMerge2},
      {"less", "Less", {"i", "n_in"}, kInt},
      {"on", "LoopCond", {"less"}},
      {"i_s", "Switch", {"i", "on"}, kInt},
      {"x_s", "Switch", {"x", "on"}, kFloat},
      {"i_id", "Identity", {"i_s:1"}, kInt},
      {"one_here", "Const", {"^i_id"}, {{"dtype", DType::kInt32}, {"value", Tensor::Scalar<int32_t>(1)}}},
      {"axis", "Const", {"^i_id"}, {{"dtype", DType::kInt32}, {"value", Tensor::Scalar<int32_t>(0)}}},
      {"more", "AddV2", {"i_id", "one_here"}, kInt},
      {"twice", "ConcatV2", {"x_s:1", "x_s:1", "axis"}, concat},
      {"i_next", "NextIteration", {"more"}, kInt},
      {"x_next", "NextIteration", {"twice"}, kFloat},
      {"x_out", "Exit", {"x_s"}, kFloat}};
  const auto got = RunNodes(nodes, {{"n:0", Tensor::Scalar<int32_t>(3)}}, {"x_out:0"});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  ASSERT_EQ((*got)[0].elements(), 16);
  EXPECT_EQ((*got)[0].as<float>()[15], 2.0f);
}

/// total = sum over i < n of (i % 2 == 0 ? i : 100), with the cond inside the loop.
TEST(ControlFlow, CondInsideALoop) {
  const auto constant = [](const std::string& name, int32_t value) {
    return NodeLine{name, "Const", {"^i_id"}, {{"dtype", DType::kInt32}, {"value", Tensor::Scalar<int32_t>(value)}}};
  };
  const Nodes nodes = {Placeholder("n", PartialShape(Shape()), DType::kInt32),
                       Const("zero", Tensor::Scalar<int32_t>(0)),
                       {"i_in", "Enter", {"zero"}, In("w")},
                       {"t_in", "Enter", {"zero"}, In("w")},
                       {"n_in", "Enter", {"n"}, In("w", DType::kInt32, true)},
                       {"i", "Merge", {"i_in", "i_next"}, kMerge2Int},
                       {"t", "Merge", {"t_in", "t_next"}, kMerge2Int},
                       {"less", "Less", {"i", "n_in"}, kInt},
                       {"on", "LoopCond", {"less"}},
                       {"i_s", "Switch", {"i", "on"}, kInt},
                       {"t_s", "Switch", {"t", "on"}, kInt},
                       {"i_id", "Identity", {"i_s:1"}, kInt},
                       constant("one", 1),
                       constant("two", 2),
                       constant("nought", 0),
                       constant("hundred", 100),
                       {"rest", "FloorMod", {"i_id", "two"}, kInt},
                       {"even", "Equal", {"rest", "nought"}, kInt},
                       {"c_s", "Switch", {"i_id", "even"}, kInt},
                       {"h_s", "Switch", {"hundred", "even"}, kInt},
                       {"keep", "Identity", {"c_s:1"}, kInt},
                       {"other", "Identity", {"h_s:0"}, kInt},
                       {"add", "Merge", {"other", "keep"}, kMerge2Int},
                       {"sum", "AddV2", {"t_s:1", "add"}, kInt},
                       {"more", "AddV2", {"i_id", "one"}, kInt},
                       {"i_next", "NextIteration", {"more"}, kInt},
                       {"t_next", "NextIteration", {"sum"}, kInt},
                       {"t_out", "Exit", {"t_s"}, kInt}};
  for (const bool fold : {true, false}) {
    const auto got = RunNodes(nodes, {{"n:0", Tensor::Scalar<int32_t>(5)}}, {"t_out:0"}, {}, fold);
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_TRUE((*got)[0].SameBits(Tensor::Scalar<int32_t>(0 + 100 + 2 + 100 + 4)));
  }
}

/// for i < n: for j < i: total += 1
Nodes Nested() {
  return {Placeholder("n", PartialShape(Shape()), DType::kInt32),
          Const("zero", Tensor::Scalar<int32_t>(0)),
          Const("one", Tensor::Scalar<int32_t>(1)),
          {"i_in", "Enter", {"zero"}, In("outer")},
          {"t_in", "Enter", {"zero"}, In("outer")},
          {"n_in", "Enter", {"n"}, In("outer", DType::kInt32, true)},
          {"zero_in", "Enter", {"zero"}, In("outer", DType::kInt32, true)},
          {"one_in", "Enter", {"one"}, In("outer", DType::kInt32, true)},
          {"i", "Merge", {"i_in", "i_next"}, kMerge2Int},
          {"t", "Merge", {"t_in", "t_next"}, kMerge2Int},
          {"less", "Less", {"i", "n_in"}, kInt},
          {"on", "LoopCond", {"less"}},
          {"i_s", "Switch", {"i", "on"}, kInt},
          {"t_s", "Switch", {"t", "on"}, kInt},
          {"i_id", "Identity", {"i_s:1"}, kInt},
          {"zero_here", "Identity", {"zero_in", "^i_id"}, kInt},
          {"j_in", "Enter", {"zero_here"}, In("inner")},
          {"u_in", "Enter", {"t_s:1"}, In("inner")},
          {"bound", "Enter", {"i_id"}, In("inner", DType::kInt32, true)},
          {"one_inner", "Enter", {"one_in"}, In("inner", DType::kInt32, true)},
          {"j", "Merge", {"j_in", "j_next"}, kMerge2Int},
          {"u", "Merge", {"u_in", "u_next"}, kMerge2Int},
          {"j_less", "Less", {"j", "bound"}, kInt},
          {"j_on", "LoopCond", {"j_less"}},
          {"j_s", "Switch", {"j", "j_on"}, kInt},
          {"u_s", "Switch", {"u", "j_on"}, kInt},
          {"j_more", "AddV2", {"j_s:1", "one_inner"}, kInt},
          {"u_more", "AddV2", {"u_s:1", "one_inner"}, kInt},
          {"j_next", "NextIteration", {"j_more"}, kInt},
          {"u_next", "NextIteration", {"u_more"}, kInt},
          {"u_out", "Exit", {"u_s"}, kInt},
          {"i_more", "AddV2", {"i_id", "one_in"}, kInt},
          {"i_next", "NextIteration", {"i_more"}, kInt},
          {"t_next", "NextIteration", {"u_out"}, kInt},
          {"t_out", "Exit", {"t_s"}, kInt}};
}

TEST(ControlFlow, NestedLoops) {
  const auto got = RunNodes(Nested(), {{"n:0", Tensor::Scalar<int32_t>(6)}}, {"t_out:0"});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_TRUE((*got)[0].SameBits(Tensor::Scalar<int32_t>(15)));
}

/// A loop on a branch that is not taken does not run, and its exits are dead.
TEST(ControlFlow, LoopInsideACond) {
  Nodes nodes = Fibonacci();
  for (NodeLine& node : nodes) {
    if (node.name == "a_in") node.inputs = {"gate:1"};
    if (node.name == "b_in") node.inputs = {"gate2:1"};
    if (node.name == "i_in") node.inputs = {"start"};
  }
  nodes.insert(nodes.begin() + 5, {Placeholder("p", PartialShape(Shape()), DType::kBool),
                                   {"gate", "Switch", {"x", "p"}, kInt},
                                   {"gate2", "Switch", {"y", "p"}, kInt},
                                   {"pivot", "Identity", {"gate:1"}, kInt},
                                   {"start", "Identity", {"zero", "^pivot"}, kInt}});
  nodes.push_back({"otherwise", "Neg", {"gate:0"}, kInt});
  nodes.push_back({"y_out", "Merge", {"otherwise", "b_out"}, kMerge2Int});
  for (const bool p : {true, false, true}) {
    const auto got = RunNodes(nodes,
                              {{"p:0", Tensor::Scalar<bool>(p)},
                               {"n:0", Tensor::Scalar<int32_t>(4)},
                               {"x:0", Tensor::Scalar<int32_t>(1)},
                               {"y:0", Tensor::Scalar<int32_t>(1)}},
                              {"y_out:0"});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_TRUE((*got)[0].SameBits(Tensor::Scalar<int32_t>(p ? 8 : -1)));
  }
}

/// Two predicates end the variables at different times: liveness is known only at run time.
TEST(ControlFlow, VariablesThatLeaveAtDifferentTimes) {
  const Nodes nodes = {Const("zero", Tensor::Scalar<int32_t>(0)),
                       Const("one", Tensor::Scalar<int32_t>(1)),
                       Const("three", Tensor::Scalar<int32_t>(3)),
                       Const("five", Tensor::Scalar<int32_t>(5)),
                       {"a_in", "Enter", {"zero"}, In("w")},
                       {"b_in", "Enter", {"zero"}, In("w")},
                       {"one_in", "Enter", {"one"}, In("w", DType::kInt32, true)},
                       {"three_in", "Enter", {"three"}, In("w", DType::kInt32, true)},
                       {"five_in", "Enter", {"five"}, In("w", DType::kInt32, true)},
                       {"a", "Merge", {"a_in", "a_next"}, kMerge2Int},
                       {"b", "Merge", {"b_in", "b_next"}, kMerge2Int},
                       {"a_less", "Less", {"a", "three_in"}, kInt},
                       {"b_less", "Less", {"b", "five_in"}, kInt},
                       {"a_s", "Switch", {"a", "a_less"}, kInt},
                       {"b_s", "Switch", {"b", "b_less"}, kInt},
                       {"a_more", "AddV2", {"a_s:1", "one_in"}, kInt},
                       {"b_more", "AddV2", {"b_s:1", "one_in"}, kInt},
                       {"a_next", "NextIteration", {"a_more"}, kInt},
                       {"b_next", "NextIteration", {"b_more"}, kInt},
                       {"a_out", "Exit", {"a_s"}, kInt},
                       {"b_out", "Exit", {"b_s"}, kInt},
                       {"sum", "AddV2", {"a_out", "b_out"}, kInt}};
  const auto got = RunNodes(nodes, {}, {"sum:0", "a_out:0", "b_out:0"});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_TRUE((*got)[1].SameBits(Tensor::Scalar<int32_t>(3)));
  EXPECT_TRUE((*got)[2].SameBits(Tensor::Scalar<int32_t>(5)));
  EXPECT_TRUE((*got)[0].SameBits(Tensor::Scalar<int32_t>(8)));
}

/// Switches on two predicates, merged without any structure.
TEST(ControlFlow, MergeOfUnrelatedSwitches) {
  const Nodes nodes = {Placeholder("p", PartialShape(Shape()), DType::kBool),
                       Placeholder("q", PartialShape(Shape()), DType::kBool),
                       Const("a", Tensor::Scalar<float>(1)),
                       Const("b", Tensor::Scalar<float>(2)),
                       {"s", "Switch", {"a", "p"}, kFloat},
                       {"t", "Switch", {"b", "q"}, kFloat},
                       {"m", "Merge", {"s:1", "t:1"}, kMerge2},
                       {"y", "Neg", {"m"}, kFloat}};
  for (const bool p : {false, true}) {
    for (const bool q : {false, true}) {
      const auto got = RunNodes(nodes, {{"p:0", Tensor::Scalar<bool>(p)}, {"q:0", Tensor::Scalar<bool>(q)}}, {"y:0"});
      ASSERT_EQ(got.ok(), p || q) << got.status().ToString();
      if (!got.ok()) continue;
      EXPECT_TRUE((*got)[0].SameBits(Tensor::Scalar<float>(p ? -1.0f : -2.0f)));
    }
  }
}

TEST(ControlFlow, MergeOfThree) {
  const op::AttrList three = {{"T", DType::kFloat}, {"N", int64_t{3}}};
  const Nodes nodes = {Placeholder("p", PartialShape(Shape()), DType::kBool),
                       Placeholder("q", PartialShape(Shape()), DType::kBool),
                       Const("a", Tensor::Scalar<float>(1)),
                       {"s", "Switch", {"a", "p"}, kFloat},
                       {"twice", "AddV2", {"s:0", "s:0"}, kFloat},
                       {"t", "Switch", {"twice", "q"}, kFloat},
                       {"m", "Merge", {"t:0", "s:1", "t:1"}, three},
                       {"first", "Merge", {"twice", "twice", "twice"}, three}};
  const auto run = [&](bool p, bool q, const std::vector<std::string>& fetches) {
    return RunNodes(nodes, {{"p:0", Tensor::Scalar<bool>(p)}, {"q:0", Tensor::Scalar<bool>(q)}}, fetches);
  };
  for (const auto& [p, q, value, index] :
       {std::tuple(false, false, 2.0f, 0), std::tuple(true, false, 1.0f, 1), std::tuple(false, true, 2.0f, 2)}) {
    const auto got = run(p, q, {"m:0", "m:1"});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_TRUE((*got)[0].SameBits(Tensor::Scalar<float>(value)));
    EXPECT_TRUE((*got)[1].SameBits(Tensor::Scalar<int32_t>(index)));
  }
  const auto got = run(false, false, {"first:1"});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_TRUE((*got)[0].SameBits(Tensor::Scalar<int32_t>(0)));
}

/// v = x, or y where p; while v < 1000: v = v < 50 ? 2 * v * v : 2 * v, with two back edges. `one_way` in: the value
/// enters through a Merge, else through two Enters.
Nodes TwoWaysBack(bool one_way) {
  Nodes nodes = {Placeholder("p", PartialShape(Shape()), DType::kBool),
                 Placeholder("x", PartialShape(Shape())),
                 Placeholder("y", PartialShape(Shape())),
                 Const("limit", Tensor::Scalar<float>(1000)),
                 Const("middle", Tensor::Scalar<float>(50)),
                 {"x_s", "Switch", {"x", "p"}, kFloat},
                 {"y_s", "Switch", {"y", "p"}, kFloat},
                 {"limit_in", "Enter", {"limit"}, In("w", DType::kFloat, true)},
                 {"middle_in", "Enter", {"middle"}, In("w", DType::kFloat, true)}};
  if (one_way) {
    nodes.push_back({"start", "Merge", {"x_s:0", "y_s:1"}, kMerge2});
    nodes.push_back({"in", "Enter", {"start"}, In("w", DType::kFloat)});
    nodes.push_back({"v", "Merge", {"in", "v_large", "v_small"}, {{"T", DType::kFloat}, {"N", int64_t{3}}}});
  } else {
    nodes.push_back({"x_in", "Enter", {"x_s:0"}, In("w", DType::kFloat)});
    nodes.push_back({"y_in", "Enter", {"y_s:1"}, In("w", DType::kFloat)});
    nodes.push_back({"v", "Merge", {"x_in", "v_large", "y_in", "v_small"}, {{"T", DType::kFloat}, {"N", int64_t{4}}}});
  }
  const Nodes body = {{"less", "Less", {"v", "limit_in"}, kFloat},
                      {"on", "LoopCond", {"less"}},
                      {"s", "Switch", {"v", "on"}, kFloat},
                      {"index_s", "Switch", {"v:1", "on"}, kInt},
                      {"small", "Less", {"s:1", "middle_in"}, kFloat},
                      {"way", "Switch", {"s:1", "small"}, kFloat},
                      {"doubled", "AddV2", {"way:0", "way:0"}, kFloat},
                      {"squared", "Square", {"way:1"}, kFloat},
                      {"squares", "AddV2", {"squared", "squared"}, kFloat},
                      {"v_large", "NextIteration", {"doubled"}, kFloat},
                      {"v_small", "NextIteration", {"squares"}, kFloat},
                      {"out", "Exit", {"s:0"}, kFloat},
                      {"index", "Exit", {"index_s:0"}, kInt}};
  nodes.insert(nodes.end(), body.begin(), body.end());
  return nodes;
}

TEST(ControlFlow, LoopVariableComesBackOnTwoWays) {
  struct Case {
    bool p;
    float start, last;
    int32_t one_way, two_ways;
  };
  const Case cases[] = {{false, 1, 1024, 1, 1}, {true, 100, 1600, 1, 1},   {false, 30, 1800, 2, 3},
                        {true, 40, 3200, 2, 3}, {false, 2000, 2000, 0, 0}, {true, 2000, 2000, 0, 2}};
  for (const Case& c : cases) {
    for (const bool one_way : {true, false}) {
      const std::vector<Feed> feeds = {{"p:0", Tensor::Scalar<bool>(c.p)},
                                       {"x:0", Tensor::Scalar<float>(c.p ? -1 : c.start)},
                                       {"y:0", Tensor::Scalar<float>(c.p ? c.start : -1)}};
      const auto got = RunNodes(TwoWaysBack(one_way), feeds, {"out:0", "index:0"});
      ASSERT_TRUE(got.ok()) << got.status().ToString();
      EXPECT_TRUE((*got)[0].SameBits(Tensor::Scalar<float>(c.last))) << c.start;
      EXPECT_TRUE((*got)[1].SameBits(Tensor::Scalar<int32_t>(one_way ? c.one_way : c.two_ways))) << c.start;
    }
  }
}

TEST(ControlFlow, RefIdentityIsTheVariable) {
  const op::AttrList variable = {{"dtype", DType::kFloat}, {"shape", PartialShape(Shape())}};
  const Nodes nodes = {{"v", "VariableV2", {}, variable},
                       Const("two", Tensor::Scalar<float>(2)),
                       {"init", "Assign", {"v", "two"}, kFloat},
                       {"same", "RefIdentity", {"init"}, kFloat},
                       {"add", "AssignAdd", {"same", "two"}, kFloat},
                       {"read", "Identity", {"v", "^add"}, kFloat}};
  const auto got = RunNodes(nodes, {}, {"read:0"});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_TRUE((*got)[0].SameBits(Tensor::Scalar<float>(4)));
}

struct BadFlow {
  const char* name;
  std::function<void(Nodes&)> damage;
  const char* text;
};

void PrintTo(const BadFlow& bad, std::ostream* out) { *out << bad.name; }

class BadFlowTest : public ::testing::TestWithParam<BadFlow> {};

TEST_P(BadFlowTest, IsAnErrorThatNamesTheNode) {
  Nodes nodes = Fibonacci();
  GetParam().damage(nodes);
  const auto got = RunNodes(
      nodes,
      {{"n:0", Tensor::Scalar<int32_t>(4)}, {"x:0", Tensor::Scalar<int32_t>(1)}, {"y:0", Tensor::Scalar<int32_t>(1)}},
      {"b_out:0"});
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.status().message().find(GetParam().text), std::string::npos) << got.status().ToString();
}

void Rewire(Nodes& nodes, const std::string& name, std::vector<std::string> inputs) {
  for (NodeLine& node : nodes) {
    if (node.name == name) node.inputs = std::move(inputs);
  }
}

INSTANTIATE_TEST_SUITE_P(All, BadFlowTest,
                         ::testing::Values(BadFlow{"mixed_frames",
                                                   [](Nodes& n) {
                                                     Rewire(n, "sum", {"a_s:1", "one_outside"});
                                                     n.insert(n.begin() + 5, {"one_outside", "Identity", {"x"}, kInt});
                                                   },
                                                   "has inputs from different frames"},
                                           BadFlow{"loop_without_enter",
                                                   [](Nodes& n) {
                                                     Rewire(n, "b", {"b_next", "b_next"});
                                                   },
                                                   "no Enter"},
                                           BadFlow{"exit_outside", [](Nodes& n) { Rewire(n, "b_out", {"x"}); },
                                                   "is in no frame"},
                                           BadFlow{"cycle_without_next_iteration",
                                                   [](Nodes& n) {
                                                     Rewire(n, "b", {"b_in", "sum"});
                                                   },
                                                   "sum"}),
                         [](const ::testing::TestParamInfo<BadFlow>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace weir::session
