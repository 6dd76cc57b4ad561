// Products in loops whose input part is made ahead of the loop: where, and that results and errors agree.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/session/runtime.h"
#include "core/session/session.h"
#include "tests/support/text_graph.h"

namespace weir::fuse {
namespace {

using testing::Const;
using testing::kFloat;
using testing::NodeLine;
using testing::Placeholder;

Tensor Uniform(const Shape& shape, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> number(-1, 1);
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (float& value : values) value = number(generator);
  return Tensor::Of<float>(shape, values);
}

op::AttrList In(const char* frame, DType type, bool constant = false) {
  return {{"T", type}, {"frame_name", std::string(frame)}, {"is_constant", constant}};
}

/// Adds `while (t < n)` over t and h, which start with t_0 and h_0. The body reads them as t_b and h_b and computes
/// h_n; h leaves as h_x.
void AddLoop(std::vector<NodeLine>& nodes, const std::vector<NodeLine>& body) {
  const op::AttrList integer = {{"T", DType::kInt32}};
  const std::vector<std::pair<std::string, DType>> variables = {{"t", DType::kInt32}, {"h", DType::kFloat}};
  for (const char* constant : {"n", "one"}) {
    nodes.push_back({std::string(constant) + "_e", "Enter", {constant}, In("loop", DType::kInt32, true)});
  }
  for (const auto& [v, type] : variables) nodes.push_back({v + "_e", "Enter", {v + "_0"}, In("loop", type)});
  for (const auto& [v, type] : variables) {
    nodes.push_back({v + "_m", "Merge", {v + "_e", v + "_r"}, {{"T", type}, {"N", int64_t{2}}}});
  }
  nodes.push_back({"less", "Less", {"t_m", "n_e"}, integer});
  nodes.push_back({"on", "LoopCond", {"less"}});
  for (const auto& [v, type] : variables) {
    nodes.push_back({v + "_s", "Switch", {v + "_m", "on"}, {{"T", type}}});
    nodes.push_back({v + "_b", "Identity", {v + "_s:1"}, {{"T", type}}});
    nodes.push_back({v + "_x", "Exit", {v + "_s"}, {{"T", type}}});
  }
  nodes.push_back({"t_n", "AddV2", {"t_b", "one_e"}, integer});
  nodes.insert(nodes.end(), body.begin(), body.end());
  for (const auto& [v, type] : variables) nodes.push_back({v + "_r", "NextIteration", {v + "_n"}, {{"T", type}}});
}

/// A cell h = tanh([x[t], h] w + bias) in a loop over t.
struct CellLoop {
  int32_t steps = 3, iterations = 3;
  int64_t rows = 2, inputs = 5, units = 7;
  bool array = false;  // x in a TensorArray
  bool biased = true;
  bool transposed = false;   // w
  std::string order = "up";  // of the array's elements: "up" or "down"
  std::string other_user;    // an op of the loop that reads "joined" too
  int32_t size = 3;          // of the array

