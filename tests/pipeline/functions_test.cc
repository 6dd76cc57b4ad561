// Steps of graphs with functions: results, order of side effects, error texts.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/graph_def.h"
#include "core/session/session.h"
#include "tests/support/test_device.h"
#include "tests/support/text_graph.h"

namespace weir::session {
namespace {

using testing::AttrTexts;
using testing::Const;
using testing::Func;
using testing::FunctionLine;
using testing::kFloat;
using testing::MakeGraph;
using testing::NodeLine;
using testing::Placeholder;
using Names = std::vector<std::string>;
using Types = std::vector<DType>;

const AttrTexts kX = {{"x", "type: DT_FLOAT"}};
const AttrTexts kY = {{"y", "type: DT_FLOAT"}};
const op::AttrList kHeld = {{"dtype", DType::kFloat}};

NodeLine Scalar(const std::string& name, float value) { return Const(name, Tensor::Scalar<float>(value)); }

/// Nodes of one call; `rest` are the attributes that name functions.
NodeLine Call(const std::string& name, const std::string& op, Names inputs, Types in, Types out, op::AttrList rest) {
  op::AttrList attrs = std::move(rest);
  if (op.ends_with("While") || op == "For") {
    attrs.emplace_back("T", std::move(out));
  } else {
    attrs.emplace_back("Tin", std::move(in));
    attrs.emplace_back("Tout", std::move(out));
  }
  return {name, op, std::move(inputs), std::move(attrs)};
}

/// y = x + step, with a variable that counts the calls: handle, x -> y.
FunctionLine Counting(const std::string& name, float step) {
  return {.name = name,
          .arguments = {{"handle", "type: DT_RESOURCE"}, {"x", "type: DT_FLOAT"}},
          .results = kY,
          .nodes = {Scalar("one", 1),
                    Scalar("step", step),
                    {"count", "AssignAddVariableOp", {"handle", "one:output:0"}, kHeld},
                    {"sum", "AddV2", {"x", "step:output:0"}, kFloat}},
          .returns = {{"y", "sum:z:0"}},
          .control_returns = {"count"}};
}

FunctionLine Affine() {
  return {.name = "affine",
          .arguments = kX,
          .results = kY,
          .nodes = {Scalar("two", 2),
                    {"twice", "Mul", {"x", "two:output:0"}, kFloat},
                    {"more", "Exp", {"x"}, kFloat},
                    {"sum", "AddV2", {"twice:z:0", "more:y:0"}, kFloat}},
          .returns = {{"y", "sum:z:0"}}};
}

const NodeLine kHandle = {
    "v", "VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape(Shape())}, {"shared_name", "v"}}};
const std::vector<NodeLine> kState = {kHandle,
                                      Scalar("zero", 0),
                                      {"init", "AssignVariableOp", {"v", "zero"}, kHeld},
                                      {"read", "ReadVariableOp", {"v"}, kHeld}};

class FunctionsTest : public ::testing::Test {
 protected:
  void Open(std::vector<NodeLine> nodes, const std::vector<FunctionLine>& functions) {
    nodes.insert(nodes.begin(), kState.begin(), kState.end());
    Result<graph::Definition> graph = MakeGraph(nodes, functions);
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    graph_ = std::make_unique<graph::Definition>(std::move(*graph));
    const Result<std::shared_ptr<Runtime>> runtime = Runtime::Default();
    ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
    SessionOptions options;
    options.default_device = testing::TestDevice();
    Result<std::unique_ptr<Session>> session = Session::Make(*runtime, *graph_, options);
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    session_ = std::move(*session);
    ASSERT_TRUE(session_->Run({}, {}, Names{"init"}).ok());
  }

  /// The fetched floats of a run.
  std::vector<float> Run(const std::vector<Feed>& feeds, const Names& fetches, const Names& targets = {}) {
    const auto values = session_->Run(feeds, fetches, targets, {}, &report_);
    EXPECT_TRUE(values.ok()) << values.status().ToString();
    std::vector<float> floats;
    if (!values.ok()) return floats;
    for (const Tensor& value : *values) floats.push_back(*value.scalar<float>());
    return floats;
  }
  std::string Error(const std::vector<Feed>& feeds, const Names& fetches) {
    const auto values = session_->Run(feeds, fetches, Names{});
    EXPECT_FALSE(values.ok());
    return values.status().ToString();
  }
  static Feed Float(const std::string& name, float value) { return {name, Tensor::Scalar<float>(value)}; }
  static Feed Int(const std::string& name, int32_t value) { return {name, Tensor::Scalar<int32_t>(value)}; }

  std::unique_ptr<graph::Definition> graph_;
  std::unique_ptr<Session> session_;
  RunReport report_;
};

TEST_F(FunctionsTest, CallCostsAsMuchAsItsBody) {
  Open({Placeholder("x", Shape()),
        Call("call", "PartitionedCall", {"x"}, {DType::kFloat}, {DType::kFloat}, {{"f", Func("affine")}}),
        Scalar("two", 2),
        {"twice", "Mul", {"x", "two"}, kFloat},
        {"more", "Exp", {"x"}, kFloat},
        {"sum", "AddV2", {"twice", "more"}, kFloat}},
       {Affine()});
  EXPECT_EQ(Run({Float("x", 0)}, {"call"}), std::vector<float>{1});
  const int called = report_.instructions;
  EXPECT_EQ(Run({Float("x", 0)}, {"sum"}), std::vector<float>{1});
  EXPECT_EQ(called, report_.instructions);
}

TEST_F(FunctionsTest, OutputsOfCallsAreFetchedFedAndTargeted) {
  Open({Placeholder("x", Shape()),
        {"call", "counting", {"v", "x"}},
        {"after", "Neg", {"call"}, kFloat},
        {"done", "NoOp", {"^call"}}},
       {Counting("counting", 3)});
  EXPECT_EQ(Run({Float("x", 1)}, {"call", "after"}), (std::vector<float>{4, -4}));
  EXPECT_EQ(Run({Float("x", 5)}, {"call:0"}), std::vector<float>{8});
  EXPECT_EQ(Run({}, {"read"}), std::vector<float>{2});  // one call in each run
  EXPECT_EQ(Run({Float("call", 7)}, {"after"}), std::vector<float>{-7});
  EXPECT_EQ(Run({}, {"read"}), std::vector<float>{2});  // none: its output was fed
  Run({Float("x", 0)}, {}, {"call"});
  Run({Float("x", 0)}, {}, {"done"});
  EXPECT_EQ(Run({}, {"read"}), std::vector<float>{4});
}

TEST_F(FunctionsTest, EffectsHappenOncePerCallAndInOrder) {
  // Two calls in sequence; both results, and the variable after the second call.
  Open({Placeholder("x", Shape()),
        {"first", "outer", {"v", "x"}},
        {"second", "outer", {"v", "x", "^first"}},
        {"last", "ReadVariableOp", {"v", "^second"}, kHeld}},
       {Counting("counting", 1),
        {.name = "outer",
         .arguments = {{"h", "type: DT_RESOURCE"}, {"x", "type: DT_FLOAT"}},
         .results = kY,
         .nodes = {{"a", "counting", {"h", "x"}},
                   {"now", "ReadVariableOp", {"h", "^a"}, kHeld},
                   {"b", "counting", {"h", "now:value:0", "^now"}}},
         .returns = {{"y", "now:value:0"}}}});
  EXPECT_EQ(Run({Float("x", 0)}, {"first", "second", "last"}), (std::vector<float>{1, 3, 4}));
}

TEST_F(FunctionsTest, F173_BranchesThatAreNotTakenHaveNoEffect) {
  Open({Placeholder("p", Shape(), DType::kBool), Placeholder("x", Shape()),
        Call("if", "If", {"p", "v", "x"}, {DType::kResource, DType::kFloat}, {DType::kFloat},
             {{"Tcond", DType::kBool}, {"then_branch", Func("up")}, {"else_branch", Func("seven")}})},
       {Counting("up", 1),
        {.name = "seven",
         .arguments = {{"h", "type: DT_RESOURCE"}, {"x", "type: DT_FLOAT"}},
         .results = kY,
         .nodes = {Scalar("c", 7)},
         .returns = {{"y", "c:output:0"}}}});
  const auto taken = [](bool value) { return Feed{"p", Tensor::Scalar<bool>(value)}; };
  EXPECT_EQ(Run({taken(true), Float("x", 1)}, {"if"}), std::vector<float>{2});
  EXPECT_EQ(Run({taken(false), Float("x", 1)}, {"if"}), std::vector<float>{7});
  Run({taken(true), Float("x", 1)}, {}, {"if"});
  EXPECT_EQ(Run({}, {"read"}), std::vector<float>{2});
}

TEST_F(FunctionsTest, F174_CaseTakesTheLastBranchForEveryOtherIndex) {
  std::vector<FunctionLine> functions;
  op::AttrValue branches = std::vector<op::FuncRef>{*Func("b0").get<op::FuncRef>(), *Func("b1").get<op::FuncRef>(),
                                                    *Func("b2").get<op::FuncRef>()};
  for (int i = 0; i < 3; ++i) functions.push_back(Counting("b" + std::to_string(i), 10.0f * static_cast<float>(i)));
  Open({Placeholder("k", Shape(), DType::kInt32), Placeholder("x", Shape()),
        Call("case", "Case", {"k", "v", "x"}, {DType::kResource, DType::kFloat}, {DType::kFloat},
             {{"branches", std::move(branches)}})},
       functions);
  for (const auto& [index, wanted] : {std::pair(0, 1.0f), {1, 11.0f}, {2, 21.0f}, {3, 21.0f}, {-1, 21.0f}}) {
    EXPECT_EQ(Run({Int("k", index), Float("x", 1)}, {"case"}), std::vector<float>{wanted}) << index;
  }
  EXPECT_EQ(Run({}, {"read"}), std::vector<float>{5});
}

/// while x < 100: count; x = 2 x + k, where k does not change.
std::vector<FunctionLine> Doubling() {
  const AttrTexts arguments = {{"h", "type: DT_RESOURCE"}, {"k", "type: DT_FLOAT"}, {"x", "type: DT_FLOAT"}};
  return {{.name = "below",
           .arguments = arguments,
           .results = {{"y", "type: DT_BOOL"}},
           .nodes = {Scalar("limit", 100), {"less", "Less", {"x", "limit:output:0"}, kFloat}},
           .returns = {{"y", "less:z:0"}}},
          {.name = "double",
           .arguments = arguments,
           .results = {{"a", "type: DT_RESOURCE"}, {"b", "type: DT_FLOAT"}, {"c", "type: DT_FLOAT"}},
           .nodes = {Scalar("one", 1),
                     {"count", "AssignAddVariableOp", {"h", "one:output:0"}, kHeld},
                     {"same", "Identity", {"k"}, kFloat},
                     {"twice", "AddV2", {"x", "x"}, kFloat},
                     {"sum", "AddV2", {"twice:z:0", "k"}, kFloat}},
           .returns = {{"a", "h"}, {"b", "same:output:0"}, {"c", "sum:z:0"}},
           .control_returns = {"count"}}};
}

TEST_F(FunctionsTest, F177_LoopsCountIterationsAndKeepInvariants) {
  const Types types = {DType::kResource, DType::kFloat, DType::kFloat};
  Open({Placeholder("x", Shape()),
        Placeholder("k", Shape()),
        Call("while", "While", {"v", "k", "x"}, types, types, {{"cond", Func("below")}, {"body", Func("double")}}),
        {"last", "ReadVariableOp", {"while:0"}, kHeld}},
       Doubling());
  EXPECT_EQ(Run({Float("x", 1), Float("k", 1)}, {"while:1", "while:2", "last"}), (std::vector<float>{1, 127, 6}));
  EXPECT_EQ(Run({Float("x", 200), Float("k", 1)}, {"while:2", "last"}), (std::vector<float>{200, 6}));
  // A read behind the loop sees the writes of the last iteration, though the handle passed through unchanged.
  EXPECT_EQ(Run({Float("x", 50), Float("k", 0)}, {"last"}), std::vector<float>{7});
}

TEST_F(FunctionsTest, F177_ForRefusesNumbersThatLeadNowhere) {
  Open({Placeholder("s", Shape(), DType::kInt32), Placeholder("l", Shape(), DType::kInt32),
        Placeholder("d", Shape(), DType::kInt32), Placeholder("x", Shape()),
        Call("for", "For", {"s", "l", "d", "x"}, {}, {DType::kFloat}, {{"body", Func("add")}})},
       {{.name = "add",
         .arguments = {{"i", "type: DT_INT32"}, {"x", "type: DT_FLOAT"}},
         .results = kY,
         .nodes = {{"f", "Cast", {"i"}, {{"SrcT", DType::kInt32}, {"DstT", DType::kFloat}}},
                   {"sum", "AddV2", {"x", "f:y:0"}, kFloat}},
         .returns = {{"y", "sum:z:0"}}}});
  const auto feeds = [&](int32_t s, int32_t l, int32_t d) {
    return std::vector<Feed>{Int("s", s), Int("l", l), Int("d", d), Float("x", 1)};
  };
  EXPECT_EQ(Run(feeds(0, 4, 1), {"for"}), std::vector<float>{7});
  EXPECT_EQ(Run(feeds(5, 0, -2), {"for"}), std::vector<float>{10});
  EXPECT_EQ(Run(feeds(2, 2, 0), {"for"}), std::vector<float>{1});
  EXPECT_EQ(Error(feeds(0, 4, 0), {"for"}),
            "INVALID_ARGUMENT: assertion failed: [Invalid start/limit/delta:] [0] [4] [0]\n\t [[{{node for/_check}}]]");
  EXPECT_EQ(
      Error(feeds(0, 4, -1), {"for"}),
      "INVALID_ARGUMENT: assertion failed: [Invalid start/limit/delta:] [0] [4] [-1]\n\t [[{{node for/_check}}]]");
}

TEST_F(FunctionsTest, DeadCallsDoNothingEvenIfTheyGiveConstants) {
  Open({Placeholder("p", Shape(), DType::kBool),
        Placeholder("x", Shape()),
        {"switch", "Switch", {"x", "p"}, kFloat},
        {"constant", "constant", {"switch:1"}},
        {"counted", "counting", {"v", "switch:1"}},
        {"merge", "Merge", {"switch", "constant"}, {{"T", DType::kFloat}, {"N", int64_t{2}}}},
        {"other", "Merge", {"switch", "counted"}, {{"T", DType::kFloat}, {"N", int64_t{2}}}}},
       {Counting("counting", 1),
        {.name = "constant",
         .arguments = kX,
         .results = kY,
         .nodes = {Scalar("c", 7)},
         .returns = {{"y", "c:output:0"}}}});
  for (const auto& [taken, wanted] : {std::pair(true, 7.0f), {false, 1.0f}}) {
    EXPECT_EQ(Run({{"p", Tensor::Scalar<bool>(taken)}, Float("x", 1)}, {"merge"}), std::vector<float>{wanted});
  }
  EXPECT_EQ(Run({{"p", Tensor::Scalar<bool>(false)}, Float("x", 1)}, {"other"}), std::vector<float>{1});
  EXPECT_EQ(Run({}, {"read"}), std::vector<float>{0});
}

TEST_F(FunctionsTest, ErrorsNameTheCallsThatLeadToThem) {
  Open({Placeholder("x", Shape()),
        {"outside", "outer", {"x"}},
        {"missing",
         "PartitionedCall",
         {"x"},
         {{"Tin", Types{DType::kFloat}}, {"Tout", Types{DType::kFloat}}, {"f", Func("nothing")}}},
        {"after", "Neg", {"missing"}, kFloat},
        {"good", "Neg", {"x"}, kFloat}},
       {{.name = "inner",
         .arguments = kX,
         .results = kY,
         .nodes = {{"check", "CheckNumerics", {"x"}, {{"T", DType::kFloat}, {"message", "bad"}}}},
         .returns = {{"y", "check:output:0"}}},
        {.name = "outer",
         .arguments = kX,
         .results = kY,
         .nodes = {{"call", "inner", {"x"}}},
         .returns = {{"y", "call:y:0"}}}});
  EXPECT_EQ(
      Error({Float("x", std::numeric_limits<float>::quiet_NaN())}, {"outside"}),
      "INVALID_ARGUMENT: bad : Tensor had NaN values\n\t [[{{node outside/call/check}}]] (defined at node 'check' "
      "of function 'inner')");
  EXPECT_EQ(Error({Float("x", 1)}, {"after"}), "NOT_FOUND: Function nothing is not defined.\n\t [[{{node missing}}]]");
  EXPECT_EQ(Run({Float("x", 1)}, {"good"}), std::vector<float>{-1});
}

TEST_F(FunctionsTest, PartialRunsAndGraphsThatGrow) {
  Open({Placeholder("x", Shape()),
        Placeholder("z", Shape()),
        {"call", "counting", {"v", "x"}},
        {"sum", "AddV2", {"call", "z"}, kFloat}},
       {Counting("counting", 1)});
  const Result<std::string> run = session_->PRunSetup(Names{"x", "z"}, Names{"call", "sum"}, Names{});
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  const std::vector<Feed> x = {Float("x", 1)}, z = {Float("z", 10)};
  const auto first = session_->PRun(*run, x, Names{"call"});
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  EXPECT_EQ(*(*first)[0].scalar<float>(), 2);
  const auto second = session_->PRun(*run, z, Names{"sum"});
  ASSERT_TRUE(second.ok()) << second.status().ToString();
  EXPECT_EQ(*(*second)[0].scalar<float>(), 12);
  EXPECT_EQ(Run({}, {"read"}), std::vector<float>{1});
  ASSERT_TRUE(graph::ImportGraphDef("node { name: 'more' op: 'counting' input: 'v' input: 'call' }", {}, *graph_).ok());
  EXPECT_EQ(Run({Float("x", 1)}, {"more"}), std::vector<float>{3});
  EXPECT_EQ(Run({}, {"read"}), std::vector<float>{3});
}

TEST_F(FunctionsTest, ToBoolFakeParamAndDeviceIndex) {
  Open({Placeholder("x", PartialShape()),
        {"bool", "ToBool", {"x"}, kFloat},
        {"fake", "FakeParam", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({-1, 2})}}},
        {"index", "DeviceIndex", {}, {{"device_names", Names{"GPU", "CPU"}}}},
        {"beyond", "DeviceIndex", {}, {{"device_names", Names{"GPU"}}}}},
       {});
  const auto truth = [&](const Tensor& x) {
    const std::vector<Feed> feeds = {{"x", x}};
    const auto values = session_->Run(feeds, Names{"bool"}, Names{});
    EXPECT_TRUE(values.ok()) << values.status().ToString();
    return values.ok() && *(*values)[0].scalar<bool>();
  };
  EXPECT_TRUE(truth(Tensor::Scalar<float>(0.5f)));
  EXPECT_FALSE(truth(Tensor::Scalar<float>(0)));
  EXPECT_TRUE(truth(Tensor::Vector<float>({0})));
  EXPECT_FALSE(truth(Tensor::Vector<float>({})));
  const auto values = session_->Run({}, Names{"fake", "index", "beyond"}, Names{});
  ASSERT_TRUE(values.ok()) << values.status().ToString();
  EXPECT_EQ((*values)[0].shape(), Shape::Of({0, 2}));
  EXPECT_EQ(*(*values)[1].scalar<int32_t>(), 1);
  EXPECT_EQ(*(*values)[2].scalar<int32_t>(), 1);
}

}  // namespace
}  // namespace weir::session
