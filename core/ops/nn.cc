// Bias, softmax, cross-entropy and squared losses, the largest classes.
#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::BroadcastShapes;
using op::Category;
using op::Grad;
using op::GradContext;
using op::MergeDim;
using op::One;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;
using op::Value;

/// True if the channels of input 0 are axis 1 (NCHW) rather than the last axis. Requires rank 2 for both, as in
/// TensorFlow's kernels; its shape functions require rank 3 for NCHW.
Result<bool> ChannelsFirst(const op::AttrView& attrs) {
  const Result<std::string> data_format = attrs.String("data_format");
  WEIR_TRY(data_format.status());
  return *data_format == "NCHW";
}

Status BiasAddShape(ShapeContext& c) {
  WEIR_ASSIGN(bool channels_first, ChannelsFirst(c.attrs()));
  WEIR_ASSIGN(PartialShape value, c.WithRankAtLeast(0, 2));
  WEIR_ASSIGN(PartialShape bias, c.WithRank(1, 1));
  if (!value.has_rank()) return Status();
  const int axis = channels_first ? 1 : value.rank() - 1;
  WEIR_ASSIGN(int64_t channels, MergeDim(value.dim(axis), bias.dim(0)));
  c.set_output(0, Replaced(std::move(value), axis, channels));
  return Status();
}

Status BiasAddGradShape(ShapeContext& c) {
  WEIR_ASSIGN(bool channels_first, ChannelsFirst(c.attrs()));
  WEIR_ASSIGN(PartialShape value, c.WithRankAtLeast(0, 2));
  c.set_output(0, VectorOf(value.has_rank() ? value.dim(channels_first ? 1 : value.rank() - 1) : -1));
  return Status();
}

Result<std::vector<Grad>> BiasAddGradient(GradContext& g) {
  const Result<std::string> data_format = g.attrs().String("data_format");
  WEIR_TRY(data_format.status());
  const Value dbias = g.Apply("BiasAddGrad", {g.Dy(0)}, {{"data_format", *data_format}});
  return std::vector<Grad>{g.Dy(0), dbias};
}

/// Broadcasts the gradient [channels] over all other axes of the input.
Result<std::vector<Grad>> BiasAddGradGradient(GradContext& g) {
  WEIR_ASSIGN(bool channels_first, ChannelsFirst(g.attrs()));
  const Value shape = g.ShapeOp(g.X(0));
  Value channels = g.Dy(0);
  if (channels_first) {  // [channels, 1, 1, …] broadcasts from axis 1
    const Value inner = g.Apply("StridedSlice", {shape, g.ConstInts({2}), g.ConstInts({0}), g.ConstInts({1})},
                                {{"end_mask", int64_t{1}}});
    const Value ones = g.Apply("OnesLike", {inner});
    channels = g.Reshape(channels, g.ApplyList("ConcatV2", {g.ConstInts({-1}), ones, g.ConstInt(0)}, {{"N", 2}}));
  }
  return One(g.Apply("BroadcastTo", {channels, shape}));
}

Status SoftmaxShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape shape, c.WithRankAtLeast(0, 1));
  c.set_output(0, std::move(shape));
  return Status();
}

/// The `k` largest of the last axis; k is an attribute or input 1.
Status TopKShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape input, c.WithRankAtLeast(0, 1));
  int64_t k = -1;
  if (c.num_inputs() == 1) {
    WEIR_ASSIGN(k, c.attrs().Int("k"));
  } else {
    WEIR_TRY(c.WithRank(1, 0).status());
    if (const std::optional<std::vector<int64_t>> known = c.ints(1)) {
      k = (*known)[0];
      if (k < 0) return InvalidArgument("Need k >= 0, got {}", k);
    }
  }
  if (!input.has_rank()) return Status();
  const int64_t last = input.dim(input.rank() - 1);
  if (last >= 0 && last < k) return InvalidArgument("input must have last dimension >= k = {} but is {}", k, last);
  const PartialShape shape = Replaced(input, input.rank() - 1, k);
  c.set_output(0, shape);
  c.set_output(1, shape);
  return Status();
}

Status InTopKShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape predictions, c.WithRank(0, 2));
  WEIR_ASSIGN(const PartialShape targets, c.WithRank(1, 1));
  if (c.num_inputs() == 3) WEIR_TRY(c.WithRank(2, 0).status());
  WEIR_ASSIGN(const int64_t batch, MergeDim(predictions.dim(0), targets.dim(0)));
  c.set_output(0, VectorOf(batch));
  return Status();
}

