// Temporary variables: references that live for one step. Texts are TensorFlow's.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/session/session.h"
#include "tests/support/test_device.h"
#include "tests/support/text_graph.h"

namespace weir::session {
namespace {

using testing::Const;
using testing::kFloat;
using testing::NodeLine;

const PartialShape kPair = PartialShape::Of({2});

NodeLine Temporary(const std::string& name, const std::string& var_name, std::vector<std::string> inputs = {}) {
  return {name,
          "TemporaryVariable",
          std::move(inputs),
          {{"dtype", DType::kFloat}, {"shape", kPair}, {"var_name", var_name}}};
}

NodeLine Destroy(const std::string& name, const std::string& ref, const std::string& var_name) {
  return {name, "DestroyTemporaryVariable", {ref}, {{"T", DType::kFloat}, {"var_name", var_name}}};
}

/// A session on nodes that set `t` to [1, 2] ("set") and add [10, 20] to it ("sum").
class TemporaryVariables : public ::testing::TestWithParam<int> {
 protected:
  void Open(std::vector<NodeLine> more) {
    std::vector<NodeLine> nodes = {Temporary("t", "name"),
                                   Const("one", Tensor::Vector<float>({1, 2})),
                                   Const("ten", Tensor::Vector<float>({10, 20})),
                                   {"set", "Assign", {"t", "one"}, kFloat},
                                   {"sum", "AssignAdd", {"set", "ten"}, kFloat}};
    nodes.insert(nodes.end(), more.begin(), more.end());
    graph_ = testing::MakeGraph(nodes);
    ASSERT_TRUE(graph_.ok()) << graph_.status().ToString();
    const Result<std::shared_ptr<Runtime>> runtime = Runtime::Default();
    ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
    SessionOptions options;
    options.inter_op_parallelism_threads = GetParam();
    options.default_device = testing::TestDevice();
    Result<std::unique_ptr<Session>> made = Session::Make(*runtime, *graph_, options);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    session_ = std::move(*made);
  }

  /// The fetched pair, or the text of the error.
  std::string Run(const std::string& fetch) {
    const std::vector<std::string> fetches = {fetch}, none;
    const Result<std::vector<Tensor>> out = session_->Run({}, fetches, none);
    return out.ok() ? (*out)[0].SummarizeValues() : out.status().message();
  }

  Result<graph::Definition> graph_ = Status();
  std::unique_ptr<Session> session_;
};
INSTANTIATE_TEST_SUITE_P(Threads, TemporaryVariables, ::testing::Values(-1, 4));

TEST_P(TemporaryVariables, DestroyGivesTheLastValueInEveryStep) {
  Open({Destroy("last", "sum", "name")});
  for (int step = 0; step < 3; ++step) EXPECT_EQ(Run("last:0"), "[11 22]");
}

TEST_P(TemporaryVariables, OneThatIsNotDestroyedEndsWithTheStep) {
  Open({{"read", "Identity", {"t", "^set"}, kFloat}, {"fresh", "Identity", {"t"}, kFloat}});
  for (int step = 0; step < 3; ++step) EXPECT_EQ(Run("read:0"), "[1 2]");
  const std::string fresh = Run("fresh:0");
  EXPECT_EQ(fresh.substr(0, fresh.find('\n')), "Attempting to use uninitialized value t")
      << "no value of a step before";
}

TEST_P(TemporaryVariables, ASecondOneOfTheNameIsRefused) {
  Open({Temporary("again", "name", {"^set"}), {"set_again", "Assign", {"again", "ten"}, kFloat}});
  EXPECT_NE(Run("set_again:0").find("/N10tensorflow19TemporaryVariableOp6TmpVarE"), std::string::npos)
      << Run("set_again:0");
  EXPECT_EQ(Run("sum:0"), "[11 22]");
}

TEST_P(TemporaryVariables, ItsNameIsFreeOnceItIsDestroyed) {
  Open({Destroy("last", "sum", "name"),
        Temporary("again", "name", {"^last"}),
        {"set_again", "Assign", {"again", "ten"}, kFloat},
        Destroy("last_again", "set_again", "name")});
  EXPECT_EQ(Run("last_again:0"), "[10 20]");
}

TEST_P(TemporaryVariables, AnotherOrADestroyedNameIsNotFound) {
  Open({Destroy("other", "sum", "other"),
        Destroy("last", "sum", "name"),
        Temporary("own", ""),
        {"twice", "DestroyTemporaryVariable", {"sum", "^last"}, {{"T", DType::kFloat}, {"var_name", "name"}}},
        {"set_own", "Assign", {"own", "one"}, kFloat},
        Destroy("last_own", "set_own", "own")});
  const std::string missing = "/N10tensorflow19TemporaryVariableOp6TmpVarE does not exist.";
  EXPECT_NE(Run("other:0").find("/other" + missing), std::string::npos) << Run("other:0");
  EXPECT_NE(Run("twice:0").find("/name" + missing), std::string::npos) << Run("twice:0");
  EXPECT_EQ(Run("last_own:0"), "[1 2]") << "without var_name it has the name of its node";
}

TEST_P(TemporaryVariables, ReferencesThatPassASwitch) {
  Open({Const("yes", Tensor::Scalar<bool>(true)),
        {"way", "RefSwitch", {"t", "yes"}, kFloat},
        {"set_way", "Assign", {"way:1", "ten"}, kFloat},
        {"both", "RefMerge", {"way:0", "set_way"}, {{"T", DType::kFloat}, {"N", int64_t{2}}}},
        Destroy("last", "both", "name")});
  EXPECT_EQ(Run("set_way:0"), "[10 20]");
  EXPECT_EQ(Run("last:0"), "[10 20]");
}

}  // namespace
}  // namespace weir::session
