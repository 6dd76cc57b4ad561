// Arithmetic, products, reductions, activations and losses: values, names and errors. Numbers are rows of the feature
// list.
#include <cmath>

#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

using Figures = std::vector<double>;

void ExpectNear(const Figures& got, const Figures& wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance) << i;
}

TEST(MathOps, F123_elementwise) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({2}), "x"), y = Constant({3.0f, -2.0f}, {}, "y");
  const std::vector<std::pair<Output, std::string>> named = {
      {Add(x, y), "Add AddV2"},         {Subtract(x, y), "Sub Sub"},  {Multiply(x, y), "Mul Mul"},
      {Negative(x), "Neg Neg"},         {Square(x), "Square Square"}, {Log(x), "Log Log"},
      {AddN({x, y}), "AddN AddN"},      {ReduceSum(x), "Sum Sum"},    {ReduceMean(x), "Mean Mean"},
      {Divide(x, y), "truediv RealDiv"}};
  for (const auto& [value, name] : named) EXPECT_EQ(std::string(value.op().name()) + " " + value.op().type(), name);
  const Output i = Placeholder(DType::kInt32), quotient = BuildOp("FloorDiv", {i, Constant(0)}).output(0);
  const Output more = Add(y, {3.0f});
  Session session(f.graph);
  const Feeds feeds = {{x, {-1.0f, 4.0f}}};
  const Figures wanted[] = {{2, 2}, {-4, 6}, {-3, -8}, {1, -4}, {1, 16}};
  for (size_t n = 0; n < 5; ++n) EXPECT_EQ(Values(session, named[n].first, feeds), wanted[n]) << named[n].second;
  EXPECT_TRUE(std::isnan(Values(session, named[5].first, feeds)[0]));
  EXPECT_EQ(Values(session, named[6].first, feeds), (Figures{2, 2}));
  EXPECT_EQ(Value(session, named[7].first, feeds), 3);
  EXPECT_EQ(Value(session, named[8].first, feeds), 1.5);
  EXPECT_TRUE(std::isinf(Value(session, Divide(ReduceMax(x), Constant(0.0f)), feeds)));
  EXPECT_EQ(Values(session, more), (Figures{6, 1}));
  EXPECT_TRUE(Fails(session.Run(quotient, {{i, 1}}), Code::kInvalidArgument, "Integer division by zero"));
}

TEST(MathOps, F124_OperatorsAreNodesOfTensorFlowsNames) {
  Fresh f;
  const Output a = Placeholder(DType::kInt32, {2}, "a"), b = Placeholder(DType::kBool, {2}, "b");
  const Output x = Placeholder(DType::kFloat, {2, 2}, "x");
  const Variable v(1, {.name = "v"});
  const std::vector<std::pair<Output, std::string>> named = {
      {a + 1, "add AddV2 int32"},
      {a - 1, "sub Sub int32"},
      {a * 2, "mul Mul int32"},
      {a / 2, "truediv RealDiv float64"},
      {FloorDiv(a, 3), "floordiv FloorDiv int32"},
      {a % 3, "mod FloorMod int32"},
      {Pow(a, 2, "pow"), "pow Pow int32"},
      {MatMul(x, x, {.name = "matmul"}), "matmul MatMul float32"},
      {-a, "Neg Neg int32"},
      {Abs(a), "Abs Abs int32"},
      {a < 3, "Less Less bool"},
      {b & b, "and LogicalAnd bool"},
      {true & b, "and_1 LogicalAnd bool"},
      {b | true, "or LogicalOr bool"},
      {~b, "LogicalNot LogicalNot bool"},
      {!b, "LogicalNot_1 LogicalNot bool"},
      {v + 1, "add_1 AddV2 int32"},
      {x[0], "strided_slice StridedSlice float32"}};
  for (const auto& [value, wanted] : named) {
    EXPECT_EQ(std::string(value.op().name()) + " " + value.op().type() + " " + NumpyName(value.dtype()), wanted);
  }
  EXPECT_EQ(named[12].first.op().inputs()[0].name(), "and_1/x:0");
  EXPECT_EQ(named[13].first.op().inputs()[1].name(), "or/y:0");
  EXPECT_TRUE(a == a) << "one value";
  EXPECT_FALSE(a == Identity(a)) << "two values, although they hold the same";
  Session session(f.graph);
  Initialize(session);
  const Feeds feeds = {{a, {-7, 7}}, {b, {true, false}}, {x, {{1.0f, 2.0f}, {3.0f, 4.0f}}}};
  const Figures wanted[] = {{-6, 8},  {-8, 6},         {-14, 14}, {-3.5, 3.5}, {-3, 2}, {2, 1},
                            {49, 49}, {7, 10, 15, 22}, {7, -7},   {7, 7},      {1, 0},  {1, 0},
                            {1, 0},   {1, 1},          {0, 1},    {0, 1},      {2},     {1, 2}};
  for (size_t i = 0; i < named.size(); ++i) EXPECT_EQ(Values(session, named[i].first, feeds), wanted[i]) << i;
  EXPECT_FALSE((a & a).exists());
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "int32"));
}