/// Scatters dy to the places that the indices name, counted over the whole input.
std::vector<Grad> TopKGradient(GradContext& g) {
  const Value shape = g.ShapeOp(g.X(0)), zero = g.ConstInt(0), flat = g.ConstInts({-1});
  const auto last_of = [&](Value of) {
    return g.Apply("GatherV2", {of, g.Sub(g.Apply("Size", {of}), g.ConstInt(1)), zero});
  };
  Value indices = g.Y(1);
  if (g.TypeOf(indices) != DType::kInt32) indices = g.Apply("Cast", {indices}, {{"DstT", DType::kInt32}});
  const Value last = last_of(shape);
  const Value rows_of = g.ApplyList("Pack", {g.ConstInt(-1), last_of(g.ShapeOp(g.Y(0)))}, {{"N", int64_t{2}}});
  const Value rows = g.Reshape(indices, rows_of);
  const Value count = g.Apply("GatherV2", {g.ShapeOp(rows), zero, zero});
  const Value starts = g.Apply("Range", {zero, g.Mul(count, last), last});
  const Value places = g.Reshape(g.Add(rows, g.Apply("ExpandDims", {starts, g.ConstInt(-1)})), flat);
  const Value size = g.Reshape(g.Apply("Prod", {shape, zero}), g.ConstInts({1}));
  const Value column = g.Apply("ExpandDims", {places, g.ConstInt(-1)});
  std::vector<Grad> grads(static_cast<size_t>(g.num_inputs()));
  grads[0] = g.Reshape(g.Apply("ScatterNd", {column, g.Reshape(g.Dy(0), flat), size}), shape);
  return grads;
}

Value SumOfLastAxis(GradContext& g, Value v) { return g.Apply("Sum", {v, g.ConstInt(-1)}, {{"keep_dims", true}}); }

std::vector<Grad> SoftmaxGradient(GradContext& g) {
  const Value sum = SumOfLastAxis(g, g.Mul(g.Dy(0), g.Y(0)));
  return One(g.Mul(g.Sub(g.Dy(0), sum), g.Y(0)));
}

std::vector<Grad> LogSoftmaxGradient(GradContext& g) {
  const Value softmax = g.Apply("Exp", {g.Y(0)});
  return One(g.Sub(g.Dy(0), g.Mul(SumOfLastAxis(g, g.Dy(0)), softmax)));
}

/// [batch] losses and [batch, classes] gradients; logits and labels are broadcast.
Status CrossEntropyShape(ShapeContext& c) {
  Result<PartialShape> both = ToRank(c.input(0), 2);
  if (both.ok()) both = both->Merge(c.input(1));
  if (!both.ok()) both = BroadcastShapes(c.input(0), c.input(1));
  WEIR_TRY(both.status());
  if (!both->has_rank()) return InvalidArgument("Shape must be broadcasted with rank 2, but is rank is unknown.");
  if (both->rank() != 2) return InvalidArgument("Shape must be broadcasted with rank 2, but is rank {}", both->rank());
  c.set_output(0, VectorOf(both->dim(0)));
  c.set_output(1, std::move(*both));
  return Status();
}

/// One label per row instead of a distribution.
Status SparseCrossEntropyShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape logits, c.WithRank(0, 2));
  WEIR_ASSIGN(PartialShape labels, c.WithRank(1, 1));
  WEIR_ASSIGN(int64_t batch, MergeDim(logits.dim(0), labels.dim(0)));
  c.set_output(0, VectorOf(batch));
  c.set_output(1, Replaced(std::move(logits), 0, batch));
  return Status();
}

/// Scales each row of `matrix` by the number for it in `rows`.
Value ScaleRows(GradContext& g, Value rows, Value matrix) {
  return g.Mul(g.Apply("ExpandDims", {rows, g.ConstInt(-1)}), matrix);
}

/// Gradient for the logits: the saved gradient times that of the loss, plus, if the saved gradient itself was used,
/// that of softmax: dz - (dz . softmax) per row, times softmax.
Value LogitsGradient(GradContext& g) {
  Value dx = ScaleRows(g, g.Dy(0), g.Y(1));
  if (!g.HasDy(1)) return dx;
  const Value dz = g.Dy(1);
  const Value softmax = g.Apply("Softmax", {g.X(0)});
  const Value row = g.Apply("ExpandDims", {dz, g.ConstInt(1)});
  const Value column = g.Apply("ExpandDims", {softmax, g.ConstInt(2)});
  const Value dots = g.Apply("BatchMatMulV2", {row, column});
  const Value squeezed = g.Apply("Squeeze", {dots}, {{"squeeze_dims", std::vector<int64_t>{1}}});
  return g.Add(dx, g.Mul(g.Sub(dz, squeezed), softmax));
}

/// Sums only if the shapes are known to differ. As in TensorFlow, no nodes are added for shapes that are unknown, which
/// usually are equal.
std::vector<Grad> CrossEntropyGradient(GradContext& g) {
  const Value dlogits = LogitsGradient(g);
  const Value dlabels = ScaleRows(g, g.Dy(0), g.Neg(g.Apply("LogSoftmax", {g.X(0)})));
  if (g.ShapeOf(g.X(0)).CompatibleWith(g.ShapeOf(g.X(1)))) return {dlogits, dlabels};
  return g.Unbroadcast(dlogits, dlabels);
}

std::vector<Grad> SparseCrossEntropyGradient(GradContext& g) { return {LogitsGradient(g), Grad::None()}; }

OpBuilder Neural(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kNeural); }

