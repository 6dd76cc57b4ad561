// Builders for networks beyond those of ops.h, under the names of TensorFlow's tf.nn: activations, losses, dropout,
// convolution, pooling, normalisation.
#ifndef WEIR_CORE_CLIENT_OPS_NN_OPS_H_
#define WEIR_CORE_CLIENT_OPS_NN_OPS_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/client/ops/ops.h"

namespace weir {

/// x where x > 0, else exp(x) - 1; Selu scales it. Relu6 is min(max(x, 0), 6).
inline constexpr UnaryOp Elu{"Elu"}, Selu{"Selu"}, Relu6{"Relu6"}, Softplus{"Softplus"}, Softsign{"Softsign"};
/// x where x > 0, else alpha * x.
Output LeakyRelu(const Operand& features, double alpha = 0.2, std::string_view name = "LeakyRelu",
                 Where where = Where::current());
/// Relu of x and of -x, joined along `axis`, whose extent doubles.
Output CRelu(const Operand& features, int axis = -1, std::string_view name = "CRelu", Where where = Where::current());

/// x: [batch, in], weights: [in, units], biases: [units] -> x · weights + biases, and its Relu.
Output XwPlusB(const Operand& x, const Operand& weights, const Operand& biases, std::string_view name = "xw_plus_b",
               Where where = Where::current());
Output ReluLayer(const Operand& x, const Operand& weights, const Operand& biases, std::string_view name = "relu_layer",
                 Where where = Where::current());

/// Half the sum of squares: a scalar.
inline constexpr UnaryOp L2Loss{"L2Loss"};
/// SoftmaxCrossEntropyWithLogits as in TensorFlow 1.x: no gradient flows to the labels.
Output SoftmaxCrossEntropyWithLogitsV1(const Operand& labels, const Operand& logits,
                                       std::string_view name = "softmax_cross_entropy_with_logits_sg",
                                       Where where = Where::current());
/// max(logits, 0) - logits * labels + log(1 + exp(-|logits|)), by element; labels in [0, 1], of the logits' shape.
Output SigmoidCrossEntropyWithLogits(const Operand& labels, const Operand& logits,
                                     std::string_view name = "logistic_loss", Where where = Where::current());
/// The same with positive labels weighted by `pos_weight`.
Output WeightedCrossEntropyWithLogits(const Operand& labels, const Operand& logits, const Operand& pos_weight,
                                      std::string_view name = "logistic_loss", Where where = Where::current());

struct DropoutOptions {
  std::optional<Operand> noise_shape = {};  // broadcasts to the shape of x: an extent of 1 drops whole slices
  int64_t seed = -1;
  std::string_view name = "dropout";
};
/// Each element is kept with probability keep_prob, and divided by it, or becomes 0. keep_prob: a number in (0, 1], of
/// which 1 returns `x` itself, or a scalar of the type of `x`.
Output Dropout(const Operand& x, const Operand& keep_prob, const DropoutOptions& options = {},
               Where where = Where::current());

struct ConvolutionOptions {
  std::string_view data_format = "NHWC";          // or NCHW
  std::vector<int64_t> dilations = {1, 1, 1, 1};  // by axis of the input
  std::vector<int64_t> explicit_paddings = {};    // before and after each axis, for padding "EXPLICIT"
  std::string_view name = {};
};
/// input: [batch, height, width, in], filter: [height, width, in, out] -> [batch, …, out]. `padding`: "SAME", "VALID"
/// or "EXPLICIT". `strides`: by axis of the input.
Output Conv2D(const Operand& input, const Operand& filter, const std::vector<int64_t>& strides,
              std::string_view padding, const ConvolutionOptions& options = {}, Where where = Where::current());
/// The gradient of Conv2D by its input, as an op of its own. value: [batch, height, width, out], filter: [height,
/// width, in, out], output_shape: int32 [4] -> that shape.
Output Conv2DTranspose(const Operand& value, const Operand& filter, const Operand& output_shape,
                       const std::vector<int64_t>& strides, std::string_view padding = "SAME",
                       const ConvolutionOptions& options = {}, Where where = Where::current());
/// Each channel by itself. filter: [height, width, in, multiplier] -> [batch, …, in * multiplier].
Output DepthwiseConv2D(const Operand& input, const Operand& filter, const std::vector<int64_t>& strides,
                       std::string_view padding, const ConvolutionOptions& options = {},
                       Where where = Where::current());
/// A depthwise convolution, then one of 1 x 1. pointwise_filter: [1, 1, in * multiplier, out].
Output SeparableConv2D(const Operand& input, const Operand& depthwise_filter, const Operand& pointwise_filter,
                       const std::vector<int64_t>& strides, std::string_view padding,
                       const ConvolutionOptions& options = {}, Where where = Where::current());

struct PoolOptions {
  std::string_view data_format = "NHWC";
  std::string_view name = {};
};
/// The largest element (the mean) of each window of extents `ksize`, by axis of the input. Padding counts for neither.
Output MaxPool(const Operand& value, const std::vector<int64_t>& ksize, const std::vector<int64_t>& strides,
               std::string_view padding, const PoolOptions& options = {}, Where where = Where::current());
Output AvgPool(const Operand& value, const std::vector<int64_t>& ksize, const std::vector<int64_t>& strides,
               std::string_view padding, const PoolOptions& options = {}, Where where = Where::current());

struct LrnOptions {
  int64_t depth_radius = 5;
  double bias = 1;
  double alpha = 1;
  double beta = 0.5;
  std::string_view name = "LRN";
};
/// input / (bias + alpha * (sum of squares over 2 * depth_radius + 1 channels)) ^ beta. input: [batch, height, width,
/// channels]. Source: Krizhevsky et al. 2012, section 3.3, whose alpha is not divided by the number of channels either.
Output LocalResponseNormalization(const Operand& input, const LrnOptions& options = {}, Where where = Where::current());

struct MeanAndVariance {
  Output mean;
  Output variance;
};
/// Over `axes`, which stay with extent 1 if keepdims.
MeanAndVariance Moments(const Operand& x, const std::vector<int>& axes, bool keepdims = false,
                        std::string_view name = "moments", Where where = Where::current());
/// (x - mean) / sqrt(variance + variance_epsilon) * scale + offset; without `offset` or `scale` if they do not exist.
Output BatchNormalization(const Operand& x, const Operand& mean, const Operand& variance, const Operand& offset,
                          const Operand& scale, const Operand& variance_epsilon, std::string_view name = "batchnorm",
                          Where where = Where::current());

struct FusedBatchNormOptions {
  Operand mean = Output();      // of the population; needed unless training
  Operand variance = Output();  // likewise
  double epsilon = 0.001;
  std::string_view data_format = "NHWC";
  bool is_training = true;
  std::string_view name = "FusedBatchNorm";
};
struct FusedBatchNormValues {
  Output y;
  Output batch_mean;
  Output batch_variance;  // of training: with the divisor n - 1
};
/// Over all axes of `x` but its channels; scale, offset: float [channels].
FusedBatchNormValues FusedBatchNorm(const Operand& x, const Operand& scale, const Operand& offset,
                                    const FusedBatchNormOptions& options = {}, Where where = Where::current());

/// x * rsqrt(max(sum of squares over `axes`, epsilon)).
Output L2Normalize(const Operand& x, const Axes& axes, const Operand& epsilon = 1e-12,
                   std::string_view name = "l2_normalize", Where where = Where::current());

struct TopKValues {
  Output values;   // [.., k], largest first
  Output indices;  // int32, the first of equal ones first
};
/// Of the last axis.
TopKValues TopK(const Operand& input, const Operand& k = 1, bool sorted = true, std::string_view name = "TopKV2",
                Where where = Where::current());
/// Whether the score of each target is among the k largest. predictions: float [batch, classes], targets: [batch].
Output InTopK(const Operand& predictions, const Operand& targets, const Operand& k, std::string_view name = "in_top_k",
              Where where = Where::current());

/// A dense value of extents `output_shape` that is `default_value` but for `sparse_values` (one for all, or one each)
/// at `sparse_indices`: a scalar, [n], or [n, rank]; sorted and without repetition if validate_indices.
Output SparseToDense(const Operand& sparse_indices, const Operand& output_shape, const Operand& sparse_values,
                     const Operand& default_value = 0, bool validate_indices = true,
                     std::string_view name = "SparseToDense", Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_OPS_NN_OPS_H_
