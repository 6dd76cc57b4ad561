// Builders for networks. Values, names and texts are TensorFlow's.
#include "core/client/ops/nn_ops.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/client/fresh.h"

namespace weir {
namespace {

using namespace test;

/// The values of an output of a graph without variables.
std::vector<double> ValuesOf(const Output& value, const Feeds& feeds = {}) {
  EXPECT_TRUE(value.exists()) << Graph::Default().status();
  Session session(*value.graph());
  return Values(session, value, feeds);
}

void ExpectClose(const std::vector<double>& got, const std::vector<double>& wanted, double tolerance = 1e-6) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance) << "element " << i;
}

TEST(NnOps, F160_activations) {
  Fresh f;
  ExpectClose(ValuesOf(Elu(Constant(-1.0))), {-0.6321206});
  ExpectClose(ValuesOf(Softplus(Constant(1.0))), {1.3132617});
  ExpectClose(ValuesOf(Softsign(Constant(1.0))), {0.5});
  ExpectClose(ValuesOf(Relu6(Constant({8.0, -1.0, 3.0}))), {6, 0, 3});
  ExpectClose(ValuesOf(Sigmoid(Constant(1.0))), {0.7310586});
  ExpectClose(ValuesOf(Tanh(Constant(1.0))), {0.7615942});
  ExpectClose(ValuesOf(Relu(Constant({-1.0, 2.0}))), {0, 2});
  ExpectClose(ValuesOf(LeakyRelu(Constant({-1.0, 2.0}))), {-0.2, 2});
  ExpectClose(ValuesOf(Selu(Constant({-1.0, 1.0}))), {-1.1113307, 1.050701});
  EXPECT_EQ(Elu(Constant(1.0)).op().name(), "Elu_1");
}

TEST(NnOps, F161_crelu_doubles_the_last_axis) {
  Fresh f;
  const Output both = CRelu(Constant({-1.0, 2.0}));
  EXPECT_EQ(both.op().name(), "CRelu/Relu");
  ExpectClose(ValuesOf(both), {0, 2, 1, 0});
  const Output rows = CRelu(Constant({{-1.0, 2.0}}), 0);
  EXPECT_EQ(rows.shape().ToTupleString(), "(2, 2)");
}

TEST(NnOps, F163_dense_layers_as_one_function) {
  Fresh f;
  const Literal x = {{1.0, -1.0}}, w = {{1.0, 2.0}, {3.0, 4.0}}, b = {1.0, 5.0};
  const Output relu = ReluLayer(x, w, b), plain = XwPlusB(x, w, b);
  EXPECT_EQ(relu.op().name(), "relu_layer");
  EXPECT_EQ(plain.op().name(), "xw_plus_b");
  ExpectClose(ValuesOf(relu), {0, 3});
  ExpectClose(ValuesOf(plain), {-1, 3});
}

TEST(NnOps, F158_softmax_cross_entropy_of_version_1_keeps_labels_fixed) {
  Fresh f;
  const Output labels = Constant({{0.0, 0.0, 1.0}}), logits = Constant({{1.0, 2.0, 3.0}});
  const Output loss = SoftmaxCrossEntropyWithLogitsV1(labels, logits);
  ExpectClose(ValuesOf(loss), {0.40760595});
  EXPECT_EQ(loss.op().name(), "softmax_cross_entropy_with_logits_sg");
  EXPECT_FALSE(GradientOf(loss, labels).exists());
  EXPECT_TRUE(GradientOf(loss, logits).exists());
  EXPECT_TRUE(GradientOf(SoftmaxCrossEntropyWithLogits(labels, logits), labels).exists());
  const Output three = SoftmaxCrossEntropyWithLogitsV1({{0.0, 0.0, 1.0}, {0.0, 0.0, 1.0}, {0.0, 0.0, 1.0}},
                                                       {{1.0, 2.0, 3.0}, {1.0, 2.0, 3.0}, {1.0, 2.0, 3.0}});
  EXPECT_EQ(three.shape().ToTupleString(), "(3,)");
  ExpectClose(ValuesOf(ReduceSum(three)), {1.2228179});
}

TEST(NnOps, F158_cross_entropy_of_higher_ranks_is_by_the_last_axis) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, {-1, 2, 3}, "x");
  const Output loss = SoftmaxCrossEntropyWithLogits(ZerosLike(x) + Constant({0.0, 0.0, 1.0}), x);
  Session session(f.graph);
  const Result<Fetched> fetched = session.Run(loss, {{x, {{{1.0, 2.0, 3.0}, {3.0, 2.0, 1.0}}}}});
  ASSERT_TRUE(Succeeds(fetched));
  EXPECT_EQ(fetched->tensor().shape().ToString(), "[1,2]");
  EXPECT_NEAR(ElementAsDouble(fetched->tensor(), 0), 0.4076059, 1e-6);
  EXPECT_NEAR(ElementAsDouble(fetched->tensor(), 1), 2.4076059, 1e-6);
}

