// Shape inference with values computed from the graph.
#include "core/graph/inference.h"

#include <gtest/gtest.h>

#include "core/graph/known_ints.h"
#include "tests/unit/graph/test_ops.h"

namespace weir::graph {
namespace {

class KnownInts : public testing::Test {
 protected:
  Endpoint Ints(const std::vector<int32_t>& values) { return b_.Const(Fresh(), Tensor::Vector<int32_t>(values)); }
  Endpoint Int(int32_t value) { return b_.Const(Fresh(), Tensor::Scalar<int32_t>(value)); }
  Endpoint I(const std::string& op, std::vector<Endpoint> inputs, op::AttrList attrs = {}) {
    attrs.emplace_back("T", DType::kInt32);
    return b_.Op(op, Fresh(), std::move(inputs), std::move(attrs));
  }
  Endpoint ShapeOp(Endpoint e) { return b_.Op("Shape", Fresh(), {e}, {{"T", b_.graph.TypeOf(e)}}); }
  Endpoint Strided(Endpoint e, int begin, int end, int stride, op::AttrList attrs = {}) {
    return I("StridedSlice", {e, Ints({begin}), Ints({end}), Ints({stride})}, std::move(attrs));
  }
  /// The known parts of a value: as a tensor, else as a shape.
  std::string Known(Endpoint e) {
    if (const std::optional<Tensor> tensor = KnownTensor(b_.graph, e)) {
      const std::string values = tensor->SummarizeValues(100);
      return tensor->shape().rank() == 0 ? values.substr(1, values.size() - 2) : values;
    }
    return KnownShapeValue(b_.graph, e).ToString();
  }
  std::string Fresh() { return "n" + std::to_string(b_.graph.num_nodes()); }

