// Maxima and means of windows over images and volumes, and of cells of random sizes, with the ops of their gradients.
#include <cmath>
#include <limits>
#include <string>

#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"
#include "core/ops/windows.h"

namespace weir::ops {
namespace {

using op::AttrList;
using op::Category;
using op::Grad;
using op::GradContext;
using op::One;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;
using op::Value;

/// What becomes of the channels.
enum class Depth { kKept, kPooled };

struct PoolForm {
  int spatial = 2;
  Depth depth = Depth::kKept;
  std::string_view name;  // in texts
};

constexpr PoolForm kMaxForm{2, Depth::kPooled, "MaxPool"};
constexpr PoolForm kAvgForm{2, Depth::kKept, "AvgPool"};
constexpr PoolForm kVolumeForm{3, Depth::kKept, "Pool3D"};

/// Windows and strides by axis of the images; empty if they are inputs whose value is not known.
struct PoolSteps {
  std::vector<int64_t> windows, strides;
};

/// From the attributes ksize and strides, or, if the op has none, from its last two inputs.
Result<PoolSteps> StepsOf(const ShapeContext& c, const ImageAxes& axes, const PoolForm& form) {
  PoolSteps steps;
  if (c.attrs().Has("ksize")) {
    WEIR_ASSIGN(steps.strides, PerAxis(c.attrs(), "strides", axes, form.name, "stride"));
    WEIR_ASSIGN(steps.windows, PerAxis(c.attrs(), "ksize", axes, form.name, "ksize"));
  } else {
    const auto windows = c.ints(c.num_inputs() - 2), strides = c.ints(c.num_inputs() - 1);
    if (!windows || !strides) return steps;
    steps = {*windows, *strides};
    const auto wanted = static_cast<size_t>(axes.rank());
    if (strides->size() != wanted)
      return InvalidArgument("Sliding window stride field must specify {} dimensions", wanted);
    if (windows->size() != wanted)
      return InvalidArgument("Sliding window ksize field must specify {} dimensions", wanted);
  }
  for (size_t i = 0; i < steps.windows.size(); ++i) {
    for (const auto& [name, value] : {std::pair("ksize", steps.windows[i]), std::pair("strides", steps.strides[i])}) {
      if (value > std::numeric_limits<int32_t>::max()) {
        return InvalidArgument("Attr {} has value {} out of range for an int32", name, value);
      }
    }
    if (steps.windows[i] <= 0) return InvalidArgument("Sliding window ksize for dimension {} was zero.", i);
  }
  return steps;
}

/// The shape of what pooling gives for images of input 0.
Result<PartialShape> Pooled(const ShapeContext& c, const PoolForm& form) {
  WEIR_ASSIGN(const ImageAxes axes, ImageAxesOf(c.attrs(), form.spatial));
  WEIR_ASSIGN(const PartialShape images, c.WithRank(0, axes.rank()));
  WEIR_ASSIGN(const WindowPaddings paddings, WindowPaddings::Of(c.attrs(), axes));
  WEIR_ASSIGN(const PoolSteps steps, StepsOf(c, axes, form));
  if (steps.windows.empty()) return PartialShape::OfRank(axes.rank());
  std::vector<int64_t> windows;
  for (int i = 0; i < axes.spatial; ++i) windows.push_back(steps.windows[static_cast<size_t>(axes.at(i))]);
  WEIR_ASSIGN(const std::vector<int64_t> extents, WindowedExtents(axes, images, windows, steps.strides, {}, paddings));
  int64_t channels = images.dim(axes.channels());
  if (form.depth == Depth::kPooled) {
    const auto at = static_cast<size_t>(axes.channels());
    WEIR_ASSIGN(channels, WindowedExtent(channels, steps.windows[at], {steps.strides[at], 1}, paddings.kind));
  }
  return axes.Shape(images.dim(0), extents, channels);
}

op::ShapeFn PoolShape(const PoolForm& form) {
  return [form](ShapeContext& c) -> Status {
    WEIR_ASSIGN(const PartialShape pooled, Pooled(c, form));
    for (size_t i = 0; i < c.outputs().size(); ++i) c.set_output(static_cast<int>(i), pooled);
    return Status();
  };
}

/// The gradient by the images has their shape, input 0.
op::ShapeFn LikeImages(int rank) {
  return [rank](ShapeContext& c) -> Status {
    WEIR_ASSIGN(PartialShape images, c.WithRank(0, rank));
    c.set_output(0, std::move(images));
    return Status();
  };
}

/// The gradient of a gradient: input 2 is like the images, input 0, and input 1 like the output.
op::ShapeFn SecondShape(const PoolForm& form) {
  return [form](ShapeContext& c) -> Status {
    WEIR_ASSIGN(const PartialShape shape, Pooled(c, form));
    WEIR_TRY(c.input(0).Merge(c.input(2)).status());
    WEIR_ASSIGN(PartialShape merged, shape.Merge(c.input(1)));
    c.set_output(0, std::move(merged));
    return Status();
  };
}

/// Input 0 is the shape.
op::ShapeFn GivenShape(int rank) {
  return [rank](ShapeContext& c) -> Status {
    for (const int64_t extent : c.ints(0).value_or(std::vector<int64_t>())) {
      if (extent < 0) return InvalidArgument("Expected a non-negative size, got {}", extent);
    }
    WEIR_ASSIGN(const PartialShape given, c.shape_from(0));
    WEIR_ASSIGN(PartialShape images, ToRank(given, rank));
    c.set_output(0, std::move(images));
    return Status();
  };
}

/// The attributes that the op of a gradient shares with the differentiated op.
AttrList SharedAttr(const GradContext& g, std::initializer_list<std::string_view> names) {
  AttrList shared;
  for (const std::string_view name : names) {
    const op::AttrValue* value = g.attrs().Find(name);
    if (value != nullptr) shared.emplace_back(std::string(name), *value);
  }
  return shared;
}

AttrList SharedWindows(const GradContext& g) { return SharedAttr(g, {"ksize", "strides", "padding", "data_format"}); }

/// As SharedWindows, with explicit paddings.
AttrList SharedPaddings(const GradContext& g) {
  return SharedAttr(g, {"ksize", "strides", "padding", "explicit_paddings", "data_format"});
}

op::GradFn MaxGradient(std::string_view grad) {
  return [grad](GradContext& g) { return One(g.Apply(grad, {g.X(0), g.Y(0), g.Dy(0)}, SharedPaddings(g))); };
}

/// A maximum's choice of elements does not vary with the inputs: only the incoming gradient gets one.
op::GradFn ChoiceGradient(std::string_view grad) {
  return [grad](GradContext& g) {
    const Value by_grad = g.Apply(grad, {g.X(0), g.X(1), g.Dy(0)}, SharedWindows(g));
    return std::vector<Grad>{g.Apply("ZerosLike", {g.X(0)}), g.Apply("ZerosLike", {g.X(1)}), by_grad};
  };
}

/// The same for ops whose windows and strides are inputs.
std::vector<Grad> ChoiceGradientV2(GradContext& g) {
  const Value by_grad = g.Apply("MaxPoolGradGradV2", {g.X(0), g.X(1), g.Dy(0), g.X(3), g.X(4)}, SharedWindows(g));
  return {g.Apply("ZerosLike", {g.X(0)}), g.Apply("ZerosLike", {g.X(1)}), by_grad, Grad::None(), Grad::None()};
}

op::GradFn MeanGradient(std::string_view grad) {
  return [grad](GradContext& g) { return One(g.Apply(grad, {g.ShapeOp(g.X(0)), g.Dy(0)}, SharedWindows(g))); };
}

op::GradFn MeanGradGradient(std::string_view forward) {
  return [forward](GradContext& g) {
    return std::vector<Grad>{Grad::None(), g.Apply(forward, {g.Dy(0)}, SharedWindows(g))};
  };
}

constexpr std::string_view kPoolMaxT =
    "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = DT_FLOAT";
constexpr std::string_view kPoolRealT = "T: realnumbertype";
constexpr std::string_view kPoolRealDefaultT = "T: realnumbertype = DT_FLOAT";
constexpr std::string_view kPoolMeanT = "T: {half, bfloat16, float, double}";
constexpr std::string_view kPoolVolumeT = "T: {half, bfloat16, float}";
constexpr std::string_view kPoolPadding = "padding: {'SAME', 'VALID'}";
constexpr std::string_view kPoolAnyPadding = "padding: {'SAME', 'VALID', 'EXPLICIT'}";
constexpr std::string_view kPoolGivenPaddings = "explicit_paddings: list(int) = []";
constexpr std::string_view kPoolFormat = "data_format: {'NHWC', 'NCHW'} = 'NHWC'";
constexpr std::string_view kPoolMaxFormat = "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'";
constexpr std::string_view kPoolVolumeFormat = "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'";

constexpr const char* kMaxDoc =
    "The largest element of each window of ksize elements, taken every `strides` elements. SAME pads so that there are "
    "ceil(extent / stride) windows; padding is never the largest. A window may span channels instead of places.";
constexpr const char* kMaxGradDoc =
    "The gradient of MaxPool by its input: each window's gradient goes to its largest element, the first of equal "
    "ones.";
constexpr const char* kMaxGradGradDoc =
    "The gradient of MaxPoolGrad by its gradients: per window the element of grad where orig_input is largest.";

OpBuilder Pool(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kNeural); }

/// ksize and strides, with at least `axes` elements.
OpBuilder& WindowSteps(OpBuilder& op, int axes) {
  return op.Attr("ksize: list(int) >= " + std::to_string(axes)).Attr("strides: list(int) >= " + std::to_string(axes));
}

OpBuilder& MaxGradArgs(OpBuilder& op) {
  return op.In("orig_input: T").In("orig_output: T").In("grad: T").Out("output: T");
}

void DeclareMaxPools(OpRegistry& ops) {
  OpBuilder forward = Pool(ops, "MaxPool");
  WindowSteps(forward.In("input: T").Out("output: T").Attr(kPoolMaxT), 4)
      .Attr(kPoolAnyPadding)
      .Attr(kPoolGivenPaddings)
      .Attr(kPoolMaxFormat)
      .Doc(kMaxDoc)
      .Shape(PoolShape(kMaxForm))
      .Grad(MaxGradient("MaxPoolGrad"));
  OpBuilder grad = Pool(ops, "MaxPoolGrad");
  WindowSteps(MaxGradArgs(grad), 4)
      .Attr(kPoolAnyPadding)
      .Attr(kPoolGivenPaddings)
      .Attr(kPoolFormat)
      .Attr(kPoolRealDefaultT)
      .Doc(kMaxGradDoc)
      .Shape(LikeImages(4))
      .Grad(ChoiceGradient("MaxPoolGradGrad"));
  OpBuilder second = Pool(ops, "MaxPoolGradGrad");
  WindowSteps(MaxGradArgs(second), 4)
      .Attr(kPoolPadding)
      .Attr(kPoolFormat)
      .Attr(kPoolRealT)
      .Doc(kMaxGradGradDoc)
      .Shape(SecondShape(kMaxForm))
      .Grad(ChoiceGradient("MaxPoolGrad"));
}

/// Windows and strides as inputs.
void DeclareMaxPoolsV2(OpRegistry& ops) {
  Pool(ops, "MaxPoolV2")
      .In("input: T")
      .In("ksize: int32")
      .In("strides: int32")
      .Out("output: T")
      .Attr(kPoolMaxT)
      .Attr(kPoolPadding)
      .Attr(kPoolMaxFormat)
      .Doc(kMaxDoc)
      .Shape(PoolShape(kMaxForm))
      .Grad([](GradContext& g) {
        const Value by_input = g.Apply("MaxPoolGradV2", {g.X(0), g.Y(0), g.Dy(0), g.X(1), g.X(2)}, SharedWindows(g));
        return std::vector<Grad>{by_input, Grad::None(), Grad::None()};
      });
  OpBuilder grad = Pool(ops, "MaxPoolGradV2");
  MaxGradArgs(grad)
      .In("ksize: int32")
      .In("strides: int32")
      .Attr(kPoolPadding)
      .Attr(kPoolFormat)
      .Attr(kPoolRealDefaultT)
      .Doc(kMaxGradDoc)
      .Shape(LikeImages(4))
      .Grad(ChoiceGradientV2);
  OpBuilder second = Pool(ops, "MaxPoolGradGradV2");
  MaxGradArgs(second)
      .In("ksize: int32")
      .In("strides: int32")
      .Attr(kPoolPadding)
      .Attr(kPoolFormat)
      .Attr(kPoolRealT)
      .Doc(kMaxGradGradDoc)
      .Shape(SecondShape(kMaxForm))
      .NoGradient(op::kUndefinedGradient);
}

OpBuilder& WithArgmax(OpBuilder& op) {
  return WindowSteps(op, 4).Attr(kPoolPadding).Attr("include_batch_in_index: bool = false").Attr(kPoolRealT);
}

void DeclareArgmaxPools(OpRegistry& ops) {
  OpBuilder forward = Pool(ops, "MaxPoolWithArgmax");
  WithArgmax(forward.In("input: T").Out("output: T").Out("argmax: Targmax"))
      .Attr("Targmax: {int32, int64} = DT_INT64")
      .Doc(
          "MaxPool of NHWC images, and the place of each largest element: (y * width + x) * channels + channel, plus "
          "the image's number times its size with include_batch_in_index.")
      .Shape(PoolShape(kMaxForm))
      .Grad([](GradContext& g) {
        return One(g.Apply("MaxPoolGradWithArgmax", {g.X(0), g.Dy(0), g.Y(1)},
                           SharedAttr(g, {"ksize", "strides", "padding", "include_batch_in_index"})));
      });
  OpBuilder grad = Pool(ops, "MaxPoolGradWithArgmax");
  WithArgmax(grad.In("input: T").In("grad: T").In("argmax: Targmax").Out("output: T"))
      .Attr("Targmax: {int32, int64}")
      .Doc("The gradient of MaxPoolWithArgmax by its input: grad added up at the places in argmax.")
      .Shape(LikeImages(4))
      .NoGradient(op::kUndefinedGradient);
}

constexpr const char* kMeanDoc =
    "The mean of each window of ksize elements, taken every `strides` elements. Padding does not count.";
constexpr const char* kMeanGradDoc =
    "The gradient of a mean of windows by its input, whose shape is orig_input_shape: each window's gradient in equal "
    "parts.";

void DeclareAvgPools(OpRegistry& ops) {
  OpBuilder forward = Pool(ops, "AvgPool");
  WindowSteps(forward.In("value: T").Out("output: T"), 4)
      .Attr(kPoolPadding)
      .Attr(kPoolFormat)
      .Attr(kPoolMeanT)
      .Doc(kMeanDoc)
      .Shape(PoolShape(kAvgForm))
      .Grad(MeanGradient("AvgPoolGrad"));
  OpBuilder grad = Pool(ops, "AvgPoolGrad");
  WindowSteps(grad.In("orig_input_shape: int32").In("grad: T").Out("output: T"), 4)
      .Attr(kPoolPadding)
      .Attr(kPoolFormat)
      .Attr(kPoolMeanT)
      .Doc(kMeanGradDoc)
      .Shape(GivenShape(4))
      .Grad(MeanGradGradient("AvgPool"));
  OpBuilder volumes = Pool(ops, "AvgPool3D");
  WindowSteps(volumes.In("input: T").Out("output: T"), 5)
      .Attr(kPoolPadding)
      .Attr(kPoolVolumeFormat)
      .Attr(kPoolMeanT)
      .Doc(kMeanDoc)
      .Shape(PoolShape(kVolumeForm))
      .Grad(MeanGradient("AvgPool3DGrad"));
  OpBuilder volumes_grad = Pool(ops, "AvgPool3DGrad");
  WindowSteps(volumes_grad.In("orig_input_shape: int32").In("grad: T").Out("output: T"), 5)
      .Attr(kPoolPadding)
      .Attr(kPoolVolumeFormat)
      .Attr(kPoolMeanT)
      .Doc(kMeanGradDoc)
      .Shape(GivenShape(5))
      .Grad(MeanGradGradient("AvgPool3D"));
}

void DeclareMaxPools3D(OpRegistry& ops) {
  OpBuilder forward = Pool(ops, "MaxPool3D");
  WindowSteps(forward.In("input: T").Out("output: T"), 5)
      .Attr(kPoolPadding)
      .Attr(kPoolVolumeFormat)
      .Attr(kPoolVolumeT)
      .Doc("The largest element of each window over volumes.")
      .Shape(PoolShape(kVolumeForm))
      .Grad(MaxGradient("MaxPool3DGrad"));
  OpBuilder grad = Pool(ops, "MaxPool3DGrad");
  WindowSteps(grad.In("orig_input: TInput").In("orig_output: TInput").In("grad: T").Out("output: T"), 5)
      .Attr(kPoolPadding)
      .Attr(kPoolVolumeFormat)
      .Attr("T: {half, bfloat16, float} = DT_FLOAT")
      .Attr("TInput: {half, bfloat16, float} = DT_FLOAT")
      .Doc(kMaxGradDoc)
      .Shape(LikeImages(5))
      .Grad(ChoiceGradient("MaxPool3DGradGrad"));
  OpBuilder second = Pool(ops, "MaxPool3DGradGrad");
  WindowSteps(MaxGradArgs(second), 5)
      .Attr(kPoolPadding)
      .Attr(kPoolVolumeFormat)
      .Attr(kPoolRealT)
      .Doc(kMaxGradGradDoc)
      .Shape(SecondShape(kVolumeForm))
      .Grad(ChoiceGradient("MaxPool3DGrad"));
}

/// Cells of `pooling_ratio` pixels on average. Outputs 1 and 2 are the edges of rows and columns of cells.
Status FractionalShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape images, c.WithRank(0, 4));
  WEIR_ASSIGN(const std::vector<float> ratio, c.attrs().Floats("pooling_ratio"));
  if (ratio.size() != 4) return InvalidArgument("pooling_ratio field must specify 4 dimensions");
  PartialShape pooled = PartialShape::OfRank(4);
  for (size_t i = 0; i < 4; ++i) {
    if (!(ratio[i] >= 1)) return InvalidArgument("pooling_ratio cannot be smaller than 1, got: {:g}", ratio[i]);
    const int64_t extent = images.dim(static_cast<int>(i));
    if (extent < 0) continue;
    pooled.set_dim(static_cast<int>(i), static_cast<int64_t>(std::floor(static_cast<float>(extent) / ratio[i])));
  }
  c.set_output(0, pooled);
  for (const int axis : {1, 2}) c.set_output(axis, VectorOf(pooled.dim(axis) < 0 ? -1 : pooled.dim(axis) + 1));
  return Status();
}

