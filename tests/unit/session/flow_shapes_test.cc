// Control flow with shapes that differ by branch or by iteration, and branches that could not run if they were taken.
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
  const Result<graph::Definition> graph = MakeGraph(nodes);
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

TEST(ControlFlow, AViewOfACondsResultHasItsOwnShape) {
  std::vector<NodeLine> nodes = Choice();
  nodes.push_back(Const("flat", Tensor::Vector<int32_t>({-1})));
  nodes.push_back({"row", "Reshape", {"y", "flat"}, {{"T", DType::kFloat}, {"Tshape", DType::kInt32}}});
  nodes.push_back({"again", "Switch", {"row", "p"}, kFloat});
  nodes.push_back({"deep", "Merge", {"s:0", "again:1"}, kChosen});  // of two shapes: known only at run time
  nodes.push_back({"negative", "Neg", {"deep"}, kFloat});
  const auto got = RunNodes(nodes, {{"p:0", Tensor::Scalar<bool>(true)}, {"x:0", Tensor::Scalar<float>(3)}},
                            {"y:0", "row:0", "deep:0", "negative:0"});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_TRUE((*got)[0].SameBits(Tensor::Scalar<float>(9)));
  EXPECT_TRUE((*got)[1].SameBits(Tensor::Vector<float>({9}))) << (*got)[1].shape().ToString();
  EXPECT_TRUE((*got)[2].SameBits(Tensor::Vector<float>({9}))) << (*got)[2].shape().ToString();
  EXPECT_TRUE((*got)[3].SameBits(Tensor::Vector<float>({-9}))) << (*got)[3].shape().ToString();
}

TEST(ControlFlow, ShapesAndConstantsOfABranchAreDeadWhereItIsNotTaken) {
  const op::AttrList ints = {{"T", DType::kInt32}, {"N", int64_t{2}}};
  std::vector<NodeLine> nodes = {Placeholder("a", PartialShape()), Placeholder("b", PartialShape()),
                                 Placeholder("p", PartialShape(Shape()), DType::kBool)};
  nodes.push_back({"sa", "Switch", {"a", "p"}, kFloat});
  nodes.push_back({"sb", "Switch", {"b", "p"}, kFloat});
  nodes.push_back({"no", "Shape", {"sa:0"}, kFloat});
  nodes.push_back({"yes", "Shape", {"sb:1"}, kFloat});
  nodes.push_back({"shape", "Merge", {"no", "yes"}, ints});
  nodes.push_back({"in_no", "Identity", {"sa:0"}, kFloat});
  nodes.push_back({"in_yes", "Identity", {"sb:1"}, kFloat});
  NodeLine ten = Const("ten", Tensor::Scalar<int32_t>(10)), one = Const("one", Tensor::Scalar<int32_t>(1));
  ten.inputs = {"^in_no"};
  one.inputs = {"^in_yes"};
  nodes.push_back(ten);
  nodes.push_back(one);
  nodes.push_back({"twenty", "AddV2", {"ten", "ten"}, {{"T", DType::kInt32}}});
  nodes.push_back({"two", "AddV2", {"one", "one"}, {{"T", DType::kInt32}}});
  nodes.push_back({"sum", "Merge", {"twenty", "two"}, ints});
  for (const bool taken : {false, true}) {
    const auto got = RunNodes(nodes,
                              {{"p:0", Tensor::Scalar<bool>(taken)},
                               {"a:0", Tensor::Vector<float>({1, 2})},
                               {"b:0", Tensor::Vector<float>({1, 2, 3})}},
                              {"shape:0", "shape:1", "sum:0"});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_TRUE((*got)[0].SameBits(Tensor::Vector<int32_t>({taken ? 3 : 2})));
    EXPECT_TRUE((*got)[1].SameBits(Tensor::Scalar<int32_t>(taken ? 1 : 0)));
    EXPECT_TRUE((*got)[2].SameBits(Tensor::Scalar<int32_t>(taken ? 2 : 20)));
  }
}

/// An op that a cond protects from invalid operands.
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

/// Appends [0] to x three times, then a loop with the result as an invariant.
TEST(ControlFlow, ALoopStartsWithAValueThatAnotherEnlarged) {
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
