// Images in files: PNG, JPEG, GIF and BMP.
#include <string>

#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {
namespace {

using op::Category;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;

/// [height, width, channels]; unknown extents are those of the image.
Status DecodedShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) WEIR_TRY(c.WithRank(i, i).status());
  int64_t channels = 0;
  if (c.attrs().Find("channels") != nullptr) {
    WEIR_ASSIGN(channels, c.attrs().Int("channels"));
  }
  if (channels < 0) return InvalidArgument("channels must be non-negative, got {}", channels);
  const int64_t dims[] = {-1, -1, channels == 0 ? -1 : channels};
  WEIR_ASSIGN(PartialShape shape, PartialShape::Make(dims));
  c.set_output(0, std::move(shape));
  return Status();
}

Status DecodedGifShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 0).status());
  c.set_output(0, PartialShape{-1, -1, -1, 3});
  return Status();
}

/// With expand_animations, a GIF gives a fourth axis, of frames.
Status DecodedImageShape(ShapeContext& c) {
  WEIR_TRY(DecodedShape(c));
  WEIR_ASSIGN(const bool expand, c.attrs().Bool("expand_animations"));
  if (expand) c.set_output(0, PartialShape());
  return Status();
}

/// One text per image of [height, width, channels].
Status EncodedShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape image, c.WithRankAtLeast(0, 3));
  c.set_output(0, image.has_rank() ? Span(image, 0, image.rank() - 3) : PartialShape());
  return Status();
}

Status EncodedJpegShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 3).status());
  c.set_output(0, PartialShape(Shape()));
  return Status();
}

Status JpegExtentsShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 0).status());
  c.set_output(0, VectorOf(3));
  return Status();
}

OpBuilder ImageFile(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name).Is(Category::kNeural).NoGradient(op::kUndefinedGradient);
}

void DeclareDecoders(OpRegistry& ops) {
  for (const bool crop : {false, true}) {
    OpBuilder jpeg = ImageFile(ops, crop ? "DecodeAndCropJpeg" : "DecodeJpeg");
    jpeg.In("contents: string");
    if (crop) jpeg.In("crop_window: int32");
    jpeg.Out("image: uint8").Attr("channels: int = 0").Attr("ratio: int = 1").Attr("fancy_upscaling: bool = true");
    jpeg.Attr("try_recover_truncated: bool = false").Attr("acceptable_fraction: float = 1.0");
    jpeg.Attr("dct_method: string = ''").Shape(DecodedShape);
    jpeg.Doc(crop ? "The part of a JPEG image at crop_window: top, left, height, width."
                  : "The pixels of an image, [height, width, channels], made 1/ratio as large. channels = 0: as many "
                    "as the image has.");
  }
  ImageFile(ops, "DecodePng")
      .In("contents: string")
      .Out("image: dtype")
      .Attr("channels: int = 0")
      .Attr("dtype: {uint8, uint16} = DT_UINT8")
      .Shape(DecodedShape)
      .Doc("The pixels of an image, [height, width, channels]. channels = 0: as many as the image has.");
  ImageFile(ops, "DecodeBmp")
      .In("contents: string")
      .Out("image: uint8")
      .Attr("channels: int = 0")
      .Shape(DecodedShape)
      .Doc("The pixels of a BMP image, [height, width, channels].");
  ImageFile(ops, "DecodeGif")
      .In("contents: string")
      .Out("image: uint8")
      .Shape(DecodedGifShape)
      .Doc("The frames of a GIF image, [frames, height, width, 3].");
  ImageFile(ops, "DecodeImage")
      .In("contents: string")
      .Out("image: dtype")
      .Attr("channels: int = 0")
      .Attr("dtype: {uint8, uint16, float} = DT_UINT8")
      .Attr("expand_animations: bool = true")
      .Shape(DecodedImageShape)
      .Doc(
          "The pixels of an image in one of the formats, [height, width, channels]; all frames of a GIF, with "
          "expand_animations. Of type float, between 0 and 1.");
}

void DeclareEncoders(OpRegistry& ops) {
  ImageFile(ops, "EncodePng")
      .In("image: T")
      .Out("contents: string")
      .Attr("compression: int = -1")
      .Attr("T: {uint8, uint16} = DT_UINT8")
      .Shape(EncodedShape)
      .Doc("A PNG file of each image of [height, width, channels], with 1 to 4 channels.");
  ImageFile(ops, "EncodeJpeg")
      .In("image: uint8")
      .Out("contents: string")
      .Attr("format: {'', 'grayscale', 'rgb'} = ''")
      .Attr("quality: int = 95")
      .Attr("progressive: bool = false")
      .Attr("optimize_size: bool = false")
      .Attr("chroma_downsampling: bool = true")
      .Attr("density_unit: {'in', 'cm'} = 'in'")
      .Attr("x_density: int = 300")
      .Attr("y_density: int = 300")
      .Attr("xmp_metadata: string = ''")
      .Shape(EncodedJpegShape)
      .Doc("A JPEG file of an image of [height, width, channels], with 1 or 3 channels.");
  ImageFile(ops, "ExtractJpegShape")
      .In("contents: string")
      .Out("image_shape: output_type")
      .Attr("output_type: {int32, int64} = DT_INT32")
      .Shape(JpegExtentsShape)
      .Doc("[height, width, channels] of a JPEG file, whose pixels are not read.");
}

}  // namespace

void DeclareImages(OpRegistry& ops) {
  DeclareDecoders(ops);
  DeclareEncoders(ops);
}

}  // namespace weir::ops
