// Resizing of images, and crops that are resized, with the ops of their gradients.
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

/// [batch, height, width, channels] with the two extents of vector input `size`; `refusal`: of negative ones.
Status SetSizedImages(ShapeContext& c, int64_t batch, int size, int64_t channels, std::string_view refusal) {
  WEIR_ASSIGN(const PartialShape vector, c.WithRank(size, 1));
  WEIR_TRY(ExpectDim(vector.dim(0), 2));
  if (const std::optional<std::vector<int64_t>> given = c.ints(size)) {
    if ((*given)[0] < 0 || (*given)[1] < 0) return InvalidArgument("{}", refusal);
  }
  WEIR_ASSIGN(const PartialShape extents, c.shape_from(size));
  const bool known = extents.has_rank();
  c.set_output(0, PartialShape::Of({batch, known ? extents.dim(0) : -1, known ? extents.dim(1) : -1, channels}));
  return c.outputs()[0].Check();
}

Status ResizeShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape images, c.WithRank(0, 4));
  return SetSizedImages(c, images.dim(0), 1, images.dim(3), "output dimensions must be positive");
}

/// The gradient has the shape of input 1, the images.
Status ResizeGradShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape grads, c.WithRank(0, 4));
  WEIR_ASSIGN(PartialShape images, c.WithRank(1, 4));
  for (const int axis : {0, 3}) {
    WEIR_ASSIGN(const int64_t extent, MergeDim(images.dim(axis), grads.dim(axis)));
    images.set_dim(axis, extent);
  }
  c.set_output(0, std::move(images));
  return Status();
}

AttrList Sampling(const GradContext& g) {
  AttrList attrs;
  for (const char* name : {"align_corners", "half_pixel_centers"}) {
    const Result<bool> value = g.attrs().Bool(name);
    if (value.ok()) attrs.emplace_back(name, *value);
  }
  return attrs;
}

/// By the images only, and none by images of integers.
op::GradFn ResizeGradient(std::string_view grad) {
  return [grad](GradContext& g) {
    if (!IsFloating(g.TypeOf(g.X(0)))) return std::vector<Grad>(2);
    return std::vector<Grad>{g.Apply(grad, {g.Dy(0), g.X(0)}, Sampling(g)), Grad::None()};
  };
}

/// The op of TensorFlow's gradient takes float and double.
std::vector<Grad> BicubicGradient(GradContext& g) {
  const DType type = g.TypeOf(g.X(0));
  if (type != DType::kFloat && type != DType::kDouble) return std::vector<Grad>(2);
  return {g.Apply("ResizeBicubicGrad", {g.Dy(0), g.X(0)}, Sampling(g)), Grad::None()};
}

std::vector<Grad> NearestGradient(GradContext& g) {
  const PartialShape shape = g.ShapeOf(g.X(0));
  const bool known = shape.has_rank() && shape.rank() == 4 && shape.dim(1) >= 0 && shape.dim(2) >= 0 &&
                     shape.dim(1) <= INT32_MAX && shape.dim(2) <= INT32_MAX;
  const Value size =
      known ? g.ConstInts({static_cast<int32_t>(shape.dim(1)), static_cast<int32_t>(shape.dim(2))})
            : g.Apply("StridedSlice", {g.ShapeOp(g.X(0)), g.ConstInts({1}), g.ConstInts({3}), g.ConstInts({1})});
  return {g.Apply("ResizeNearestNeighborGrad", {g.Dy(0), size}, Sampling(g)), Grad::None()};
}

constexpr std::string_view kImageT = "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}";
constexpr std::string_view kAlign = "align_corners: bool = false";
constexpr std::string_view kHalfPixels = "half_pixel_centers: bool = false";

OpBuilder Image(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kNeural); }

OpBuilder& Resize(OpBuilder& op, std::string_view output, std::string_view types) {
  return op.In("images: T").In("size: int32").Out(output).Attr(types).Attr(kAlign).Shape(ResizeShape);
}

void DeclareResizes(OpRegistry& ops) {
  OpBuilder bilinear = Image(ops, "ResizeBilinear");
  Resize(bilinear, "resized_images: float", kImageT)
      .Attr(kHalfPixels)
      .Doc(
          "NHWC images scaled to size [height, width] by interpolation between the four nearest pixels. align_corners "
          "maps corner pixels to corner pixels; half_pixel_centers takes a pixel's place to be its middle.")
      .Grad(ResizeGradient("ResizeBilinearGrad"));
  OpBuilder nearest = Image(ops, "ResizeNearestNeighbor");
  Resize(nearest, "resized_images: T", kImageT)
      .Attr(kHalfPixels)
      .Doc("NHWC images scaled to size [height, width]; each pixel is that of the nearest place.")
      .Grad(NearestGradient);
  OpBuilder bicubic = Image(ops, "ResizeBicubic");
  Resize(bicubic, "resized_images: float", kImageT)
      .Attr(kHalfPixels)
      .Doc(
          "NHWC images scaled to size [height, width] by cubic convolution over 16 pixels, with parameter -0.75, or "
          "-0.5 "
          "with half_pixel_centers.")
      .Grad(BicubicGradient);
  OpBuilder area = Image(ops, "ResizeArea");
  Resize(area, "resized_images: float", kImageT)
      .Doc("NHWC images scaled to size [height, width]; each pixel is the mean over the area that it covers.")
      .NoGradient(op::kUndefinedGradient);
}