TEST(NnOps, F159_sigmoid_cross_entropy) {
  Fresh f;
  const Output loss = SigmoidCrossEntropyWithLogits({1.0, 0.0, 0.0}, Constant({1.0, -2.0, 3.0}));
  EXPECT_EQ(loss.op().name(), "logistic_loss");
  ExpectClose(ValuesOf(loss), {0.3132617, 0.1269280, 3.0485874});
  ExpectClose(ValuesOf(WeightedCrossEntropyWithLogits({1.0, 0.0}, Constant({1.0, -2.0}), 2.0)), {0.6265234, 0.1269280});
  const Output other = Placeholder(DType::kFloat, {3}, "l");
  EXPECT_FALSE(SigmoidCrossEntropyWithLogits(other, Placeholder(DType::kFloat, {2}, "x")).exists());
  EXPECT_TRUE(Fails(f.graph.status(), Code::kInvalidArgument, "must have the same shape, received ((2,) vs (3,))"));
}

TEST(NnOps, F164_dropout_scales_what_it_keeps) {
  Fresh f;
  const Output ones = Ones(Shape::Of({4, 3}));
  const Output x = Identity(ones, "x");
  EXPECT_EQ(Dropout(x, 1.0), x);
  const Output dropped = Dropout(x, 0.5, {.seed = 3});
  EXPECT_EQ(dropped.op().name(), "dropout/SelectV2");
  const std::vector<double> values = ValuesOf(dropped);
  for (const double value : values) EXPECT_TRUE(value == 0 || value == 2) << value;
  ExpectClose(values, {0, 0, 2, 0, 2, 0, 0, 0, 0, 2, 0, 0});
  ExpectClose(ValuesOf(dropped), values);  // each session begins anew
  for (const double value : ValuesOf(Dropout(x, 0.25, {.noise_shape = Operand({4, 1}), .seed = 1}))) {
    EXPECT_TRUE(value == 0 || value == 4) << value;
  }
  const std::vector<double> rows = ValuesOf(Dropout(x, 0.5, {.noise_shape = Operand({4, 1}), .seed = 5}));
  for (size_t row = 0; row < 4; ++row) {
    EXPECT_EQ(rows[3 * row], rows[3 * row + 1]);
    EXPECT_EQ(rows[3 * row], rows[3 * row + 2]);
  }
}

TEST(NnOps, F164_the_probability_can_be_fed) {
  Fresh f;
  const Output keep = Placeholder(DType::kFloat, {}, "keep");
  const Output dropped = Dropout(Identity(Ones(Shape::Of({100})), "x"), keep, {.seed = 1});
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  ExpectClose(ValuesOf(dropped, {{keep, 1.0}}), std::vector<double>(100, 1));
  int kept = 0;
  for (const double value : ValuesOf(dropped, {{keep, 0.25}})) {
    EXPECT_TRUE(value == 0 || value == 4) << value;
    kept += value != 0 ? 1 : 0;
  }
  EXPECT_GT(kept, 5);
  EXPECT_LT(kept, 60);
}

TEST(NnOps, F164_probabilities_out_of_range_and_integers_are_errors) {
  for (const double keep : {0.0, -1.0, 1.5}) {
    Fresh f;
    EXPECT_FALSE(Dropout(Constant({1.0}), keep).exists());
    EXPECT_TRUE(Fails(f.graph.status(), Code::kInvalidArgument,
                      "keep_prob must be a scalar tensor or a float in the range (0, 1]"));
  }
  Fresh f;
  EXPECT_FALSE(Dropout(Constant({1}), 0.5).exists());
  EXPECT_TRUE(
      Fails(f.graph.status(), Code::kInvalidArgument,
            "`x.dtype` must be a floating point tensor as `x` will be scaled. Received: x_dtype=<dtype: 'int32'>"));
}

TEST(NnOps, F166_convolution) {
  Fresh f;
  const Output filter = Placeholder(DType::kFloat, {5, 5, 32, 32}, "filter");
  const auto extents = [&](int64_t side, int64_t stride, std::string_view padding) {
    return Conv2D(Placeholder(DType::kFloat, {-1, side, side, 32}), filter, {1, stride, stride, 1}, padding)
        .shape()
        .ToTupleString();
  };
  EXPECT_EQ(extents(28, 1, "SAME"), "(?, 28, 28, 32)");
  EXPECT_EQ(extents(28, 1, "VALID"), "(?, 24, 24, 32)");
  EXPECT_EQ(extents(28, 2, "SAME"), "(?, 14, 14, 32)");
  EXPECT_EQ(extents(28, 2, "VALID"), "(?, 12, 12, 32)");
  const std::vector<std::string> names = NodeNames(f.graph);
  EXPECT_NE(std::ranges::find(names, "Conv2D"), names.end());
}