  std::vector<NodeLine> Nodes() const {
    const op::AttrList constant = In("loop", DType::kFloat, true);
    std::vector<int32_t> numbers;
    for (int32_t i = 0; i < steps; ++i) numbers.push_back(order == "up" ? i : steps - 1 - i);
    std::vector<NodeLine> nodes = {
        Placeholder("x", PartialShape::Of({steps, rows, inputs})),
        Const("h_0", Uniform(Shape::Of({rows, units}), 1)),
        Const("w", Uniform(transposed ? Shape::Of({units, inputs + units}) : Shape::Of({inputs + units, units}), 2)),
        Const("bias", Uniform(Shape::Of({units}), 3)),
        Const("n", Tensor::Scalar<int32_t>(iterations)),
        Const("one", Tensor::Scalar<int32_t>(1)),
        Const("t_0", Tensor::Scalar<int32_t>(0)),
        Const("rows", Tensor::Scalar<int32_t>(0)),
        Const("columns", Tensor::Scalar<int32_t>(1)),
        Const("order", Tensor::Vector<int32_t>(numbers)),
        Const("size", Tensor::Scalar<int32_t>(size)),
        {"w_e", "Enter", {"w"}, constant},
        {"bias_e", "Enter", {"bias"}, constant},
        {"rows_e", "Enter", {"rows"}, In("loop", DType::kInt32, true)},
        {"columns_e", "Enter", {"columns"}, In("loop", DType::kInt32, true)}};
    std::vector<NodeLine> body;
    if (array) {
      nodes.push_back({"array", "TensorArrayV3", {"size"}, {{"dtype", DType::kFloat}}});
      nodes.push_back({"filled", "TensorArrayScatterV3", {"array", "order", "x", "array:1"}, kFloat});
      nodes.push_back({"array_e", "Enter", {"array"}, In("loop", DType::kResource, true)});
      nodes.push_back({"filled_e", "Enter", {"filled"}, constant});
      body.push_back({"part", "TensorArrayReadV3", {"array_e", "t_b", "filled_e"}, {{"dtype", DType::kFloat}}});
    } else {
      nodes.push_back({"x_e", "Enter", {"x"}, constant});
      body.push_back({"part", "GatherV2", {"x_e", "t_b", "rows_e"},
                      {{"Tparams", DType::kFloat}, {"Tindices", DType::kInt32}, {"Taxis", DType::kInt32}}});
    }
    body.push_back({"joined", "ConcatV2", {"part", "h_b", "columns_e"},
                    {{"T", DType::kFloat}, {"Tidx", DType::kInt32}, {"N", int64_t{2}}}});
    body.push_back({"product", "MatMul", {"joined", "w_e"}, {{"T", DType::kFloat}, {"transpose_b", transposed}}});
    if (biased) body.push_back({"z", "BiasAdd", {"product", "bias_e"}, kFloat});
    body.push_back({"h_n", "Tanh", {biased ? "z" : "product"}, kFloat});
    if (!other_user.empty()) body.push_back({"other", other_user, {"joined"}, kFloat});
    AddLoop(nodes, body);
    nodes.push_back({"y", "Identity", {"h_x"}, kFloat});
    return nodes;
  }
};

struct Outcome {
  Status status;
  std::vector<float> values;
  std::string step;
  bool Has(const std::string& op) const { return step.find(" = " + op + "(") != std::string::npos; }
};

Outcome RunLoop(const CellLoop& loop, bool fusion, const std::vector<std::string>& targets = {}) {
  const Result<graph::Definition> graph = testing::MakeGraph(loop.Nodes());
  if (!graph.ok()) return {graph.status(), {}, {}};
  session::SessionOptions options;
  options.fusion = fusion;
  const auto session = session::Session::Make(*session::Runtime::Default(), *graph, options);
  if (!session.ok()) return {session.status(), {}, {}};
  const std::vector<session::Feed> feeds = {{"x:0", Uniform(Shape::Of({loop.steps, loop.rows, loop.inputs}), 4)}};
  const std::vector<std::string> fetches = {"y:0"};
  const auto text = (*session)->ExplainStage(session::Stage::kGraph, feeds, fetches, targets);
  EXPECT_TRUE(text.ok()) << text.status().ToString();
  Outcome outcome;
  outcome.step = text.ok() ? *text : "";
  for (int i = 0; i < 2; ++i) {  // the second run has what the first one packed
    const auto ran = (*session)->Run(feeds, fetches, targets);
    outcome.status = ran.status();
    if (!ran.ok()) return outcome;
    const auto numbers = ran->front().as<float>();
    outcome.values.assign(numbers.begin(), numbers.end());
  }
  return outcome;
}

/// Both ways give the same numbers; whether the part was lifted.
bool LiftsAndAgrees(const CellLoop& loop) {
  const Outcome fused = RunLoop(loop, true), plain = RunLoop(loop, false);
  EXPECT_TRUE(fused.status.ok() && plain.status.ok()) << fused.status.ToString() << plain.status.ToString();
  EXPECT_EQ(fused.values.size(), plain.values.size());
  for (size_t i = 0; i < fused.values.size() && i < plain.values.size(); ++i) {
    EXPECT_NEAR(fused.values[i], plain.values[i], 5e-5f) << i;
  }
  EXPECT_FALSE(plain.Has("_MatMulOfStep")) << plain.step;
  const bool ahead = fused.Has(loop.biased ? "_BiasedMatMulOfSteps" : "_MatMulOfSteps");
  EXPECT_EQ(fused.Has("_MatMulOfStep"), ahead) << fused.step;
  EXPECT_NE(fused.Has("_MatMulOfStep"), fused.Has("ConcatV2")) << fused.step;
  if (loop.array) {
    EXPECT_NE(ahead, fused.Has("TensorArrayScatterV3")) << "an array that nothing reads is not filled";
  }
  return ahead;
}

TEST(Lift, F021_InputHalvesOfRecurrentProductsLeaveLoops) {
  for (const bool array : {false, true}) {
    for (const int64_t rows : {1, 3, 33}) {
      for (const int64_t inputs : {1, 70, 512}) {
        CellLoop loop;
        loop.array = array;
        loop.rows = rows;
        loop.inputs = inputs;
        loop.units = inputs == 70 ? 130 : 16;
        EXPECT_TRUE(LiftsAndAgrees(loop)) << array << " " << rows << " " << inputs;
      }
    }
  }
  CellLoop plain;
  plain.biased = false;
  EXPECT_TRUE(LiftsAndAgrees(plain));
}

TEST(Lift, F021_LoopsOfFewerIterationsAgree) {
  for (const bool array : {false, true}) {
    for (const int32_t iterations : {0, 1}) {
      CellLoop loop;
      loop.array = array;
      loop.iterations = iterations;
      EXPECT_TRUE(LiftsAndAgrees(loop)) << iterations;
    }
  }
}

TEST(Lift, F021_WhatDoesNotFitStaysInItsLoop) {
  CellLoop transposed;
  transposed.transposed = true;
  EXPECT_FALSE(LiftsAndAgrees(transposed));
  CellLoop unordered;
  unordered.array = true;
  unordered.order = "down";
  EXPECT_FALSE(LiftsAndAgrees(unordered));
  for (const bool array : {false, true}) {
    CellLoop read;
    read.array = array;
    read.other_user = "Neg";
    const Outcome fused = RunLoop(read, true, {"other"});
    EXPECT_TRUE(fused.status.ok()) << fused.status.ToString();
    EXPECT_FALSE(fused.Has("_MatMulOfStep")) << fused.step;
  }
}

TEST(Lift, F021_StepsPastTheEndFailAsBefore) {
  for (const bool array : {false, true}) {
    CellLoop loop;
    loop.array = array;
    loop.iterations = 5;
    const Outcome fused = RunLoop(loop, true), plain = RunLoop(loop, false);
    EXPECT_TRUE(fused.Has("_MatMulOfStep")) << fused.step;
    const std::string text = array ? "Tried to read from index 3 but array size is: 3" : "indices = 3 is not in [0, 3)";
    for (const Outcome& outcome : {fused, plain}) {
      EXPECT_EQ(outcome.status.code(), Code::kInvalidArgument) << outcome.status.ToString();
      EXPECT_NE(outcome.status.message().find(text), std::string::npos) << outcome.status.ToString();
    }
  }
}

TEST(Lift, F021_ArraysTooSmallFailAsBefore) {
  CellLoop loop;
  loop.array = true;
  loop.size = 2;
  for (const bool fusion : {true, false}) {
    const Outcome outcome = RunLoop(loop, fusion);
    EXPECT_NE(outcome.status.message().find("Max scatter index must be < array size (2 vs. 2)"), std::string::npos)
        << outcome.status.ToString();
  }
}

}  // namespace
}  // namespace weir::fuse
