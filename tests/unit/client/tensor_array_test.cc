// Gradients through arrays of tensors, by arrays of gradients, and through lists.
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

const op::AttrList kFloatElements = {{"dtype", DType::kFloat}};

/// An array in the default graph, with its writes so far.
struct ArrayNodes {
  explicit ArrayNodes(int32_t size) {
    const Operation made =
        BuildOp("TensorArrayV3", {Constant(size)}, {{"dtype", DType::kFloat}, {"clear_after_read", false}});
    handle = made.output(0);
    flow = made.output(1);
  }
  void Write(int32_t index, const Output& value) {
    flow = BuildOp("TensorArrayWriteV3", {handle, Constant(index), value, flow}).output(0);
  }
  Output Read(int32_t index) const {
    return BuildOp("TensorArrayReadV3", {handle, Constant(index), flow}, kFloatElements).output(0);
  }
  Output handle, flow;
};

/// dy/dx at x = [1, 2, 3].
std::vector<double> GradientAt(Graph& graph, const Output& y, const Output& x) {
  const Result<std::vector<Gradient>> gradients = Gradients({y}, {x});
  EXPECT_TRUE(Succeeds(gradients));
  if (!gradients.ok() || !(*gradients)[0].exists()) return {};
  Session session(graph);
  return Values(session, (*gradients)[0].values, {{x, Tensor::Vector<float>({1, 2, 3})}});
}

Output Vector3() { return Placeholder(DType::kFloat, PartialShape{3}, "x"); }

TEST(TensorArrays, F394_RepeatedReadsOfUnstackedElementsAddUp) {
  Fresh f;
  const Output x = Vector3();
  ArrayNodes array(3);
  array.flow = BuildOp("TensorArrayScatterV3", {array.handle, Constant({0, 1, 2}), x, array.flow}).output(0);
  const Output y = array.Read(0) + array.Read(0) * 5.0f;
  EXPECT_EQ(GradientAt(f.graph, y, x), (std::vector<double>{6, 0, 0})) << f.error();
}

TEST(TensorArrays, F394_GatheredElementsPassGradientsToWhatWasWritten) {
  Fresh f;
  const Output x = Vector3();
  ArrayNodes array(2);
  array.Write(1, x);
  array.Write(0, x * x);
  const Output rows = BuildOp("TensorArrayGatherV3", {array.handle, Constant({0, 1}), array.flow},
                              {{"dtype", DType::kFloat}, {"element_shape", PartialShape{3}}})
                          .output(0);
  EXPECT_EQ(GradientAt(f.graph, ReduceSum(rows), x), (std::vector<double>{3, 5, 7})) << f.error();
}

TEST(TensorArrays, F394_ConcatAndSplitPassGradients) {
  Fresh f;
  const Output x = Vector3();
  ArrayNodes array(2);
  const Output lengths = Cast(Constant({1, 2}), DType::kInt64);
  array.flow = BuildOp("TensorArraySplitV3", {array.handle, x, lengths, array.flow}).output(0);
  const Output whole = BuildOp("TensorArrayConcatV3", {array.handle, array.flow},
                               {{"dtype", DType::kFloat}, {"element_shape_except0", PartialShape(Shape())}})
                           .output(0);
  const Output y = ReduceSum(whole * Constant({2.0f, 3.0f, 4.0f}));
  EXPECT_EQ(GradientAt(f.graph, y, x), (std::vector<double>{2, 3, 4})) << f.error();
}

TEST(TensorArrays, TwoCallsOfGradientsHaveArraysOfTheirOwn) {
  Fresh f;
  const Output x = Vector3();
  ArrayNodes array(1);
  array.Write(0, x);
  const Output y = array.Read(0) * 2.0f;
  EXPECT_EQ(GradientAt(f.graph, y, x), (std::vector<double>{2, 2, 2})) << f.error();
  EXPECT_EQ(GradientAt(f.graph, y * 3.0f, x), (std::vector<double>{6, 6, 6})) << f.error();
  std::vector<std::string> sources;
  for (const Operation& operation : f.graph.Operations()) {
    if (operation.type() == "TensorArrayGradV3") sources.push_back(*operation.node().attrs().String("source"));
  }
  ASSERT_GE(sources.size(), 2u);
  EXPECT_EQ(sources.front(), "gradients");
  EXPECT_EQ(sources.back(), "gradients_1");
}

// Lists, whose gradients are lists.

const op::AttrList kList = {{"element_dtype", DType::kFloat}, {"shape_type", DType::kInt32}};
const op::AttrList kElements = {{"element_dtype", DType::kFloat}};

TEST(TensorLists, PushedElementsGetTheGradientsOfTheStack) {
  Fresh f;
  const Output x = Vector3(), shape = Constant({3});
  Output list = BuildOp("EmptyTensorList", {shape, Constant(-1)}, kList).output(0);
  for (const Output& element : {x, x * x}) list = BuildOp("TensorListPushBack", {list, element}).output(0);
  const Output rows = BuildOp("TensorListStack", {list, shape}, kElements).output(0);
  EXPECT_EQ(GradientAt(f.graph, ReduceSum(rows), x), (std::vector<double>{3, 5, 7})) << f.error();
}

TEST(TensorLists, GradientsOfSeveralReadsAddUp) {
  Fresh f;
  const Output x = Vector3(), none = Constant(Tensor::Vector<int32_t>({}));
  const Output list = BuildOp("TensorListFromTensor", {x, none}, kList).output(0);
  const auto item = [&](int32_t i) {
    return BuildOp("TensorListGetItem", {list, Constant(i), none}, kElements).output(0);
  };
  EXPECT_EQ(GradientAt(f.graph, item(0) + item(1) * 5.0f + item(1), x), (std::vector<double>{1, 6, 0})) << f.error();
}

TEST(TensorLists, SetItemsReplaceElements) {
  Fresh f;
  const Output x = Vector3(), none = Constant(Tensor::Vector<int32_t>({}));
  const Output list = BuildOp("TensorListFromTensor", {x, none}, kList).output(0);
  const Output changed = BuildOp("TensorListSetItem", {list, Constant(1), ReduceSum(x) * 2.0f}).output(0);
  const Output rows = BuildOp("TensorListStack", {changed, none}, kElements).output(0);
  EXPECT_EQ(GradientAt(f.graph, ReduceSum(rows), x), (std::vector<double>{3, 2, 3})) << f.error();
}

TEST(TensorLists, ConcatAndSplitPassGradients) {
  Fresh f;
  const Output x = Vector3(), any = Constant({-1});
  const Output lengths = Cast(Constant({1, 2}), DType::kInt64);
  const Output list = BuildOp("TensorListSplit", {x, any, lengths}, kList).output(0);
  const Output whole = BuildOp("TensorListConcatV2", {list, any, lengths}, kList).output(0);
  const Output y = ReduceSum(whole * Constant({2.0f, 3.0f, 4.0f}));
  EXPECT_EQ(GradientAt(f.graph, y, x), (std::vector<double>{2, 3, 4})) << f.error();
}

}  // namespace
}  // namespace weir::test