TEST(NnOps, F166_convolutions_that_fit_no_shape_are_errors) {
  const auto error = [](std::vector<int64_t> input, std::string_view padding) {
    Fresh f;
    const Output x = Placeholder(DType::kFloat, PartialShape::Of(input), "x");
    Conv2D(x, Placeholder(DType::kFloat, {5, 5, 32, 32}, "f"), {1, 1, 1, 1}, padding);
    return f.graph.status();
  };
  EXPECT_TRUE(Fails(error({1, 8, 8, 3}, "SAME"), Code::kInvalidArgument,
                    "Depth of input (3) is not a multiple of input depth of filter (32)"));
  EXPECT_TRUE(Fails(error({1, 3, 3, 32}, "VALID"), Code::kInvalidArgument,
                    "Negative dimension size caused by subtracting 5 from 3"));
}

TEST(NnOps, F166_convolutions_have_values_and_gradients) {
  Fresh f;
  const Output x = Reshape(Range(0.0, 9.0, 1.0), {1, 3, 3, 1});
  const Output filter = Identity(Constant({1.0, 0.0, 0.0, -1.0}, Shape::Of({2, 2, 1, 1})));
  const Output y = Conv2D(x, filter, {1, 1, 1, 1}, "VALID");
  ExpectClose(ValuesOf(y), {-4, -4, -4, -4});
  ExpectClose(ValuesOf(GradientOf(y, filter)), {8, 12, 20, 24});
  ExpectClose(ValuesOf(Conv2DTranspose(y, filter, {1, 3, 3, 1}, {1, 1, 1, 1}, "VALID")),
              {-4, -4, 0, -4, 0, 4, 0, 4, 4});
  ExpectClose(ValuesOf(DepthwiseConv2D(x, Constant({1.0, 2.0}, Shape::Of({1, 1, 1, 2})), {1, 2, 2, 1}, "VALID")),
              {0, 0, 2, 4, 6, 12, 8, 16});
  ExpectClose(ValuesOf(SeparableConv2D(x, Constant({1.0, 2.0}, Shape::Of({1, 1, 1, 2})),
                                       Constant({1.0, -1.0}, Shape::Of({1, 1, 2, 1})), {1, 1, 1, 1}, "SAME")),
              {0, -1, -2, -3, -4, -5, -6, -7, -8});
}

TEST(NnOps, F167_pooling) {
  Fresh f;
  const Output x = Reshape(Range(0.0, 16.0, 1.0), {1, 4, 4, 1});
  const Output most = MaxPool(x, {1, 2, 2, 1}, {1, 2, 2, 1}, "VALID");
  const Output mean = AvgPool(x, {1, 2, 2, 1}, {1, 2, 2, 1}, "VALID");
  EXPECT_EQ(most.op().name(), "MaxPool");
  EXPECT_EQ(mean.op().name(), "AvgPool");
  ExpectClose(ValuesOf(most), {5, 7, 13, 15});
  ExpectClose(ValuesOf(mean), {2.5, 4.5, 10.5, 12.5});
  const Output nine = Reshape(Range(0.0, 9.0, 1.0), {1, 3, 3, 1});
  ExpectClose(ValuesOf(AvgPool(nine, {1, 2, 2, 1}, {1, 2, 2, 1}, "SAME")), {2, 3.5, 6.5, 8});
}

TEST(NnOps, F168_local_response_normalisation) {
  Fresh f;
  const Output x = Reshape(Constant({1.0, 2.0, 3.0, 4.0, 5.0}), {1, 1, 1, 5});
  const Output y = LocalResponseNormalization(x, {.depth_radius = 2, .bias = 2, .alpha = 1e-4, .beta = 0.75});
  ExpectClose(ValuesOf(y), {.594292, 1.187871, 1.780140, 2.373609, 2.967456}, 1e-5);
  EXPECT_EQ(y.shape().ToTupleString(), "(1, 1, 1, 5)");
  ExpectClose(ValuesOf(LocalResponseNormalization(x)), ValuesOf(x / Sqrt(1.0 + ReduceSum(x * x))), 1e-6);
  EXPECT_FALSE(LocalResponseNormalization(Constant({1.0})).exists());
  EXPECT_TRUE(Fails(f.graph.status(), Code::kInvalidArgument, "must be rank 4"));
}