TEST(MathOps, F125_products) {
  Fresh f;
  const Output a = Constant({{1, 2, 3}, {4, 5, 6}}), b = Constant({{1, 2}, {3, 4}, {5, 6}});
  const PartialShape matrix = PartialShape::OfRank(2);
  const Output x = Placeholder(DType::kFloat, matrix), y = Placeholder(DType::kFloat, matrix);
  const Output any = Placeholder(DType::kFloat);
  const Output product = MatMul(a, b), two = MatMul(x, y), many = MatMul(any, y);
  EXPECT_EQ(product.op().type(), "MatMul");
  EXPECT_EQ(MatMul(Zeros(Shape::Of({2, 3, 4})), Zeros(Shape::Of({2, 4, 5}))).op().type(), "BatchMatMulV2");
  EXPECT_EQ(many.op().type(), "BatchMatMulV2");
  EXPECT_EQ(MatMul(y, any).op().type(), "BatchMatMulV2");
  Session session(f.graph);
  EXPECT_EQ(Values(session, product), (Figures{22, 28, 49, 64}));
  const Literal six({{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f, 6.0f}});
  EXPECT_TRUE(Fails(session.Run(two, {{x, six}, {y, six}}), Code::kInvalidArgument,
                    "Matrix size-incompatible: In[0]: [2,3], In[1]: [2,3]"));
  EXPECT_EQ(Values(session, many, {{any, {{1.0f, 0.0f}, {0.0f, 2.0f}}}, {y, six}}), (Figures{1, 2, 3, 8, 10, 12}));
  EXPECT_TRUE(
      Fails(session.Run(many, {{any, {1.0f, 2.0f}}, {y, six}}), Code::kInvalidArgument, "In[0] ndims must be >= 2: 1"));
  MatMul(a, a, {.name = "wrong"});
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "Dimensions must be equal, but are 3 and 2 for 'wrong' (op: 'MatMul') with input shapes: [2,3], "
                    "[2,3]."));
  MatMul(Constant({1.0f, 2.0f}), Constant({1.0f, 2.0f}), {.name = "flat"});
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "Shape must be rank 2 but is rank 1 for 'flat' (op: 'MatMul') with input shapes: [2], [2]."));
}

TEST(MathOps, F127_reductions) {
  Fresh f;
  const Output labels = Constant({{1.0f, 2.0f}, {3.0f, 4.0f}}), guess = Constant({{0.0f, 0.0f}, {1.0f, 1.0f}});
  const Output x = Placeholder(DType::kInt32), empty = Placeholder(DType::kFloat);
  const Output loss = ReduceMean(ReduceSum(Square(labels - guess), 1));
  const Output all = ReduceSum(labels), none = ReduceSum(labels, Axes({})), last = ReduceSum(labels, -1);
  const Output kept = ReduceSum(labels, 1, {.keepdims = true}), mean = ReduceMean(x);
  const Output of_none[] = {ReduceMean(empty), ReduceSum(empty), ReduceMax(empty), ReduceProd(empty)};
  EXPECT_EQ(kept.shape().ToTupleString(), "(2, 1)");
  Session session(f.graph);
  EXPECT_EQ(Value(session, loss), 9);
  EXPECT_EQ(Value(session, all), 10);
  EXPECT_EQ(Values(session, none), (Figures{1, 2, 3, 4}));
  EXPECT_EQ(Values(session, last), (Figures{3, 7}));
  EXPECT_EQ(Value(session, mean, {{x, {1, 2}}}), 1);
  EXPECT_EQ(Value(session, mean, {{x, {-1, -2}}}), -1);
  const Feeds nothing = {{empty, *Tensor::Make(DType::kFloat, Shape::Of({0}))}};
  EXPECT_TRUE(std::isnan(Value(session, of_none[0], nothing)));
  EXPECT_EQ(Value(session, of_none[1], nothing), 0);
  EXPECT_EQ(Value(session, of_none[2], nothing), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(Value(session, of_none[3], nothing), 1);
  ReduceSum(labels, 2);
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "Invalid reduction dimension 2 for input with 2 dimensions."));
}

TEST(MathOps, F129_comparisons_of_remainders) {
  Fresh f;
  const Variable steps(Tensor::Scalar<int64_t>(20), {.name = "steps", .trainable = false});
  const Output due = Equal(FloorMod(steps, 10), 0);
  const Output logged = Cond(due, Returns(1), Returns(0));
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Value(session, due), 1);
  EXPECT_EQ(Value(session, logged), 1);
  ASSERT_TRUE(Succeeds(session.Run(steps.AssignAdd(1))));
  EXPECT_EQ(Value(session, logged), 0);
  FloorMod(steps, Constant(10));
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "Input 'y' of 'FloorMod' Op has type int32 that does not match type int64 of argument 'x'."));
}

