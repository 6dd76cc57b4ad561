// Images scaled and moved by any numbers, and images under projective transforms.
#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {
namespace {

using op::AttrList;
using op::Category;
using op::Grad;
using op::GradContext;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;
using op::Value;

/// [batch, height, width, channels] with the extents of vector input `size`.
Status SizedShape(ShapeContext& c, int size) {
  WEIR_ASSIGN(const PartialShape images, c.WithRank(0, 4));
  WEIR_ASSIGN(const PartialShape vector, c.WithRank(size, 1));
  WEIR_TRY(ExpectDim(vector.dim(0), 2));
  const std::optional<std::vector<int64_t>> given = c.ints(size);
  for (const int64_t extent : given.value_or(std::vector<int64_t>())) {
    if (extent <= 0) return InvalidArgument("output dimensions must be positive");
  }
  WEIR_ASSIGN(const PartialShape extents, c.shape_from(size));
  const bool known = extents.has_rank();
  c.set_output(
      0, PartialShape::Of({images.dim(0), known ? extents.dim(0) : -1, known ? extents.dim(1) : -1, images.dim(3)}));
  return c.outputs()[0].Check();
}

/// The op of TensorFlow's gradient takes float.
Result<std::vector<Grad>> ScaleGradient(GradContext& g) {
  std::vector<Grad> grads(4);
  const DType type = g.TypeOf(g.X(0));
  if (!IsFloating(type)) return grads;
  WEIR_ASSIGN(const bool antialias, g.attrs().Bool("antialias"));
  WEIR_ASSIGN(const std::string kernel, g.attrs().String("kernel_type"));
  const auto cast = [&](Value v, DType to) { return type == DType::kFloat ? v : g.Apply("Cast", {v}, {{"DstT", to}}); };
  const Value dx = g.Apply("ScaleAndTranslateGrad", {g.Dy(0), cast(g.X(0), DType::kFloat), g.X(2), g.X(3)},
                           {{"antialias", antialias}, {"kernel_type", kernel}});
  grads[0] = cast(dx, type);
  return grads;
}

/// dy under the inverse transforms, which are 3 x 3 matrices whose last element, 1, is not stored.
Result<std::vector<Grad>> ProjectionGradient(GradContext& g) {
  WEIR_ASSIGN(const std::string interpolation, g.attrs().String("interpolation"));
  WEIR_ASSIGN(const std::string fill_mode, g.attrs().String("fill_mode"));
  const Value flat = g.X(1);
  const Value padded =
      g.Apply("PadV2", {flat, g.Reshape(g.ConstInts({0, 0, 0, 1}), g.ConstInts({2, 2})), g.ConstLike(flat, 1)});
  const Value matrices = g.Reshape(padded, g.ConstInts({-1, 3, 3}));
  const Value inverse = g.Reshape(g.Apply("MatrixInverse", {matrices}), g.ConstInts({-1, 9}));
  const Value last = g.Apply("Slice", {inverse, g.ConstInts({0, 8}), g.ConstInts({-1, 1})});
  const Value back = g.Apply("Slice", {g.Div(inverse, last), g.ConstInts({0, 0}), g.ConstInts({-1, 8})});
  const Value size = g.Apply("Slice", {g.ShapeOp(g.X(0)), g.ConstInts({1}), g.ConstInts({2})});
  std::vector<Grad> grads(static_cast<size_t>(g.num_inputs()));
  grads[0] = g.Apply("ImageProjectiveTransformV2", {g.Dy(0), back, size},
                     {{"interpolation", interpolation}, {"fill_mode", fill_mode}});
  return grads;
}

OpBuilder Projection(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name)
      .Is(Category::kNeural)
      .In("images: dtype")
      .In("transforms: float")
      .In("output_shape: int32")
      .Out("transformed_images: dtype")
      .Attr("dtype: {uint8, int32, int64, half, bfloat16, float, double}")
      .Attr("interpolation: string")
      .Attr("fill_mode: string = 'CONSTANT'")
      .Shape([](ShapeContext& c) { return SizedShape(c, 2); })
      .Grad(ProjectionGradient);
}

}  // namespace

void DeclareWarps(OpRegistry& ops) {
  constexpr std::string_view kAntialias = "antialias: bool = true", kKernel = "kernel_type: string = 'lanczos3'";
  ops.Declare("ScaleAndTranslate")
      .Is(Category::kNeural)
      .In("images: T")
      .In("size: int32")
      .In("scale: float")
      .In("translation: float")
      .Out("resized_images: float")
      .Attr("T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}")
      .Attr(kKernel)
      .Attr(kAntialias)
      .Shape([](ShapeContext& c) { return SizedShape(c, 1); })
      .Grad(ScaleGradient)
      .Doc(
          "NHWC images of size [height, width]: pixel y is the mean around (y - translation) / scale, weighted by the "
          "kernel, which antialias widens when it shrinks the image.");
  ops.Declare("ScaleAndTranslateGrad")
      .Is(Category::kNeural)
      .In("grads: T")
      .In("original_image: T")
      .In("scale: float")
      .In("translation: float")
      .Out("output: T")
      .Attr("T: {float}")
      .Attr(kKernel)
      .Attr(kAntialias)
      .Shape(op::SameAs(1))
      .NoGradient(op::kUndefinedGradient)
      .Doc("The gradient of ScaleAndTranslate by its images.");
  constexpr const char* kProjectionDoc =
      "Pixel (x, y) is that at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) of its image, with k = c0 x + c1 y + 1 "
      "and a row a0 … c1 of transforms for each image or for all; fill_mode says what lies outside.";
  Projection(ops, "ImageProjectiveTransformV2").Doc(kProjectionDoc);
  Projection(ops, "ImageProjectiveTransformV3").In("fill_value: float").Doc(kProjectionDoc);
}

}  // namespace weir::ops
