// Batch normalisation and local response normalisation, with the ops of their gradients.
#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::AttrList;
using op::Category;
using op::Grad;
using op::GradContext;
using op::MergeDim;
using op::One;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;
using op::Value;

/// Images with one batch axis, one channel axis and spatial axes between or behind.
struct Layout {
  int rank = 4;
  int channel_axis = 3;
};

Result<Layout> LayoutOf(const op::AttrView& attrs) {
  WEIR_ASSIGN(const std::string format, attrs.String("data_format"));
  Layout layout;
  layout.rank = static_cast<int>(format.size());
  layout.channel_axis = format[1] == 'C' ? 1 : layout.rank - 1;
  return layout;
}

/// `images` with the channels of `layout`, merged with the extent of each vector input [begin, end).
Result<PartialShape> WithChannels(ShapeContext& c, PartialShape images, int channel_axis, int begin, int end) {
  int64_t channels = images.dim(channel_axis);
  for (int i = begin; i < end; ++i) {
    WEIR_ASSIGN(const PartialShape vector, c.WithRank(i, 1));
    WEIR_ASSIGN(channels, MergeDim(channels, vector.dim(0)));
  }
  return Replaced(std::move(images), channel_axis, channels);
}

/// In training, the given mean and variance may be empty if they do not enter the moving ones.
Status FusedBatchNormShape(ShapeContext& c) {
  WEIR_ASSIGN(const Layout layout, LayoutOf(c.attrs()));
  WEIR_ASSIGN(const bool training, c.attrs().Bool("is_training"));
  WEIR_ASSIGN(PartialShape x, c.WithRank(0, layout.rank));
  WEIR_ASSIGN(const float factor, c.attrs().Float("exponential_avg_factor"));
  WEIR_ASSIGN(x, WithChannels(c, std::move(x), layout.channel_axis, 1, training && factor == 1 ? 3 : 5));
  const int64_t channels = x.dim(layout.channel_axis);
  c.set_output(0, std::move(x));
  for (int i = 1; i < 5; ++i) c.set_output(i, VectorOf(channels));
  if (c.outputs().size() > 5) c.set_output(5, VectorOf(0));
  return Status();
}

Status FusedBatchNormGradShape(ShapeContext& c) {
  WEIR_ASSIGN(const Layout layout, LayoutOf(c.attrs()));
  WEIR_ASSIGN(PartialShape dy, c.WithRank(0, layout.rank));
  WEIR_ASSIGN(const PartialShape x, c.WithRank(1, layout.rank));
  WEIR_ASSIGN(const int64_t channels, MergeDim(dy.dim(layout.channel_axis), x.dim(layout.channel_axis)));
  dy.set_dim(layout.channel_axis, channels);
  WEIR_ASSIGN(dy, WithChannels(c, std::move(dy), layout.channel_axis, 2, 5));
  const int64_t merged = dy.dim(layout.channel_axis);
  c.set_output(0, std::move(dy));
  c.set_output(1, VectorOf(merged));
  c.set_output(2, VectorOf(merged));
  c.set_output(3, VectorOf(0));
  c.set_output(4, VectorOf(0));
  return Status();
}

/// Attributes that a batch norm shares with the op of its gradient.
Result<AttrList> NormAttrs(const op::AttrView& attrs) {
  AttrList shared;
  WEIR_ASSIGN(const float epsilon, attrs.Float("epsilon"));
  WEIR_ASSIGN(const std::string format, attrs.String("data_format"));
  WEIR_ASSIGN(const bool training, attrs.Bool("is_training"));
  return AttrList{{"epsilon", epsilon}, {"data_format", format}, {"is_training", training}};
}

/// In training the gradient uses the saved statistics, in inference the given ones.
Result<std::vector<Grad>> FusedBatchNormGradient(GradContext& g, std::string_view op) {
  WEIR_ASSIGN(const AttrList attrs, NormAttrs(g.attrs()));
  WEIR_ASSIGN(const bool training, g.attrs().Bool("is_training"));
  std::vector<Value> inputs = {g.Dy(0), g.X(0), g.X(1), training ? g.Y(3) : g.X(3), training ? g.Y(4) : g.X(4)};
  if (g.TypeOf(g.X(1)) != DType::kFloat) inputs[2] = g.Apply("Cast", {g.X(1)}, {{"DstT", DType::kFloat}});
  if (g.num_outputs() > 5) inputs.push_back(g.Y(5));
  const std::vector<Value> all = g.ApplyAll(op, inputs, attrs);
  if (all.size() < 3) return std::vector<Grad>(5);
  return std::vector<Grad>{all[0], all[1], all[2], Grad::None(), Grad::None()};
}