TEST(MathOps, F133_one_type_and_broadcasting) {
  Fresh f;
  const Output real = Constant(1.0f), whole = Constant(1), m = Constant({{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f, 6.0f}});
  EXPECT_FALSE((real + whole).exists());
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "Input 'y' of 'AddV2' Op has type int32 that does not match type float32 of argument 'x'."));
  EXPECT_EQ((real + 1).dtype(), DType::kFloat);
  EXPECT_FALSE((whole + 1.5).exists());
  EXPECT_EQ(f.graph.TakeStatus().code(), Code::kInvalidArgument);
  const Output rows = m + Constant({10.0f, 20.0f, 30.0f});
  const Output x = Placeholder(DType::kFloat), y = Placeholder(DType::kFloat), sum = x + y;
  Session session(f.graph);
  EXPECT_EQ(Values(session, rows), (Figures{11, 22, 33, 14, 25, 36}));
  EXPECT_TRUE(Fails(session.Run(sum, {{x, {{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f, 6.0f}}}, {y, {1.0f, 2.0f}}}),
                    Code::kInvalidArgument, "Incompatible shapes: [2,3] vs. [2]"));
  Fresh g;
  const Output built = Constant({{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f, 6.0f}}) + Constant({1.0f, 2.0f});
  EXPECT_FALSE(built.exists());
  EXPECT_TRUE(
      Fails(g.graph.TakeStatus(), Code::kInvalidArgument,
            "Dimensions must be equal, but are 3 and 2 for 'add' (op: 'AddV2') with input shapes: [2,3], [2]."));
}

TEST(NnOps, F156_F157_softmax_and_cross_entropy_by_hand) {
  Fresh f;
  const Output logits = Constant({{1.0f, 2.0f, 3.0f}, {1.0f, 2.0f, 3.0f}, {1.0f, 2.0f, 3.0f}});
  const Output labels = Constant({{0.0f, 0.0f, 1.0f}, {0.0f, 0.0f, 1.0f}, {0.0f, 0.0f, 1.0f}});
  const Output y = Softmax(logits), by_hand = Negative(ReduceSum(labels * Log(y)));
  const Output rows = SoftmaxCrossEntropyWithLogits(labels, logits);
  EXPECT_EQ(rows.shape().ToTupleString(), "(3,)");
  Session session(f.graph);
  const Figures wanted = {0.09003057, 0.24472848, 0.66524094};
  for (size_t row = 0; row < 3; ++row) {
    const Figures all = Values(session, y);
    ExpectNear(
        {all.begin() + static_cast<std::ptrdiff_t>(3 * row), all.begin() + static_cast<std::ptrdiff_t>(3 * row + 3)},
        wanted, 1e-7);
  }
  EXPECT_NEAR(Value(session, by_hand), 1.2228179, 2e-6);
  ExpectNear(Values(session, rows), Figures(3, 0.40760595), 1e-6);
}

TEST(NnOps, F162_bias_add) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat), b = Placeholder(DType::kFloat);
  const Output m = Constant({{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f, 6.0f}});
  const Output sum = BiasAdd(m, {10.0f, 20.0f, 30.0f}), any = BiasAdd(x, b);
  Session session(f.graph);
  EXPECT_EQ(Values(session, sum), (Figures{11, 22, 33, 14, 25, 36}));
  EXPECT_TRUE(Fails(session.Run(any, {{x, {{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f, 6.0f}}}, {b, {1.0f, 2.0f, 3.0f, 4.0f}}}),
                    Code::kInvalidArgument,
                    "Must provide as many biases as the last dimension of the input tensor: [4] vs. [2,3]"));
  BiasAdd(m, {1.0f, 2.0f, 3.0f, 4.0f});
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Dimensions must be equal, but are 3 and 4"));
  BiasAdd(Constant({1.0f, 2.0f}), {1.0f, 2.0f});
  EXPECT_EQ(f.graph.TakeStatus().code(), Code::kInvalidArgument) << "a value has rank 2 or more";
}

TEST(MathOps, F126_inverse_of_a_matrix) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, {-1, -1});
  const Output inverse = MatrixInverse(x), adjoint = MatrixInverse(x, {.adjoint = true, .name = "a"});
  const Output batch = MatrixInverse(Constant({{{2.0, 0.0}, {0.0, 4.0}}, {{0.0, 1.0}, {1.0, 0.0}}}));
  EXPECT_EQ(inverse.name(), "MatrixInverse:0");
  Session session(f.graph);
  const Feeds feeds = {{x, {{4.0f, 7.0f}, {2.0f, 6.0f}}}};
  ExpectNear(Values(session, inverse, feeds), {0.6, -0.7, -0.2, 0.4}, 1e-5);
  ExpectNear(Values(session, adjoint, feeds), {0.6, -0.2, -0.7, 0.4}, 1e-5);
  ExpectNear(Values(session, batch), {0.5, 0, 0, 0.25, 0, 1, 1, 0}, 1e-12);
  EXPECT_TRUE(Fails(session.Run(inverse, {{x, {{1.0f, 2.0f}, {2.0f, 4.0f}}}}), Code::kInvalidArgument,
                    "Input is not invertible."));
  MatrixInverse(Constant({{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f, 6.0f}}));
  EXPECT_EQ(f.graph.TakeStatus().code(), Code::kInvalidArgument) << "matrices are square";
}

}  // namespace
}  // namespace weir::test