TEST(NnOps, F169_batch_normalisation_by_formula) {
  Fresh f;
  const Output x = Constant({1.0, 3.0});
  const Output y = BatchNormalization(x, 2.0, 1.0, 0.5, 2.0, 0.0);
  EXPECT_EQ(y.op().name(), "batchnorm/add_1");
  ExpectClose(ValuesOf(y), {-1.5, 2.5});
  ExpectClose(ValuesOf(BatchNormalization(x, 2.0, 1.0, Output(), 2.0, 0.0)), {-2, 2});
  ExpectClose(ValuesOf(BatchNormalization(x, 2.0, 1.0, 0.5, Output(), 0.0)), {-0.5, 1.5});
  const MeanAndVariance moments = Moments(Constant({{1.0, 2.0}, {3.0, 6.0}}), {0});
  ExpectClose(ValuesOf(moments.mean), {2, 4});
  ExpectClose(ValuesOf(moments.variance), {1, 4});
  EXPECT_EQ(Moments(x, {0}, true).mean.shape().ToTupleString(), "(1,)");
}

TEST(NnOps, F169_batch_normalisation_in_one_op) {
  Fresh f;
  const Output x = Reshape(Constant({1.0, 2.0, 3.0, 4.0}), {1, 2, 2, 1});
  const FusedBatchNormValues norm = FusedBatchNorm(x, {1.0}, {0.0});
  ExpectClose(ValuesOf(norm.batch_mean), {2.5});
  ExpectClose(ValuesOf(norm.batch_variance), {5.0 / 3});
  ExpectClose(ValuesOf(norm.y), {-1.3411044, -0.4470348, 0.4470348, 1.3411044}, 1e-5);
  FusedBatchNormOptions fixed;
  fixed.mean = Operand({2.0});
  fixed.variance = Operand({4.0});
  fixed.is_training = false;
  fixed.epsilon = 0;
  ExpectClose(ValuesOf(FusedBatchNorm(x, {1.0}, {0.0}, fixed).y), {-0.5, 0, 0.5, 1});
}

TEST(NnOps, TopKAndNormalisedRows) {
  Fresh f;
  const TopKValues top = TopK(Constant({{1.0, 3.0, 2.0}}), 2);
  ExpectClose(ValuesOf(top.values), {3, 2});
  ExpectClose(ValuesOf(top.indices), {1, 2});
  ExpectClose(ValuesOf(Cast(InTopK({{1.0, 3.0, 2.0}}, {2}, 2), DType::kFloat)), {1});
  ExpectClose(ValuesOf(L2Normalize(Constant({{3.0, 4.0}}), 1)), {0.6, 0.8});
}

TEST(NnOps, F148_sparse_indices_become_dense) {
  Fresh f;
  ExpectClose(ValuesOf(SparseToDense(Constant(2), {4}, 7.0, 0.0)), {0, 0, 7, 0});
  ExpectClose(ValuesOf(SparseToDense(Constant({1, 3}), {4}, {5.0, 6.0}, 9.0)), {9, 5, 9, 6});
  const Output places = Constant({{0, 0}, {1, 2}, {2, 3}, {3, 6}, {4, 7}, {5, 9}});
  std::vector<double> wanted(60, 0);
  for (const int at : {0, 12, 23, 36, 47, 59}) wanted[static_cast<size_t>(at)] = 1;
  ExpectClose(ValuesOf(SparseToDense(places, {6, 10}, 1.0, 0.0)), wanted);
}

TEST(NnOps, F148_sparse_indices_that_do_not_fit_are_errors) {
  const auto error = [](const Operand& indices, const Operand& values, bool validate = true) {
    Fresh f;
    const Output at = Placeholder(DType::kInt32, PartialShape(), "at");
    Session session(f.graph);
    const Output dense = SparseToDense(at, {4}, values, 0.0, validate);
    return session.Run(dense, {{at, indices.literal()}}).status();
  };
  EXPECT_TRUE(Fails(error({1, 3}, {1.0, 2.0, 3.0}), Code::kInvalidArgument,
                    "sparse_values has incorrect shape [3], should be [] or [2]"));
  EXPECT_TRUE(Fails(error({3, 1}, 1.0), Code::kInvalidArgument,
                    "indices[1] = [1] is out of order. Many sparse ops require sorted indices."));
  EXPECT_TRUE(Fails(error({1, 1}, 1.0), Code::kInvalidArgument, "indices[1] = [1] is repeated"));
  EXPECT_TRUE(
      Fails(error({1, 5}, 1.0), Code::kInvalidArgument, "indices[1] = [5] is out of bounds: need 0 <= index < [4]"));
  EXPECT_TRUE(Succeeds(error({3, 1}, 1.0, false)));
}

}  // namespace
}  // namespace weir