void DeclareFractionalPools(OpRegistry& ops) {
  constexpr std::string_view kFractionalT = "T: {float, double, int32, int64}", kOverlap = "overlapping: bool = false";
  const auto forward = [&](std::string_view name) {
    return Pool(ops, name)
        .In("value: T")
        .Out("output: T")
        .Out("row_pooling_sequence: int64")
        .Out("col_pooling_sequence: int64")
        .Attr("pooling_ratio: list(float) >= 4")
        .Attr("pseudo_random: bool = false")
        .Attr(kOverlap)
        .Attr("deterministic: bool = false")
        .Attr("seed: int = 0")
        .Attr("seed2: int = 0")
        .Attr(kFractionalT)
        .Shape(FractionalShape);
  };
  const auto overlapping = [](const GradContext& g) { return SharedAttr(g, {"overlapping"}); };
  forward("FractionalMaxPool")
      .Doc(
          "The largest element of each cell of NHWC images, and the edges of the rows and columns of cells, whose "
          "sizes differ by one at random and are pooling_ratio on average. Cells drawn once are `deterministic`.")
      .Grad([overlapping](GradContext& g) {
        return One(g.Apply("FractionalMaxPoolGrad", {g.X(0), g.Y(0), g.Dy(0), g.Y(1), g.Y(2)}, overlapping(g)));
      });
  forward("FractionalAvgPool")
      .Doc("The mean of each cell, as in FractionalMaxPool.")
      .Grad([overlapping](GradContext& g) {
        const Value shape = g.Apply("Shape", {g.X(0)}, {{"out_type", DType::kInt64}});
        return One(g.Apply("FractionalAvgPoolGrad", {shape, g.Dy(0), g.Y(1), g.Y(2)}, overlapping(g)));
      });
  Pool(ops, "FractionalMaxPoolGrad")
      .In("orig_input: T")
      .In("orig_output: T")
      .In("out_backprop: T")
      .In("row_pooling_sequence: int64")
      .In("col_pooling_sequence: int64")
      .Out("output: T")
      .Attr(kOverlap)
      .Attr(kFractionalT)
      .Shape(LikeImages(4))
      .NoGradient(op::kUndefinedGradient)
      .Doc("The gradient of FractionalMaxPool by its input.");
  Pool(ops, "FractionalAvgPoolGrad")
      .In("orig_input_tensor_shape: int64")
      .In("out_backprop: T")
      .In("row_pooling_sequence: int64")
      .In("col_pooling_sequence: int64")
      .Out("output: T")
      .Attr(kOverlap)
      .Attr(kFractionalT)
      .Shape(GivenShape(4))
      .NoGradient(op::kUndefinedGradient)
      .Doc("The gradient of FractionalAvgPool by its input.");
}

}  // namespace

void DeclarePool(OpRegistry& ops) {
  DeclareMaxPools(ops);
  DeclareMaxPoolsV2(ops);
  DeclareArgmaxPools(ops);
  DeclareAvgPools(ops);
  DeclareMaxPools3D(ops);
  DeclareFractionalPools(ops);
}

}  // namespace weir::ops
