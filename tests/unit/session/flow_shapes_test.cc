// What runs where shapes differ by branch or by iteration, and where a branch that is not taken could not run.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/session/session.h"
#include "tests/support/text_graph.h"
#include "tests/unit/session/flow.h"

namespace weir::session {
namespace {

using testing::Const;
using testing::kFloat;
using testing::MakeGraph;
using testing::NodeLine;
using testing::Placeholder;

const op::AttrList kChosen = {{"T", DType::kFloat}, {"N", int64_t{2}}};

TEST(ControlFlow, FetchOfTheBranchNotTakenKeepsNothingFromRunning) {
  std::vector<NodeLine> nodes = Choice();
  nodes.push_back(Const("one", Tensor::Scalar<float>(1)));
  nodes.push_back({"v", "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape(Shape())}}});
  nodes.push_back({"init", "Assign", {"v", "one"}, kFloat});
  nodes.push_back({"add", "AssignAdd", {"v", "one", "^z"}, kFloat});
  const Result<std::shared_ptr<Runtime>> runtime = Runtime::Default();
  ASSERT_TRUE(runtime.ok());
  const Result<graph::Graph> graph = MakeGraph(nodes);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto session = Session::Make(*runtime, *graph, {});
  ASSERT_TRUE(session.ok());
  const std::vector<std::string> none, init = {"init"}, fetches = {"z:0", "neg:0", "add:0"}, v = {"v:0"};
  ASSERT_TRUE((*session)->Run({}, none, init).ok());
  const std::vector<Feed> feeds = {{"p:0", Tensor::Scalar<bool>(true)}, {"x:0", Tensor::Scalar<float>(1)}};
  const auto dead = (*session)->Run(feeds, fetches, none);
  EXPECT_EQ(dead.status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(dead.status().message().starts_with("Retval[1] does not have value")) << dead.status().ToString();
  EXPECT_EQ(dead.status().node(), "neg");
  const auto value = (*session)->Run({}, v, none);
  ASSERT_TRUE(value.ok()) << value.status().ToString();
  EXPECT_TRUE((*value)[0].SameBits(Tensor::Scalar<float>(2)));
}

TEST(ControlFlow, AViewOfWhatACondGaveHasItsOwnShape) {
  std::vector<NodeLine> nodes = Choice();
  nodes.push_back(Const("flat", Tensor::Vector<int32_t>({-1})));
  nodes.push_back({"row", "Reshape", {"y", "flat"}, {{"T", DType::kFloat}, {"Tshape", DType::kInt32}}});
  nodes.push_back({"again", "Switch", {"row", "p"}, kFloat});
  nodes.push_back({"deep", "Merge", {"s:0", "again:1"}, kChosen});  // of two shapes: known only while running
  nodes.push_back({"negative", "Neg", {"deep"}, kFloat});
  const auto got = RunNodes(nodes, {{"p:0", Tensor::Scalar<bool>(true)}, {"x:0", Tensor::Scalar<float>(3)}},
                            {"y:0", "row:0", "deep:0", "negative:0"});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_TRUE((*got)[0].SameBits(Tensor::Scalar<float>(9)));
  EXPECT_TRUE((*got)[1].SameBits(Tensor::Vector<float>({9}))) << (*got)[1].shape().ToString();
  EXPECT_TRUE((*got)[2].SameBits(Tensor::Vector<float>({9}))) << (*got)[2].shape().ToString();
  EXPECT_TRUE((*got)[3].SameBits(Tensor::Vector<float>({-9}))) << (*got)[3].shape().ToString();
}

/// A cond is what keeps an op from operands that it cannot be given.
struct Unfit {
  const char* op;
  std::vector<std::string> inputs;
  op::AttrList attrs;
  std::vector<float> x;
  const char* text;
};

TEST(ControlFlow, OperandsThatDoNotFitAreAnErrorOfTheBranchTaken) {
  const op::AttrList sizes = {{"T", DType::kFloat}, {"Index", DType::kInt32}};
  const Unfit rows[] = {
      {"AddV2", {"s:1", "three"}, kFloat, {1, 2}, "Incompatible shapes: [2] vs. [3]"},
      {"Pack",
       {"s:1", "three"},
       {{"T", DType::kFloat}, {"N", int64_t{2}}},
       {1},
       "Shapes of all inputs must match: values[0].shape = [1] != values[1].shape = [3]"},
      {"Slice", {"s:1", "from", "size"}, sizes, {1, 2}, "Expected size[0] in [0, 1], but got 2"},
      {"Slice", {"three", "size", "size", "^taken"}, sizes, {1}, "Expected size[0] in [0, 1], but got 2"},
      {"Reshape",
       {"s:1", "size"},
       {{"T", DType::kFloat}, {"Tshape", DType::kInt32}},
       {1, 2, 3},
       "Input to reshape is a tensor with 3 values, but the requested shape has 2"},
      {"Squeeze",
       {"s:1"},
       {{"T", DType::kFloat}, {"squeeze_dims", std::vector<int64_t>{0}}},
       {1, 2},
       "Can not squeeze dim[0], expected a dimension of 1, got 2"},
  };
  for (const Unfit& row : rows) {
    const std::vector<NodeLine> nodes = {Placeholder("p", PartialShape(Shape()), DType::kBool),
                                         Placeholder("x", PartialShape()),
                                         Const("three", Tensor::Vector<float>({1, 2, 3})),
                                         Const("from", Tensor::Vector<int32_t>({1})),
                                         Const("size", Tensor::Vector<int32_t>({2})),
                                         {"s", "Switch", {"x", "p"}, kFloat},
                                         {"taken", "Identity", {"s:1"}, kFloat},
                                         {"unfit", row.op, row.inputs, row.attrs},
                                         {"neg", "Neg", {"s:0"}, kFloat},
                                         {"y", "Merge", {"neg", "unfit"}, kChosen}};
    const Tensor x = Tensor::Vector<float>(row.x);
    for (const bool fold : {true, false}) {
      const auto no = RunNodes(nodes, {{"p:0", Tensor::Scalar<bool>(false)}, {"x:0", x}}, {"y:0"}, {}, fold);
      ASSERT_TRUE(no.ok()) << row.op << ": " << no.status().ToString();
      EXPECT_EQ((*no)[0].shape(), x.shape());
      EXPECT_EQ((*no)[0].as<float>()[0], -1);
      const auto yes = RunNodes(nodes, {{"p:0", Tensor::Scalar<bool>(true)}, {"x:0", x}}, {"y:0"}, {}, fold);
      EXPECT_EQ(yes.status().code(), Code::kInvalidArgument);
      EXPECT_TRUE(yes.status().message().starts_with(row.text)) << yes.status().ToString();
      EXPECT_EQ(yes.status().node(), "unfit");
    }
  }
}

/// Three times [0] behind x, then a loop that x is the same in.
TEST(ControlFlow, ALoopIsEnteredWithWhatAnotherMadeLonger) {
  std::vector<NodeLine> nodes = Around({"x"}, {"i", "j"});
  nodes.push_back(Const("more", Tensor::Vector<float>({0})));
  nodes.push_back(Const("axis", Tensor::Scalar<int32_t>(0)));
  const op::AttrList join = {{"T", DType::kFloat}, {"N", int64_t{2}}, {"Tidx", DType::kInt32}};
  Append(nodes, Loop("grow", "n", "one", "i", {"x"},
                     {{"more_in", "Enter", {"more"}, In("grow", DType::kFloat, true)},
                      {"axis_in", "Enter", {"axis"}, In("grow", DType::kInt32, true)},
                      {"x_n", "ConcatV2", {"x_b", "more_in", "axis_in"}, join}}));
  nodes.push_back({"same_0", "Identity", {"x_x"}, kFloat});
  Append(nodes, Loop("keep", "n", "one", "j", {"same"}, {{"same_n", "Identity", {"same_b"}, kFloat}}));
  const auto got = RunNodes(nodes, {{"x:0", Tensor::Vector<float>({1, 2})}}, {"same_x:0"});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_TRUE((*got)[0].SameBits(Tensor::Vector<float>({1, 2, 0, 0, 0})));
}

}  // namespace
}  // namespace weir::session