/// Formulas of the second derivatives, in float, over one layout.
class BatchNormTerms {
 public:
  BatchNormTerms(GradContext& g, const Layout& layout) : g_(g), layout_(layout) {}

  Value Widened(Value v) {
    return g_.TypeOf(v) == DType::kFloat ? v : g_.Apply("Cast", {v}, {{"DstT", DType::kFloat}});
  }
  Value As(Value v, Value like) {
    return g_.TypeOf(like) == DType::kFloat ? v : g_.Apply("Cast", {v}, {{"DstT", g_.TypeOf(like)}});
  }
  /// [channels] as [1, …, channels, …, 1].
  Value Spread(Value channels) {
    std::vector<int32_t> shape(static_cast<size_t>(layout_.rank), 1);
    shape[static_cast<size_t>(layout_.channel_axis)] = -1;
    return g_.Reshape(channels, g_.ConstInts(shape));
  }
  Value Mean(Value v) { return Reduced("Mean", v, true); }
  /// Sums to [channels].
  Value Sum(Value v) { return Reduced("Sum", v, false); }

 private:
  Value Reduced(std::string_view op, Value v, bool keep) {
    std::vector<int32_t> axes;
    for (int i = 0; i < layout_.rank; ++i) {
      if (i != layout_.channel_axis) axes.push_back(i);
    }
    return g_.Apply(op, {v, g_.ConstInts(axes)}, {{"keep_dims", keep}});
  }

  GradContext& g_;
  Layout layout_;
};

/// Second derivatives. Of dx = scale·r·(dy − mean(dy) − n·mean(dy·n)), dscale = sum(dy·n) and doffset = sum(dy), where
/// n = (x − mean(x))·r is the normalised input, in training; of dx = scale·r·dy in inference. With `a`, `b`, `c` the
/// incoming gradients of dx, dscale, doffset.
Result<std::vector<Grad>> FusedBatchNormGradGradient(GradContext& g) {
  WEIR_ASSIGN(const Layout layout, LayoutOf(g.attrs()));
  WEIR_ASSIGN(const float epsilon, g.attrs().Float("epsilon"));
  WEIR_ASSIGN(const bool training, g.attrs().Bool("is_training"));
  BatchNormTerms t(g, layout);
  const Value dy = t.Widened(g.X(0)), x = t.Widened(g.X(1)), scale = t.Spread(g.X(2));
  const Value a = t.Widened(g.Dy(0)), b = t.Spread(g.Dy(1)), c = t.Spread(g.Dy(2));
  const Value mean = training ? t.Mean(x) : t.Spread(g.X(3));
  const Value centred = g.Sub(x, mean);
  const Value variance = training ? t.Mean(g.Apply("Square", {centred})) : t.Spread(g.X(4));
  const Value r = g.Apply("Rsqrt", {g.Add(variance, g.ConstLike(variance, epsilon))});
  const Value n = g.Mul(centred, r), scaled = g.Mul(scale, r);
  const Value by_offset = g.Add(g.Mul(b, n), c);
  std::vector<Grad> grads(static_cast<size_t>(g.num_inputs()));
  if (!training) {
    grads[0] = t.As(g.Add(g.Mul(scaled, a), by_offset), g.X(0));
    grads[1] = t.As(g.Mul(g.Mul(b, r), dy), g.X(1));
    grads[2] = t.Sum(g.Mul(g.Mul(a, dy), r));
    return grads;
  }
  const Value a_centred = g.Sub(a, t.Mean(a)), dy_centred = g.Sub(dy, t.Mean(dy));
  const Value a_along = t.Mean(g.Mul(a, n)), dy_along = t.Mean(g.Mul(dy, n));
  const Value a_rest = g.Sub(a_centred, g.Mul(n, a_along)), dy_rest = g.Sub(dy_centred, g.Mul(n, dy_along));
  const Value product = t.Mean(g.Mul(a_centred, dy_rest));
  grads[0] = t.As(g.Add(g.Mul(scaled, a_rest), by_offset), g.X(0));
  const Value through = g.Add(g.Mul(n, product), g.Add(g.Mul(dy_along, a_rest), g.Mul(a_along, dy_rest)));
  const Value by_x = g.Sub(g.Mul(g.Mul(b, r), dy_rest), g.Mul(g.Mul(scaled, r), through));
  grads[1] = t.As(by_x, g.X(1));
  grads[2] = t.Sum(g.Mul(g.Mul(a, dy_rest), r));
  return grads;
}