  Builder b_;
};

TEST_F(KnownInts, ShapesAndArithmeticOnThem) {
  const Endpoint x = b_.Placeholder("x", DType::kFloat, PartialShape::Of({-1, 3, 4}));
  const Endpoint shape = ShapeOp(x);
  EXPECT_EQ(Known(shape), "[?,3,4]");
  EXPECT_EQ(Known(b_.Op("Rank", "rank", {x}, {{"T", DType::kFloat}})), "3");
  const Endpoint batch = Strided(shape, 0, 1, 1, {{"shrink_axis_mask", 1}});
  const Endpoint rows = Strided(shape, -2, 0, 1, {{"shrink_axis_mask", 1}});
  EXPECT_EQ(Known(rows), "3");
  EXPECT_EQ(Known(Strided(shape, 1, 3, 1)), "[3 4]");
  EXPECT_EQ(Known(Strided(shape, 0, 2, 1)), "[?,3]");
  EXPECT_EQ(Known(Strided(shape, 7, 1, 1, {{"begin_mask", 1}, {"end_mask", 1}})), "[?,3,4]");
  EXPECT_EQ(Known(Strided(shape, 0, 0, -1, {{"begin_mask", 1}})), "[4 3]");
  EXPECT_EQ(Known(I("Slice", {shape, Ints({1}), Ints({-1})})), "[3 4]");
  const Endpoint packed = I("Pack", {batch, I("Mul", {rows, Int(4)})}, {{"N", 2}});
  EXPECT_EQ(Known(packed), "[?,12]");
  EXPECT_EQ(Known(I("ConcatV2", {packed, Ints({5}), Int(0)}, {{"N", 2}})), "[?,12,5]");
  EXPECT_EQ(Known(I("Gather", {shape, Ints({2, 1})})), "[4 3]");
  EXPECT_EQ(Known(I("Prod", {Strided(shape, 1, 3, 1), Int(0)})), "12");
  EXPECT_EQ(Known(I("Sum", {Ints({1, 2, 3}), Int(0)})), "6");
  const Endpoint y = b_.Op("Reshape", "y", {x, packed}, {{"T", DType::kFloat}});
  EXPECT_EQ(b_.ShapeOf(y), "[?,12]");
}

TEST_F(KnownInts, Arithmetic) {
  EXPECT_EQ(Known(I("FloorDiv", {Int(-7), Int(2)})), "-4");
  EXPECT_EQ(Known(I("FloorMod", {Int(-7), Int(3)})), "2");
  EXPECT_EQ(Known(I("FloorDiv", {Int(7), Int(0)})), "<unknown>");
  EXPECT_EQ(Known(I("Maximum", {Ints({1, 9}), Int(5)})), "[5 9]");
  EXPECT_EQ(Known(I("Minimum", {Ints({1, 9}), Int(5)})), "[1 5]");
  EXPECT_EQ(Known(I("Sub", {Int(5), Int(7)})), "-2");
  EXPECT_EQ(Known(I("Mul", {Ints({1 << 30, 2}), Ints({4, 3})})), "[?,6]");  // the first wraps at run time
  EXPECT_EQ(Known(b_.Op("Range", Fresh(), {Int(0), Int(6), Int(2)})), "[0 2 4]");
  EXPECT_EQ(Known(b_.Op("Range", Fresh(), {Int(0), Int(2'000'000'000), Int(1)})), "<unknown>");
  EXPECT_EQ(Known(I("Squeeze", {Ints({8})})), "8");
  const Endpoint wide = b_.Op("Cast", Fresh(), {Ints({3})}, {{"SrcT", DType::kInt32}, {"DstT", DType::kInt64}});
  EXPECT_EQ(KnownTensor(b_.graph, wide)->dtype(), DType::kInt64);
}

TEST_F(KnownInts, SharedSubexpressionsDoNotMultiplyTheWork) {
  Endpoint e = Int(1);
  for (int i = 0; i < 60; ++i) e = I("AddV2", {e, e});
  EXPECT_EQ(Known(e), "<unknown>");  // would need 2^60 visits
}

TEST_F(KnownInts, ConstantsAreSeenThroughIdentity) {
  const Endpoint c = b_.Const("c", Tensor::Scalar<float>(2.5f));
  const Endpoint id = b_.Op("Identity", "id", {c}, {{"T", DType::kFloat}});
  const Endpoint stop = b_.Op("StopGradient", "stop", {id}, {{"T", DType::kFloat}});
  ASSERT_NE(ConstantOf(b_.graph, stop), nullptr);
  EXPECT_EQ(ConstantOf(b_.graph, stop)->scalar<float>(), 2.5f);
  EXPECT_EQ(ConstantOf(b_.graph, b_.Placeholder("p", DType::kFloat)), nullptr);
}

TEST_F(KnownInts, HandlesShowTheirVariablesShape) {
  const Endpoint handle =
      b_.Op("VarHandleOp", "v", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({5, 6})}});
  const Endpoint passed = b_.Op("Identity", "passed", {handle}, {{"T", DType::kResource}});
  const Endpoint read = b_.Op("ReadVariableOp", "read", {passed}, {{"dtype", DType::kFloat}});
  EXPECT_EQ(b_.ShapeOf(read), "[5,6]");
  const Endpoint fed = b_.Placeholder("fed", DType::kResource);
  EXPECT_EQ(b_.ShapeOf(b_.Op("ReadVariableOp", "read_fed", {fed}, {{"dtype", DType::kFloat}})), "<unknown>");
}

TEST_F(KnownInts, ErrorsShowTheComputedValues) {
  const Endpoint dims = Ints({2, -3});
  NodeSpec spec;
  spec.name = "fill";
  spec.op = TestOps().Find("Fill");
  spec.inputs = {dims, Int(1)};
  spec.attrs = {{"T", DType::kInt32}};
  const Status status = b_.Refused(std::move(spec));
  EXPECT_TRUE(
      status.message().ends_with(" for 'fill' (op: 'Fill') with input shapes: [2], [] and with computed input "
                                 "tensors: input[0] = <2 -3>."))
      << status.message();
}

TEST_F(KnownInts, ErrorsShowPartialShapes) {
  const Endpoint x = b_.Placeholder("x", DType::kFloat, PartialShape::Of({-1, 3}));
  const Endpoint shape = ShapeOp(x);
  InputKnowledge knowledge(b_.graph, std::span(&shape, 1));
  EXPECT_EQ(knowledge.Value(0), nullptr);
  EXPECT_EQ(knowledge.ShapeValue(0).ToString(), "[?,3]");
  EXPECT_EQ(knowledge.Computed(), " and with input tensors computed as partial shapes: input[0] = [?,3]");
}

TEST_F(KnownInts, InferShapesTakesGivenValues) {
  const Endpoint dims = b_.Placeholder("dims", DType::kInt32, PartialShape::Of({2}));
  const Endpoint fill = b_.Op("Fill", "fill", {dims, Int(1)}, {{"T", DType::kInt32}});
  EXPECT_EQ(b_.ShapeOf(fill), "[?,?]");
  const Node& node = b_.graph.node(fill.node);
  const std::vector<PartialShape> shapes = {PartialShape::Of({2}), Shape()};
  const Tensor given = Tensor::Vector<int32_t>({4, 5});
  const auto inferred = InferShapes(b_.graph, node, shapes, [&](int i) { return i == 0 ? &given : nullptr; });
  ASSERT_TRUE(inferred.ok()) << inferred.status().ToString();
  EXPECT_EQ((*inferred)[0].ToString(), "[4,5]");
  EXPECT_EQ((*InferShapes(b_.graph, node, shapes))[0].ToString(), "[?,?]");
  EXPECT_EQ(InferShapes(b_.graph, node, std::span(shapes).first(1)).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace weir::graph
