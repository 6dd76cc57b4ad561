// Convolutions in two and three dimensions, depthwise ones, and the ops that are their gradients.
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/convolution_shapes.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/windows.h"

namespace weir::ops {
namespace {

using op::AttrList;
using op::Category;
using op::Grad;
using op::GradContext;
using op::MergeDim;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;
using op::Value;

constexpr std::string_view kConvolutionT = "T: {half, bfloat16, float, double}";

/// The channels of one group in the filter, and of the output, must fit the channels of the input.
Status CheckGroups(int64_t input, int64_t filter_input, int64_t filter_output) {
  if (input < 0 || filter_input < 0) return Status();
  if (filter_input == 0) return InvalidArgument("Depth of filter must not be 0");
  if (input % filter_input != 0) {
    return InvalidArgument("Depth of input ({}) is not a multiple of input depth of filter ({})", input, filter_input);
  }
  const int64_t groups = input / filter_input;
  if (groups == 1 || filter_output < 0) return Status();
  if (groups == 0) return InvalidArgument("Number of groups must not be 0");
  if (filter_output % groups == 0) return Status();
  return InvalidArgument("Depth of output ({}) is not a multiple of the number of groups ({})", filter_output, groups);
}

struct Convolution {
  const char* op;         // in texts
  const char* dilations;  // the word for them there
  int spatial;
  bool depthwise;
};

/// The filter is [spatial…, input channels of a group, output channels], or [height, width, channels, multiplier].
Status InferConvolution(ShapeContext& c, const Convolution& kind) {
  WEIR_ASSIGN(const ImageAxes axes, ImageAxesOf(c.attrs(), kind.spatial));
  WEIR_ASSIGN(const PartialShape input, c.WithRank(0, axes.rank()));
  WEIR_ASSIGN(const PartialShape filter, c.WithRank(1, axes.rank()));
  WEIR_ASSIGN(const std::vector<int64_t> dilations, PerAxis(c.attrs(), "dilations", axes, kind.op, kind.dilations));
  WEIR_ASSIGN(const std::vector<int64_t> strides, PerAxis(c.attrs(), "strides", axes, kind.op, "stride"));
  const int64_t channels = input.dim(axes.channels());
  const int64_t in = filter.dim(axes.spatial), out = filter.dim(axes.spatial + 1);
  int64_t output_channels = out;
  if (kind.depthwise) {
    WEIR_ASSIGN(const int64_t merged, MergeDim(channels, in));
    WEIR_ASSIGN(output_channels, MultiplyDims(merged, out));
  } else {
    WEIR_TRY(CheckGroups(channels, in, out));
  }
  WEIR_ASSIGN(const WindowPaddings paddings, WindowPaddings::Of(c.attrs(), axes));
  const std::vector<int64_t> windows(filter.dims().begin(), filter.dims().begin() + axes.spatial);
  WEIR_ASSIGN(const std::vector<int64_t> extents, WindowedExtents(axes, input, windows, strides, dilations, paddings));
  c.set_output(0, axes.Shape(input.dim(0), extents, output_channels));
  return Status();
}

/// The shape in input 0, [batch, spatial…, channels], or [spatial…] alone: then batch and channels are the operands'.
Status Conv2DBackpropInputShape(ShapeContext& c) {
  WEIR_ASSIGN(const ImageAxes axes, ImageAxesOf(c.attrs(), 2));
  WEIR_ASSIGN(const PartialShape filter, c.WithRank(1, 4));
  WEIR_ASSIGN(const PartialShape dy, c.WithRank(2, 4));
  WEIR_TRY(MergeDim(filter.dim(3), dy.dim(axes.channels())).status());
  WEIR_TRY(c.WithRank(0, 1).status());
  WEIR_ASSIGN(PartialShape sizes, c.shape_from(0));
  if (!sizes.has_rank()) sizes = PartialShape::OfRank(4);
  if (sizes.rank() == 2) sizes = axes.Shape(dy.dim(0), {sizes.dim(0), sizes.dim(1)}, filter.dim(2));
  if (sizes.rank() != 4) {
    return InvalidArgument("Conv2DBackpropInput requires input_sizes to contain 4 values or 2 values, but got: {}",
                           sizes.rank());
  }
  WEIR_ASSIGN(const int64_t batch, MergeDim(sizes.dim(0), dy.dim(0)));
  c.set_output(0, Replaced(std::move(sizes), 0, batch));
  return Status();
}

/// The shape that an input holds, of that rank.
op::ShapeFn ShapeIn(int input, int rank) {
  return [input, rank](ShapeContext& c) {
    WEIR_TRY(ImageAxesOf(c.attrs(), rank - 2).status());
    WEIR_TRY(c.WithRank(input, 1).status());
    WEIR_ASSIGN(const PartialShape sizes, c.shape_from(input));
    WEIR_ASSIGN(PartialShape shape, ToRank(sizes, rank));
    c.set_output(0, std::move(shape));
    return Status();
  };
}

/// The shape of an input, which has that rank.
op::ShapeFn ShapeOfRank(int input, int rank) {
  return [input, rank](ShapeContext& c) {
    WEIR_ASSIGN(PartialShape shape, c.WithRank(input, rank));
    c.set_output(0, std::move(shape));
    return Status();
  };
}

/// The attributes that a convolution and its gradients have in common.
AttrList SharedAttrs(GradContext& g) {
  AttrList shared;
  for (const char* name : {"strides", "padding", "explicit_paddings", "data_format", "dilations", "use_cudnn_on_gpu"}) {
    if (const op::AttrValue* value = g.attrs().Find(name)) shared.emplace_back(name, *value);
  }
  return shared;
}

/// The three ops of one kind of convolution. y = forward(x, w); its gradients are by_input(shape of x, w, dy) and
/// by_filter(x, shape of w, dy). All three are linear in each operand, so the gradients of each are the two others.
struct Trio {
  const char* forward;
  const char* by_input;
  const char* by_filter;
};
constexpr Trio kConv2D = {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"};
constexpr Trio kDepthwise = {"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
                             "DepthwiseConv2dNativeBackpropFilter"};
constexpr Trio kConv3D = {"Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"};

op::GradFn ForwardGradient(const Trio& trio) {
  return [trio](GradContext& g) -> Result<std::vector<Grad>> {
    const Value x = g.X(0), w = g.X(1), dy = g.Dy(0);
    return std::vector<Grad>{g.Apply(trio.by_input, {g.ShapeOp(x), w, dy}, SharedAttrs(g)),
                             g.Apply(trio.by_filter, {x, g.ShapeOp(w), dy}, SharedAttrs(g))};
  };
}
op::GradFn ByInputGradient(const Trio& trio) {
  return [trio](GradContext& g) -> Result<std::vector<Grad>> {
    const Value w = g.X(1), dy = g.X(2), ddx = g.Dy(0);
    return std::vector<Grad>{Grad::None(), g.Apply(trio.by_filter, {ddx, g.ShapeOp(w), dy}, SharedAttrs(g)),
                             g.Apply(trio.forward, {ddx, w}, SharedAttrs(g))};
  };
}
op::GradFn ByFilterGradient(const Trio& trio) {
  return [trio](GradContext& g) -> Result<std::vector<Grad>> {
    const Value x = g.X(0), dy = g.X(2), ddw = g.Dy(0);
    return std::vector<Grad>{g.Apply(trio.by_input, {g.ShapeOp(x), ddw, dy}, SharedAttrs(g)), Grad::None(),
                             g.Apply(trio.forward, {x, ddw}, SharedAttrs(g))};
  };
}

OpBuilder Convolving(OpRegistry& ops, std::string_view name, std::string_view types) {
  return ops.Declare(name).Is(Category::kNeural).Out("output: T").Attr(types);
}

/// The attributes of the ops in two dimensions.
OpBuilder& Planar(OpBuilder& op) {
  return op.Attr("strides: list(int)")
      .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
      .Attr("explicit_paddings: list(int) = []")
      .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .Attr("dilations: list(int) = [1, 1, 1, 1]");
}

void DeclareConv2D(OpRegistry& ops) {
  constexpr std::string_view kWithInt32 = "T: {half, bfloat16, float, double, int32}";
  OpBuilder forward = Convolving(ops, kConv2D.forward, kWithInt32);
  Planar(forward)
      .In("input: T")
      .In("filter: T")
      .Attr("use_cudnn_on_gpu: bool = true")
      .Shape(Conv2DShape)
      .Grad(ForwardGradient(kConv2D))
      .Doc(
          "The sums of products of windows of the input [batch, height, width, channels] with the filter [height, "
          "width, channels, outputs]. Fewer channels in the filter make groups: each has its own part of the outputs.");
  OpBuilder by_input = Convolving(ops, kConv2D.by_input, kWithInt32);
  Planar(by_input)
      .In("input_sizes: int32")
      .In("filter: T")
      .In("out_backprop: T")
      .Attr("use_cudnn_on_gpu: bool = true")
      .Shape(Conv2DBackpropInputShape)
      .Grad(ByInputGradient(kConv2D))
      .Doc("The gradient of Conv2D by its input, whose shape is input_sizes: the transposed convolution.");
  OpBuilder by_filter = Convolving(ops, kConv2D.by_filter, kConvolutionT);
  Planar(by_filter)
      .In("input: T")
      .In("filter_sizes: int32")
      .In("out_backprop: T")
      .Attr("use_cudnn_on_gpu: bool = true")
      .Shape(ShapeIn(1, 4))
      .Grad(ByFilterGradient(kConv2D))
      .Doc("The gradient of Conv2D by its filter, whose shape is filter_sizes.");
}

void DeclareDepthwise(OpRegistry& ops) {
  OpBuilder forward = Convolving(ops, kDepthwise.forward, kConvolutionT);
  Planar(forward)
      .In("input: T")
      .In("filter: T")
      .Shape(DepthwiseShape)
      .Grad(ForwardGradient(kDepthwise))
      .Doc(
          "Convolves each channel alone with its filters: output channel c * multiplier + m comes from input channel c "
          "and filter [height, width, c, m].");
  OpBuilder by_input = Convolving(ops, kDepthwise.by_input, kConvolutionT);
  Planar(by_input)
      .In("input_sizes: int32")
      .In("filter: T")
      .In("out_backprop: T")
      .Shape(ShapeIn(0, 4))
      .Grad(ByInputGradient(kDepthwise))
      .Doc("The gradient of DepthwiseConv2dNative by its input, whose shape is input_sizes.");
  OpBuilder by_filter = Convolving(ops, kDepthwise.by_filter, kConvolutionT);
  Planar(by_filter)
      .In("input: T")
      .In("filter_sizes: int32")
      .In("out_backprop: T")
      .Shape(ShapeIn(1, 4))
      .Grad(ByFilterGradient(kDepthwise))
      .Doc("The gradient of DepthwiseConv2dNative by its filter, whose shape is filter_sizes.");
}

/// The attributes of the ops in three dimensions, without the format.
OpBuilder& Spatial(OpBuilder& op) {
  return op.Attr("strides: list(int) >= 5")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("dilations: list(int) = [1, 1, 1, 1, 1]");
}

void DeclareConv3D(OpRegistry& ops) {
  constexpr std::string_view kFormat = "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'";
  OpBuilder forward = Convolving(ops, kConv3D.forward, kConvolutionT);
  Spatial(forward)
      .Attr(kFormat)
      .In("input: T")
      .In("filter: T")
      .Shape(Conv3DShape)
      .Grad(ForwardGradient(kConv3D))
      .Doc(
          "The sums of products of windows of the input [batch, depth, height, width, channels] with the filter "
          "[depth, height, width, channels, outputs].");
  OpBuilder by_input = Convolving(ops, kConv3D.by_input, kConvolutionT);
  Spatial(by_input)
      .Attr(kFormat)
      .Attr("Tshape: {int32, int64} = DT_INT32")
      .In("input_sizes: Tshape")
      .In("filter: T")
      .In("out_backprop: T")
      .Shape(ShapeIn(0, 5))
      .Grad(ByInputGradient(kConv3D))
      .Doc("The gradient of Conv3D by its input, whose shape is input_sizes.");
  OpBuilder by_filter = Convolving(ops, kConv3D.by_filter, kConvolutionT);
  Spatial(by_filter)
      .Attr(kFormat)
      .In("input: T")
      .In("filter_sizes: int32")
      .In("out_backprop: T")
      .Shape(ShapeIn(1, 5))
      .Grad(ByFilterGradient(kConv3D))
      .Doc("The gradient of Conv3D by its filter, whose shape is filter_sizes.");
}

/// The forms of old graphs, which pass the operand itself instead of its shape.
void DeclareOldConv3D(OpRegistry& ops) {
  constexpr std::string_view kOldT = "T: {half, float, double}";
  OpBuilder by_input = Convolving(ops, "Conv3DBackpropInput", kOldT);
  Spatial(by_input)
      .In("input: T")
      .In("filter: T")
      .In("out_backprop: T")
      .Shape(ShapeOfRank(0, 5))
      .NoGradient(op::kUndefinedGradient)
      .Doc("The gradient of Conv3D by its input, of which only the shape counts.");
  OpBuilder by_filter = Convolving(ops, "Conv3DBackpropFilter", kOldT);
  Spatial(by_filter)
      .In("input: T")
      .In("filter: T")
      .In("out_backprop: T")
      .Shape(ShapeOfRank(1, 5))
      .NoGradient(op::kUndefinedGradient)
      .Doc("The gradient of Conv3D by its filter, of which only the shape counts.");
}

}  // namespace

Status Conv2DShape(ShapeContext& c) { return InferConvolution(c, {"Conv2D", "dilation", 2, false}); }
Status Conv3DShape(ShapeContext& c) { return InferConvolution(c, {"Conv3D", "dilation", 3, false}); }
Status DepthwiseShape(ShapeContext& c) { return InferConvolution(c, {"DepthwiseConv2D", "dilations", 2, true}); }

void DeclareConvolution(OpRegistry& ops) {
  DeclareConv2D(ops);
  DeclareDepthwise(ops);
  DeclareConv3D(ops);
  DeclareOldConv3D(ops);
}

}  // namespace weir::ops
