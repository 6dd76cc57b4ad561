#include "core/client/ops/nn_ops.h"

#include <string>

#include "core/base/errors.h"
#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/array_extra_ops.h"
#include "core/client/ops/array_ops.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"

namespace weir {
namespace {

/// Reports an error of a builder and returns the value in its place.
Output Spoil(Graph& graph, const Status& error, const Where& where) {
  (void)graph.Fail(error.Append(" (" + Format(where) + ")"));
  return Output::Absent(graph);
}

bool SameShape(const Operand& labels, const Operand& logits) { return logits.shape().CompatibleWith(labels.shape()); }

/// All axes but the last as one.
Output AsMatrix(const Operand& x, const Output& shape, const Where& where) {
  const Output classes = StridedSlice(shape, {-1}, {0}, {1}, {.end_mask = 1, .name = "strided_slice"}, where);
  return Reshape(x, Concat({{-1}, classes}, 0, "concat", where), "Reshape", where);
}

/// By row of the last axis, in a scope of its name.
Output CrossEntropy(const Operand& labels, const Operand& logits, const std::string& path, const Where& where) {
  const PartialShape shape = logits.shape();
  if (!shape.has_rank() || shape.rank() == 2) {
    return BuildOp("SoftmaxCrossEntropyWithLogits", {logits, labels}, {}, path, where).output(0);
  }
  const Output extents = ShapeOf(logits, DType::kInt32, "Shape", where);
  const Output scores = AsMatrix(logits, extents, where), targets = AsMatrix(labels, extents, where);
  const Output loss = BuildOp("SoftmaxCrossEntropyWithLogits", {scores, targets}, {}, path, where).output(0);
  const Output outer = StridedSlice(extents, {0}, {-1}, {1}, {.begin_mask = 1, .name = "strided_slice"}, where);
  return Reshape(loss, outer, "Reshape", where);
}

}  // namespace

Output BiasAdd(const Operand& value, const Operand& bias, std::string_view name, Where where) {
  return BuildOp("BiasAdd", {value, bias}, {}, name, where).output(0);
}

Output SoftmaxCrossEntropyWithLogits(const Operand& labels, const Operand& logits, std::string_view name, Where where) {
  const PartialShape shape = logits.shape();
  if (!shape.has_rank() || shape.rank() == 2) return CrossEntropy(labels, logits, std::string(name), where);
  Graph& graph = GraphOf({labels, logits});
  const AsDefault in(graph);
  const NameScope scope(name.empty() ? "softmax_cross_entropy_with_logits" : name, graph);
  return CrossEntropy(labels, logits, scope.path(), where);
}

Output SoftmaxCrossEntropyWithLogitsV1(const Operand& labels, const Operand& logits, std::string_view name,
                                       Where where) {
  Graph& graph = GraphOf({labels, logits});
  const AsDefault in(graph);
  const NameScope scope(name.empty() ? "softmax_cross_entropy_with_logits_sg" : name, graph);
  return CrossEntropy(StopGradient(labels, "labels_stop_gradient", where), logits, scope.path(), where);
}

Output SparseSoftmaxCrossEntropyWithLogits(const Operand& labels, const Operand& logits, std::string_view name,
                                           Where where) {
  Graph& graph = logits.graph() != nullptr ? *logits.graph() : Graph::Default();
  const NameScope scope(name, graph);
  const Operand rows = labels.ReadNow(), scores = logits.ReadNow();
  if (!rows.is_literal()) ShapeOf(rows, DType::kInt32, "Shape", where);  // TensorFlow's graphs have it too
  return BuildOp("SparseSoftmaxCrossEntropyWithLogits", {scores, rows}, {}, {}, where).output(0);
}

Output LeakyRelu(const Operand& features, double alpha, std::string_view name, Where where) {
  return BuildOp("LeakyRelu", {features}, {{"alpha", static_cast<float>(alpha)}}, name, where).output(0);
}

Output CRelu(const Operand& features, int axis, std::string_view name, Where where) {
  Graph& graph = GraphOf(features);
  const NameScope scope(name.empty() ? "CRelu" : name, graph);
  const Output x = features.In(graph);
  const Output both = BuildOp("ConcatV2", {x, Negative(x, {}, where), axis}, {}, scope.path(), where).output(0);
  return Relu(both, {}, where);
}

Output XwPlusB(const Operand& x, const Operand& weights, const Operand& biases, std::string_view name, Where where) {
  const NameScope scope(name.empty() ? "xw_plus_b" : name, GraphOf({x, weights, biases}));
  return BiasAdd(MatMul(x, weights, {}, where), biases, scope.path(), where);
}

Output ReluLayer(const Operand& x, const Operand& weights, const Operand& biases, std::string_view name, Where where) {
  const NameScope scope(name.empty() ? "relu_layer" : name, GraphOf({x, weights, biases}));
  return Relu(BiasAdd(MatMul(x, weights, {}, where), biases, "BiasAdd", where), scope.path(), where);
}

Output SigmoidCrossEntropyWithLogits(const Operand& labels, const Operand& logits, std::string_view name, Where where) {
  Graph& graph = GraphOf({labels, logits});
  if (!SameShape(labels, logits)) {
    return Spoil(graph,
                 InvalidArgument("`logits` and `labels` must have the same shape, received ({} vs {}).",
                                 logits.shape().ToTupleString(), labels.shape().ToTupleString()),
                 where);
  }
  const AsDefault in(graph);
  const Origin origin(where, graph);
  const NameScope scope(name.empty() ? "logistic_loss" : name, graph);
  const Output x = logits.In(graph, DType::kInvalid, "logits");
  const Output z = labels.In(graph, BaseType(x.dtype()), "labels");
  const Output zeros = ZerosLike(x);
  const Output positive = GreaterEqual(x, zeros);
  const Output above = Select(positive, x, zeros);
  const Output below = Select(positive, Negative(x), x);
  const Output linear = Subtract(above, Multiply(x, z, "mul"), "sub");
  return Add(linear, Log1p(Exp(below)), scope.path());
}

Output WeightedCrossEntropyWithLogits(const Operand& labels, const Operand& logits, const Operand& pos_weight,
                                      std::string_view name, Where where) {
  Graph& graph = GraphOf({labels, logits, pos_weight});
  if (!SameShape(labels, logits)) {
    return Spoil(graph,
                 InvalidArgument("`logits` and `targets` must have the same shape, received ({} vs {}).",
                                 logits.shape().ToTupleString(), labels.shape().ToTupleString()),
                 where);
  }
  const AsDefault in(graph);
  const Origin origin(where, graph);
  const NameScope scope(name.empty() ? "logistic_loss" : name, graph);
  const Output x = logits.In(graph, DType::kInvalid, "logits");
  const Output z = labels.In(graph, BaseType(x.dtype()), "labels");
  const Operand more = pos_weight.is_literal() ? pos_weight.In(graph, BaseType(x.dtype()), "pos_weight") : pos_weight;
  const Output extra = (more - 1.0) * z;
  const Output weight = 1.0 + extra;
  const Output linear = (1.0 - z) * x;
  const Output soft = Log1p(Exp(Negative(Abs(x))));
  const Output log = soft + Relu(Negative(x));
  return Add(linear, Multiply(weight, log, "mul"), scope.path());
}

Output Conv2D(const Operand& input, const Operand& filter, const std::vector<int64_t>& strides,
              std::string_view padding, const ConvolutionOptions& options, Where where) {
  return BuildOp("Conv2D", {input, filter},
                 {{"strides", strides},
                  {"padding", std::string(padding)},
                  {"explicit_paddings", options.explicit_paddings},
                  {"data_format", std::string(options.data_format)},
                  {"dilations", options.dilations}},
                 options.name, where)
      .output(0);
}

Output Conv2DTranspose(const Operand& value, const Operand& filter, const Operand& output_shape,
                       const std::vector<int64_t>& strides, std::string_view padding, const ConvolutionOptions& options,
                       Where where) {
  return BuildOp("Conv2DBackpropInput", {output_shape, filter, value},
                 {{"strides", strides},
                  {"padding", std::string(padding)},
                  {"explicit_paddings", options.explicit_paddings},
                  {"data_format", std::string(options.data_format)},
                  {"dilations", options.dilations}},
                 options.name.empty() ? "conv2d_transpose" : options.name, where)
      .output(0);
}

Output DepthwiseConv2D(const Operand& input, const Operand& filter, const std::vector<int64_t>& strides,
                       std::string_view padding, const ConvolutionOptions& options, Where where) {
  return BuildOp("DepthwiseConv2dNative", {input, filter},
                 {{"strides", strides},
                  {"padding", std::string(padding)},
                  {"explicit_paddings", options.explicit_paddings},
                  {"data_format", std::string(options.data_format)},
                  {"dilations", options.dilations}},
                 options.name.empty() ? "depthwise" : options.name, where)
      .output(0);
}

Output SeparableConv2D(const Operand& input, const Operand& depthwise_filter, const Operand& pointwise_filter,
                       const std::vector<int64_t>& strides, std::string_view padding, const ConvolutionOptions& options,
                       Where where) {
  const std::string_view name = options.name.empty() ? "separable_conv2d" : options.name;
  const NameScope scope(name, GraphOf({input, depthwise_filter, pointwise_filter}));
  const std::string path = scope.path();
  ConvolutionOptions first = options, second;
  first.name = {};
  const Output channels = DepthwiseConv2D(input, depthwise_filter, strides, padding, first, where);
  second.data_format = options.data_format;
  second.name = path;
  return Conv2D(channels, pointwise_filter, {1, 1, 1, 1}, "VALID", second, where);
}

namespace {

Output Pool(const char* op, const Operand& value, const std::vector<int64_t>& ksize,
            const std::vector<int64_t>& strides, std::string_view padding, const PoolOptions& options,
            const Where& where) {
  return BuildOp(op, {value},
                 {{"ksize", ksize},
                  {"strides", strides},
                  {"padding", std::string(padding)},
                  {"data_format", std::string(options.data_format)}},
                 options.name, where)
      .output(0);
}

}  // namespace

Output MaxPool(const Operand& value, const std::vector<int64_t>& ksize, const std::vector<int64_t>& strides,
               std::string_view padding, const PoolOptions& options, Where where) {
  return Pool("MaxPool", value, ksize, strides, padding, options, where);
}

Output AvgPool(const Operand& value, const std::vector<int64_t>& ksize, const std::vector<int64_t>& strides,
               std::string_view padding, const PoolOptions& options, Where where) {
  return Pool("AvgPool", value, ksize, strides, padding, options, where);
}

TopKValues TopK(const Operand& input, const Operand& k, bool sorted, std::string_view name, Where where) {
  const List<Output> outputs = OutputsOr(BuildOp("TopKV2", {input, k}, {{"sorted", sorted}}, name, where), 2);
  return {outputs[0], outputs[1]};
}

Output InTopK(const Operand& predictions, const Operand& targets, const Operand& k, std::string_view name,
              Where where) {
  const NameScope scope(name.empty() ? "in_top_k" : name, GraphOf({predictions, targets, k}));
  return BuildOp("InTopKV2", {predictions, targets, k}, {}, {}, where).output(0);
}

Output SparseToDense(const Operand& sparse_indices, const Operand& output_shape, const Operand& sparse_values,
                     const Operand& default_value, bool validate_indices, std::string_view name, Where where) {
  return BuildOp("SparseToDense", {sparse_indices, output_shape, sparse_values, default_value},
                 {{"validate_indices", validate_indices}}, name, where)
      .output(0);
}

}  // namespace weir