void DeclareResizeGradients(OpRegistry& ops) {
  const auto grad = [&](std::string_view name, std::string_view types, std::string_view doc) {
    Image(ops, name)
        .In("grads: float")
        .In("original_image: T")
        .Out("output: T")
        .Attr(types)
        .Attr(kAlign)
        .Attr(kHalfPixels)
        .Doc(doc)
        .Shape(ResizeGradShape)
        .NoGradient(op::kUndefinedGradient);
  };
  grad("ResizeBilinearGrad", "T: {float, bfloat16, half, double}", "The gradient of ResizeBilinear by its images.");
  grad("ResizeBicubicGrad", "T: {float, double}", "The gradient of ResizeBicubic by its images.");
  Image(ops, "ResizeNearestNeighborGrad")
      .In("grads: T")
      .In("size: int32")
      .Out("output: T")
      .Attr("T: {uint8, int8, int32, half, float, double, bfloat16}")
      .Attr(kAlign)
      .Attr(kHalfPixels)
      .Doc("The gradient of ResizeNearestNeighbor by its images, of size [height, width].")
      .Shape(ResizeShape)
      .NoGradient(op::kUndefinedGradient);
}

/// The extent of the boxes [boxes, 4] and of their images' numbers [boxes], inputs `boxes` and `boxes` + 1.
Result<int64_t> BoxCount(const ShapeContext& c, int boxes) {
  WEIR_ASSIGN(const PartialShape corners, c.WithRank(boxes, 2));
  WEIR_ASSIGN(const PartialShape images, c.WithRank(boxes + 1, 1));
  WEIR_ASSIGN(const int64_t count, MergeDim(corners.dim(0), images.dim(0)));
  WEIR_TRY(ExpectDim(corners.dim(1), 4));
  return count;
}

Status CropShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape images, c.WithRank(0, 4));
  WEIR_ASSIGN(const int64_t boxes, BoxCount(c, 1));
  return SetSizedImages(c, boxes, 3, images.dim(3), "crop dimensions must be positive");
}

Status CropGradImageShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 4).status());
  WEIR_TRY(BoxCount(c, 1).status());
  WEIR_ASSIGN(const PartialShape given, c.shape_from(3));
  WEIR_ASSIGN(PartialShape images, ToRank(given, 4));
  c.set_output(0, std::move(images));
  return Status();
}

Status CropGradBoxesShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 4).status());
  WEIR_TRY(c.WithRank(1, 4).status());
  WEIR_ASSIGN(const int64_t boxes, BoxCount(c, 2));
  c.set_output(0, PartialShape::Of({boxes, 4}));
  return Status();
}

Result<std::vector<Grad>> CropGradient(GradContext& g) {
  WEIR_ASSIGN(const std::string method, g.attrs().String("method"));
  const DType type = g.TypeOf(g.X(0));
  std::vector<Grad> grads(4);
  if (type == DType::kHalf || type == DType::kFloat || type == DType::kDouble) {
    grads[0] = g.Apply("CropAndResizeGradImage", {g.Dy(0), g.X(1), g.X(2), g.ShapeOp(g.X(0))},
                       {{"T", type}, {"method", method}});
  }
  grads[1] = g.Apply("CropAndResizeGradBoxes", {g.Dy(0), g.X(0), g.X(1), g.X(2)});
  return grads;
}

void DeclareCrops(OpRegistry& ops) {
  constexpr std::string_view kCropT = "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}";
  constexpr std::string_view kMethod = "method: {'bilinear', 'nearest'} = 'bilinear'";
  Image(ops, "CropAndResize")
      .In("image: T")
      .In("boxes: float")
      .In("box_ind: int32")
      .In("crop_size: int32")
      .Out("crops: float")
      .Attr(kCropT)
      .Attr(kMethod)
      .Attr("extrapolation_value: float = 0")
      .Doc(
          "The box [y1, x1, y2, x2] of image box_ind, per box, scaled to crop_size. Corners are fractions of height - "
          "1 "
          "and width - 1; places outside of the image give extrapolation_value.")
      .Shape(CropShape)
      .Grad(CropGradient);
  Image(ops, "CropAndResizeGradImage")
      .In("grads: float")
      .In("boxes: float")
      .In("box_ind: int32")
      .In("image_size: int32")
      .Out("output: T")
      .Attr("T: {float, half, double}")
      .Attr(kMethod)
      .Doc("The gradient of CropAndResize by its images, whose shape is image_size.")
      .Shape(CropGradImageShape)
      .NoGradient(op::kUndefinedGradient);
  Image(ops, "CropAndResizeGradBoxes")
      .In("grads: float")
      .In("image: T")
      .In("boxes: float")
      .In("box_ind: int32")
      .Out("output: float")
      .Attr(kCropT)
      .Attr("method: {'bilinear'} = 'bilinear'")
      .Doc("The gradient of CropAndResize by its boxes.")
      .Shape(CropGradBoxesShape)
      .NoGradient(op::kUndefinedGradient);
}

}  // namespace

void DeclareResize(OpRegistry& ops) {
  DeclareResizes(ops);
  DeclareResizeGradients(ops);
  DeclareCrops(ops);
}

}  // namespace weir::ops