struct Version {
  std::string_view suffix;
  std::string_view input_type, statistics;  // attributes
  std::string_view parameter, format;
};

constexpr std::string_view kImages = "data_format: {'NHWC', 'NCHW'} = 'NHWC'";
constexpr std::string_view kImagesOrVolumes = "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'";

constexpr const char* kFusedDoc =
    "(x - mean) / sqrt(variance + epsilon) * scale + offset per channel. In training, mean and variance are those of x "
    "over all axes but the channels', and the outputs are the moving ones: given * (1 - exponential_avg_factor) + "
    "batch's * exponential_avg_factor, where the batch's variance is the unbiased one. The reserve spaces hold the "
    "statistics that were used. In inference, the given statistics are used and returned.";

void DeclareFused(OpRegistry& ops, const Version& version) {
  const std::string name = "FusedBatchNorm" + std::string(version.suffix);
  const std::string grad = "FusedBatchNormGrad" + std::string(version.suffix);
  const auto typed = [&](const char* arg) { return std::string(arg) + ": " + std::string(version.parameter); };
  OpBuilder forward = ops.Declare(name);
  forward.Is(Category::kNeural).In("x: T");
  for (const char* arg : {"scale", "offset", "mean", "variance"}) forward.In(typed(arg));
  forward.Out("y: T");
  for (const char* arg : {"batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"}) {
    forward.Out(typed(arg));
  }
  const bool third = version.suffix == "V3", own_type = version.parameter == "U";
  if (third) forward.Out("reserve_space_3: U");
  forward.Attr(version.input_type);
  if (own_type) forward.Attr(version.statistics);
  forward.Attr("epsilon: float = 0.0001")
      .Attr("exponential_avg_factor: float = 1.0")
      .Attr(version.format)
      .Attr("is_training: bool = true")
      .Doc(kFusedDoc)
      .Shape(FusedBatchNormShape)
      .Grad([grad](GradContext& g) { return FusedBatchNormGradient(g, grad); });
  OpBuilder backward = ops.Declare(grad);
  backward.Is(Category::kNeural).In("y_backprop: T").In("x: T").In(own_type ? "scale: float" : "scale: T");
  backward.In(typed("reserve_space_1")).In(typed("reserve_space_2"));
  if (third) backward.In("reserve_space_3: U");
  backward.Out("x_backprop: T").Out(typed("scale_backprop")).Out(typed("offset_backprop"));
  for (const char* arg : {"reserve_space_3", "reserve_space_4"}) {
    if (!third) backward.Out(typed(arg));
  }
  for (const char* arg : {"reserve_space_4", "reserve_space_5"}) {
    if (third) backward.Out(typed(arg));
  }
  backward.Attr(version.input_type);
  if (own_type) backward.Attr("U: {float}");
  backward.Attr("epsilon: float = 0.0001")
      .Attr(version.format)
      .Attr("is_training: bool = true")
      .Doc(
          "The gradient of a fused batch normalisation by x, scale and offset, from the statistics in its reserve "
          "spaces; in inference from the given mean and variance.")
      .Shape(FusedBatchNormGradShape)
      .Grad(FusedBatchNormGradGradient);
}

Status GlobalNormalisationShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape t, c.WithRank(0, 4));
  WEIR_ASSIGN(t, WithChannels(c, std::move(t), 3, 1, c.num_inputs()));
  c.set_output(0, std::move(t));
  return Status();
}

Status GlobalNormalisationGradShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape t, c.WithRank(0, 4));
  WEIR_ASSIGN(const PartialShape backprop, c.WithRank(4, 4));
  WEIR_ASSIGN(t, t.Merge(backprop));
  WEIR_ASSIGN(t, WithChannels(c, std::move(t), 3, 1, 4));
  const int64_t channels = t.dim(3);
  c.set_output(0, std::move(t));
  for (int i = 1; i < 5; ++i) c.set_output(i, VectorOf(channels));
  return Status();
}