void DeclareBiases(OpRegistry& ops) {
  const char* kFormat = "data_format: {'NHWC', 'NCHW'} = 'NHWC'";
  Neural(ops, "BiasAdd")
      .In("value: T")
      .In("bias: T")
      .Out("output: T")
      .Attr(kNumberT)
      .Attr(kFormat)
      .Doc("value + bias, where bias [channels] runs along the last axis, or along axis 1 for NCHW.")
      .Shape(BiasAddShape)
      .Grad(BiasAddGradient);
  Neural(ops, "BiasAddGrad")
      .In("out_backprop: T")
      .Out("output: T")
      .Attr(kNumberT)
      .Attr(kFormat)
      .Doc("The sum over all axes but the channels': the gradient of BiasAdd by its bias.")
      .Shape(BiasAddGradShape)
      .Grad(BiasAddGradGradient);
}

void DeclareSquaredLoss(OpRegistry& ops) {
  Neural(ops, "L2Loss")
      .In("t: T")
      .Out("output: T")
      .Attr(kFloatT)
      .Doc("Half the sum of the squares of all elements, a scalar.")
      .Shape(op::Scalar())
      .Grad([](GradContext& g) { return One(g.Mul(g.X(0), g.Dy(0))); });
}

void DeclareTopK(OpRegistry& ops) {
  const char* kTopDoc =
      "The k largest elements of each row of the last axis, largest first, equal ones by their index, and their "
      "indices. NaN is less than any number.";
  Neural(ops, "TopK")
      .In("input: T")
      .Out("values: T")
      .Out("indices: int32")
      .Attr("k: int >= 0")
      .Attr("sorted: bool = true")
      .Attr(kRealNumberT)
      .Doc(kTopDoc)
      .Shape(TopKShape)
      .Grad(TopKGradient);
  Neural(ops, "TopKV2")
      .In("input: T")
      .In("k: Tk")
      .Out("values: T")
      .Out("indices: index_type")
      .Attr("sorted: bool = true")
      .Attr(kRealNumberT)
      .Attr("Tk: {int16, int32, int64} = DT_INT32")
      .Attr("index_type: {int16, int32, int64} = DT_INT32")
      .Doc(kTopDoc)
      .Shape(TopKShape)
      .Grad(TopKGradient);
  const char* kInDoc =
      "Per row of predictions: whether fewer than k of them are larger than that of the target. False where a "
      "prediction is not finite or the target is no class.";
  Neural(ops, "InTopK")
      .In("predictions: float")
      .In("targets: T")
      .Out("precision: bool")
      .Attr("k: int")
      .Attr("T: {int32, int64} = DT_INT32")
      .Doc(kInDoc)
      .Shape(InTopKShape)
      .NoGradient(kDiscrete);
  Neural(ops, "InTopKV2")
      .In("predictions: float")
      .In("targets: T")
      .In("k: T")
      .Out("precision: bool")
      .Attr("T: {int32, int64} = DT_INT32")
      .Doc(kInDoc)
      .Shape(InTopKShape)
      .NoGradient(kDiscrete);
}

void DeclareSoftmaxes(OpRegistry& ops) {
  Neural(ops, "Softmax")
      .In("logits: T")
      .Out("softmax: T")
      .Attr(kFloatT)
      .Doc("e^x / sum(e^x) along the last axis, safe from overflow.")
      .Shape(SoftmaxShape)
      .Grad(SoftmaxGradient);
  Neural(ops, "LogSoftmax")
      .In("logits: T")
      .Out("logsoftmax: T")
      .Attr(kFloatT)
      .Doc("x - log(sum(e^x)) along the last axis, safe from overflow.")
      .Shape(SoftmaxShape)
      .Grad(LogSoftmaxGradient);
  Neural(ops, "SoftmaxCrossEntropyWithLogits")
      .In("features: T")
      .In("labels: T")
      .Out("loss: T")
      .Out("backprop: T")
      .Attr(kFloatT)
      .Doc(
          "Per row of features (logits) and labels (distributions), both [batch, classes]: "
          "-sum(labels * log(softmax(features))), and its gradient softmax(features) - labels.")
      .Shape(CrossEntropyShape)
      .Grad(CrossEntropyGradient);
  Neural(ops, "SparseSoftmaxCrossEntropyWithLogits")
      .In("features: T")
      .In("labels: Tlabels")
      .Out("loss: T")
      .Out("backprop: T")
      .Attr(kFloatT)
      .Attr("Tlabels: {int32, int64} = DT_INT64")
      .Doc(
          "Per row of features (logits) [batch, classes] with one class number each in labels [batch]: "
          "-log(softmax(features)[label]), and its gradient. A label out of range is InvalidArgument.")
      .Shape(SparseCrossEntropyShape)
      .Grad(SparseCrossEntropyGradient);
}

}  // namespace

void DeclareNn(OpRegistry& ops) {
  DeclareBiases(ops);
  DeclareSoftmaxes(ops);
  DeclareSquaredLoss(ops);
  DeclareTopK(ops);
}

}  // namespace weir::ops
