// Reads of reference variables share the variable's memory in TensorFlow: users that follow a write, and fetches.
// Expected values are TensorFlow 2.17's.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "tests/unit/session/flow.h"

namespace weir::session {
namespace {

using testing::Const;
using testing::kFloat;
using testing::NodeLine;

const op::AttrList kDtype = {{"dtype", DType::kFloat}};

/// A session with the reference variables v = 1 and w = 0 and the handle h of 1.
class ReadLate : public ::testing::TestWithParam<int> {
 protected:
  void Open(const std::vector<NodeLine>& more) {
    const op::AttrList variable = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({})}};
    std::vector<NodeLine> nodes = {{"v", "VariableV2", {}, variable},
                                   {"w", "VariableV2", {}, variable},
                                   {"h", "VarHandleOp", {}, variable},
                                   Const("zero", Tensor::Scalar<float>(0)),
                                   Const("one", Tensor::Scalar<float>(1)),
                                   Const("ten", Tensor::Scalar<float>(10)),
                                   {"v_set", "Assign", {"v", "one"}, kFloat},
                                   {"w_set", "Assign", {"w", "zero"}, kFloat},
                                   {"h_set", "AssignVariableOp", {"h", "one"}, kDtype},
                                   {"read", "Identity", {"v"}, kFloat}};
    nodes.insert(nodes.end(), more.begin(), more.end());
    graph_ = testing::MakeGraph(nodes);
    ASSERT_TRUE(graph_.ok()) << graph_.status().ToString();
    const Result<std::shared_ptr<Runtime>> runtime = Runtime::Default();
    ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
    SessionOptions options;
    options.inter_op_parallelism_threads = GetParam();
    Result<std::unique_ptr<Session>> made = Session::Make(*runtime, *graph_, options);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    session_ = std::move(*made);
    const std::vector<std::string> none, init = {"v_set", "w_set", "h_set"};
    const auto set = session_->Run({}, none, init);
    ASSERT_TRUE(set.ok()) << set.status().ToString();
  }

  std::vector<float> Get(const std::vector<std::string>& fetches, const std::vector<std::string>& targets = {}) {
    const auto got = session_->Run({}, fetches, targets);
    EXPECT_TRUE(got.ok()) << got.status().ToString();
    std::vector<float> values;
    for (const Tensor& tensor : got.ok() ? *got : std::vector<Tensor>()) values.push_back(tensor.as<float>()[0]);
    return values;
  }

  Result<graph::Definition> graph_ = Internal("not made");
  std::unique_ptr<Session> session_;
};

using Values = std::vector<float>;

TEST_P(ReadLate, UsersThatFollowAWriteSeeIt) {
  Open({{"before", "Mul", {"read", "ten"}, kFloat},
        {"first", "AssignAdd", {"v", "before"}, kFloat},
        {"between", "Mul", {"read", "ten", "^first"}, kFloat},
        {"second", "AssignAdd", {"v", "ten", "^between"}, kFloat},
        {"last", "Mul", {"read", "ten", "^second"}, kFloat},
        {"through_data", "Add", {"read", "between"}, kFloat}});
  EXPECT_EQ(Get({"before", "between", "last", "through_data"}), (Values{10, 110, 210, 121}));
}

TEST_P(ReadLate, ValuesThatAreHandedOnAreTheVariablesToo) {
  Open({{"before", "Mul", {"read", "ten"}, kFloat},
        {"first", "AssignAdd", {"v", "before"}, kFloat},
        {"again", "Identity", {"read", "^first"}, kFloat},
        {"second", "AssignAdd", {"v", "ten", "^again"}, kFloat},
        {"last", "Mul", {"again", "ten", "^second"}, kFloat}});
  EXPECT_EQ(Get({"last"}), (Values{210}));
}

TEST_P(ReadLate, AReadAfterTheWriteStaysOne) {
  Open({{"first", "AssignAdd", {"v", "ten"}, kFloat},
        {"after", "Identity", {"first"}, kFloat},
        {"sum", "Add", {"after", "ten", "^first"}, kFloat}});
  EXPECT_EQ(Get({"sum"}), (Values{21}));
}

TEST_P(ReadLate, FetchesAreOfTheEndOfTheStep) {
  Open({{"before", "Mul", {"read", "ten"}, kFloat}, {"first", "AssignAdd", {"v", "before"}, kFloat}});
  EXPECT_EQ(Get({"v", "read", "first", "before"}), (Values{11, 11, 11, 10}));
  EXPECT_EQ(Get({"read"}, {"first"}), (Values{121}));
  EXPECT_EQ(Get({"read", "v"}), (Values{121, 121}));
}

TEST_P(ReadLate, WhatAReadWaitsForRuns) {
  Open({{"noted", "AssignAdd", {"w", "one"}, kFloat},
        {"waiting", "Identity", {"v", "^noted"}, kFloat},
        {"first", "AssignAdd", {"v", "ten", "^waiting"}, kFloat},
        {"last", "Mul", {"waiting", "ten", "^first"}, kFloat}});
  EXPECT_EQ(Get({"last"}), (Values{110}));
  EXPECT_EQ(Get({"w"}), (Values{1}));
}

TEST_P(ReadLate, ReadsOfHandlesAreOfTheirTime) {
  Open({{"held", "ReadVariableOp", {"h"}, kDtype},
        {"first", "AssignAddVariableOp", {"h", "ten", "^held"}, kDtype},
        {"last", "Mul", {"held", "ten", "^first"}, kFloat}});
  EXPECT_EQ(Get({"last", "held"}), (Values{10, 1}));
}

TEST_P(ReadLate, AWriteInAConditionThatIsNotTakenKeepsNothingFromRunning) {
  const op::AttrList merge = {{"T", DType::kFloat}, {"N", int64_t{2}}};
  Open({Const("no", Tensor::Scalar<bool>(false)),
        {"choice", "Switch", {"ten", "no"}, kFloat},
        {"first", "AssignAdd", {"v", "choice:1", "^read"}, kFloat},
        {"written", "Identity", {"first"}, kFloat},
        {"kept", "Identity", {"choice"}, kFloat},
        {"either", "Merge", {"kept", "written"}, merge},
        {"last", "Add", {"read", "either"}, kFloat}});
  EXPECT_EQ(Get({"last", "read"}), (Values{11, 1}));
}

TEST_P(ReadLate, F199_TokensAreOfTheStepAfterTheUpdate) {
  Open({Const("two", Tensor::Vector<int32_t>({2})),
        {"update", "AssignAdd", {"v", "one"}, kFloat},
        {"tokens", "Fill", {"two", "read", "^update"}, {{"T", DType::kFloat}, {"index_type", DType::kInt32}}}});
  EXPECT_EQ(Get({"tokens"}), (Values{2}));
  EXPECT_EQ(Get({"tokens"}), (Values{3}));
}

INSTANTIATE_TEST_SUITE_P(Threads, ReadLate, ::testing::Values(1, 4));

}  // namespace
}  // namespace weir::session