Result<std::vector<Grad>> GlobalNormalisationGradient(GradContext& g) {
  WEIR_ASSIGN(const float epsilon, g.attrs().Float("variance_epsilon"));
  WEIR_ASSIGN(const bool scale, g.attrs().Bool("scale_after_normalization"));
  const std::vector<Value> all =
      g.ApplyAll("BatchNormWithGlobalNormalizationGrad", {g.X(0), g.X(1), g.X(2), g.X(4), g.Dy(0)},
                 {{"variance_epsilon", epsilon}, {"scale_after_normalization", scale}});
  return std::vector<Grad>(all.begin(), all.end());
}

void DeclareGlobalNormalisation(OpRegistry& ops) {
  ops.Declare("BatchNormWithGlobalNormalization")
      .Is(Category::kNeural)
      .In("t: T")
      .In("m: T")
      .In("v: T")
      .In("beta: T")
      .In("gamma: T")
      .Out("result: T")
      .Attr(kNumberT)
      .Attr("variance_epsilon: float")
      .Attr("scale_after_normalization: bool")
      .Doc(
          "(t - m) / sqrt(v + variance_epsilon) + beta per channel, the last axis; with scale_after_normalization the "
          "quotient is multiplied by gamma.")
      .Shape(GlobalNormalisationShape)
      .Grad(GlobalNormalisationGradient);
  ops.Declare("BatchNormWithGlobalNormalizationGrad")
      .Is(Category::kNeural)
      .In("t: T")
      .In("m: T")
      .In("v: T")
      .In("gamma: T")
      .In("backprop: T")
      .Out("dx: T")
      .Out("dm: T")
      .Out("dv: T")
      .Out("db: T")
      .Out("dg: T")
      .Attr(kNumberT)
      .Attr("variance_epsilon: float")
      .Attr("scale_after_normalization: bool")
      .Doc("The gradients of BatchNormWithGlobalNormalization by its inputs.")
      .Shape(GlobalNormalisationGradShape)
      .NoGradient(op::kUndefinedGradient);
}

Status LrnShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape shape, c.WithRank(0, 4));
  for (int i = 1; i < c.num_inputs(); ++i) {
    WEIR_ASSIGN(const PartialShape other, c.WithRank(i, 4));
    WEIR_ASSIGN(shape, shape.Merge(other));
  }
  c.set_output(0, std::move(shape));
  return Status();
}

OpBuilder& LrnAttrs(OpBuilder& op) {
  return op.Is(Category::kNeural)
      .Attr("depth_radius: int = 5")
      .Attr("bias: float = 1.0")
      .Attr("alpha: float = 1.0")
      .Attr("beta: float = 0.5")
      .Attr("T: {half, bfloat16, float} = DT_FLOAT")
      .Shape(LrnShape);
}

Result<std::vector<Grad>> LrnGradient(GradContext& g) {
  WEIR_ASSIGN(const int64_t radius, g.attrs().Int("depth_radius"));
  WEIR_ASSIGN(const float bias, g.attrs().Float("bias"));
  WEIR_ASSIGN(const float alpha, g.attrs().Float("alpha"));
  WEIR_ASSIGN(const float beta, g.attrs().Float("beta"));
  return One(g.Apply("LRNGrad", {g.Dy(0), g.X(0), g.Y(0)},
                     {{"depth_radius", radius}, {"bias", bias}, {"alpha", alpha}, {"beta", beta}}));
}

void DeclareLrn(OpRegistry& ops) {
  OpBuilder lrn = ops.Declare("LRN");
  LrnAttrs(lrn.In("input: T").Out("output: T"))
      .Doc(
          "input / (bias + alpha * sum of the squares of the 2 * depth_radius + 1 neighbours along the last "
          "axis)^beta.")
      .Grad(LrnGradient);
  OpBuilder grad = ops.Declare("LRNGrad");
  LrnAttrs(grad.In("input_grads: T").In("input_image: T").In("output_image: T").Out("output: T"))
      .Doc("The gradient of LRN by its input.")
      .NoGradient(op::kUndefinedGradient);
}

}  // namespace

void DeclareNormalisation(OpRegistry& ops) {
  DeclareFused(ops, {"", "T: {float}", "", "T", kImages});
  DeclareFused(ops, {"V2", "T: {half, bfloat16, float}", "U: {float}", "U", kImages});
  DeclareFused(ops, {"V3", "T: {half, bfloat16, float}", "U: {bfloat16, float}", "U", kImagesOrVolumes});
  DeclareGlobalNormalisation(ops);
  DeclareLrn(ops);
}

}  // namespace weir::ops
