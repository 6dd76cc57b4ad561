// Bounding boxes: suppression of overlapping ones, drawing, random parts of images.
#include <algorithm>

#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Category;
using op::MergeDim;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;

/// The length of the first output: known only if it is padded.
Result<int64_t> Selected(const ShapeContext& c) {
  if (!c.attrs().Has("pad_to_max_output_size")) return int64_t{-1};
  WEIR_ASSIGN(const bool padded, c.attrs().Bool("pad_to_max_output_size"));
  if (!padded) return int64_t{-1};
  WEIR_ASSIGN(const int64_t size, DimFromScalar(c, 2));
  return size;
}

/// boxes [count, 4] or overlaps [count, count], scores [count] and scalars; a vector per output but the scalar count.
Status SuppressionShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape boxes, c.WithRank(0, 2));
  WEIR_ASSIGN(const PartialShape scores, c.WithRank(1, 1));
  for (int i = 2; i < c.num_inputs(); ++i) WEIR_TRY(c.WithRank(i, 0).status());
  WEIR_TRY(MergeDim(boxes.dim(0), scores.dim(0)).status());
  if (c.attrs().def().name.ends_with("WithOverlaps")) {
    WEIR_TRY(MergeDim(boxes.dim(0), boxes.dim(1)).status());
  } else {
    WEIR_TRY(ExpectDim(boxes.dim(1), 4));
  }
  WEIR_ASSIGN(const int64_t selected, Selected(c));
  const int outputs = static_cast<int>(c.outputs().size());
  for (int i = 0; i < outputs; ++i) {
    const bool count = i > 0 && i == outputs - 1;
    c.set_output(i, count ? PartialShape(Shape()) : VectorOf(selected));
  }
  return Status();
}

Status DrawShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape images, c.WithRankAtLeast(0, 3));
  c.set_output(0, std::move(images));
  return Status();
}

OpBuilder Suppression(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name).Is(Category::kNeural).Shape(SuppressionShape);
}

constexpr const char* kSelectDoc =
    "The numbers of boxes [y1, x1, y2, x2] in order of their scores, the first of equal ones first, without boxes "
    "whose "
    "intersection over union with a selected one is above iou_threshold; at most max_output_size.";
constexpr const char* kScoredDoc =
    "As NonMaxSuppressionV2, without boxes whose score is not above score_threshold. valid_outputs is the count; with "
    "pad_to_max_output_size zeros follow.";

void DeclareSuppressions(OpRegistry& ops) {
  constexpr std::string_view kBoxT = "T: {half, float} = DT_FLOAT";
  constexpr std::string_view kThresholdT = "T_threshold: {half, float} = DT_FLOAT";
  constexpr std::string_view kPad = "pad_to_max_output_size: bool = false";
  Suppression(ops, "NonMaxSuppression")
      .In("boxes: float")
      .In("scores: float")
      .In("max_output_size: int32")
      .Out("selected_indices: int32")
      .Attr("iou_threshold: float = 0.5")
      .Doc(kSelectDoc)
      .NoGradient(kDiscrete);
  const auto scored = [&](std::string_view name, std::string_view threshold) {
    OpBuilder op = Suppression(ops, name);
    op.In("boxes: T").In("scores: T").In("max_output_size: int32").In("iou_threshold: " + std::string(threshold));
    return op;
  };
  scored("NonMaxSuppressionV2", "T_threshold")
      .Out("selected_indices: int32")
      .Attr(kBoxT)
      .Attr(kThresholdT)
      .Doc(kSelectDoc)
      .NoGradient(kDiscrete);
  scored("NonMaxSuppressionV3", "T_threshold")
      .In("score_threshold: T_threshold")
      .Out("selected_indices: int32")
      .Attr(kBoxT)
      .Attr(kThresholdT)
      .Doc(kScoredDoc)
      .NoGradient(kDiscrete);
  scored("NonMaxSuppressionV4", "T_threshold")
      .In("score_threshold: T_threshold")
      .Out("selected_indices: int32")
      .Out("valid_outputs: int32")
      .Attr(kBoxT)
      .Attr(kThresholdT)
      .Attr(kPad)
      .Doc(kScoredDoc)
      .NoGradient(kDiscrete);
  scored("NonMaxSuppressionV5", "T")
      .In("score_threshold: T")
      .In("soft_nms_sigma: T")
      .Out("selected_indices: int32")
      .Out("selected_scores: T")
      .Out("valid_outputs: int32")
      .Attr(kBoxT)
      .Attr(kPad)
      .Doc(
          "As NonMaxSuppressionV4; with a positive soft_nms_sigma, a box that overlaps a selected one by o keeps a "
          "score lower by the factor e^(-o^2 / (2 soft_nms_sigma)).")
      .NoGradient(kDiscrete);
  Suppression(ops, "NonMaxSuppressionWithOverlaps")
      .In("overlaps: float")
      .In("scores: float")
      .In("max_output_size: int32")
      .In("overlap_threshold: float")
      .In("score_threshold: float")
      .Out("selected_indices: int32")
      .Doc("As NonMaxSuppressionV3, with the overlap of every pair of boxes in a matrix.")
      .NoGradient(kDiscrete);
}

/// boxes [batch, count, 1 or classes, 4], scores [batch, count, classes] and scalars.
Status CombinedShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape boxes, c.WithRank(0, 4));
  WEIR_ASSIGN(const PartialShape scores, c.WithRank(1, 3));
  for (int i = 2; i < c.num_inputs(); ++i) WEIR_TRY(c.WithRank(i, 0).status());
  if (boxes.dim(3) >= 0 && boxes.dim(3) != 4) return InvalidArgument("boxes must have 4 columns");
  if (boxes.dim(0) >= 0 && scores.dim(0) >= 0 && boxes.dim(0) != scores.dim(0)) {
    return InvalidArgument("boxes and scores must have same batch size");
  }
  if (boxes.dim(2) >= 0 && scores.dim(2) >= 0 && boxes.dim(2) != 1 && boxes.dim(2) != scores.dim(2)) {
    return InvalidArgument("third dimension of boxes must be either 1 or num classes");
  }
  WEIR_ASSIGN(const bool per_class, c.attrs().Bool("pad_per_class"));
  const std::optional<int64_t> of_class = c.scalar_int(2), total = c.scalar_int(3);
  if (of_class && *of_class <= 0) return InvalidArgument("max_size_per_class must be positive");
  if (total && *total <= 0) return InvalidArgument("max_total_size must be > 0");
  int64_t size = total.value_or(-1);
  if (per_class && size >= 0) {
    const bool known = of_class.has_value() && scores.dim(2) >= 0;
    size = known ? std::min(size, *of_class * scores.dim(2)) : -1;
  }
  c.set_output(0, PartialShape::Of({boxes.dim(0), size, 4}));
  c.set_output(1, PartialShape::Of({boxes.dim(0), size}));
  c.set_output(2, PartialShape::Of({boxes.dim(0), size}));
  c.set_output(3, VectorOf(boxes.dim(0)));
  return Status();
}

void DeclareCombined(OpRegistry& ops) {
  ops.Declare("CombinedNonMaxSuppression")
      .Is(Category::kNeural)
      .In("boxes: float")
      .In("scores: float")
      .In("max_output_size_per_class: int32")
      .In("max_total_size: int32")
      .In("iou_threshold: float")
      .In("score_threshold: float")
      .Out("nmsed_boxes: float")
      .Out("nmsed_scores: float")
      .Out("nmsed_classes: float")
      .Out("valid_detections: int32")
      .Attr("pad_per_class: bool = false")
      .Attr("clip_boxes: bool = true")
      .Shape(CombinedShape)
      .NoGradient(kDiscrete)
      .Doc(
          "For each image the best boxes of all classes by NonMaxSuppressionV3 of each class, in order of their "
          "scores, and zeros behind the valid_detections; clip_boxes limits coordinates to [0, 1].");
}

void DeclareDrawing(OpRegistry& ops) {
  constexpr std::string_view kImageT = "T: {float, half} = DT_FLOAT";
  ops.Declare("DrawBoundingBoxes")
      .Is(Category::kNeural)
      .In("images: T")
      .In("boxes: float")
      .Out("output: T")
      .Attr(kImageT)
      .Doc("Images with the outlines of boxes [batch, count, 4] in ten colours in turn.")
      .Shape(DrawShape)
      .NoGradient("TensorFlow declares it not differentiable");
  ops.Declare("DrawBoundingBoxesV2")
      .Is(Category::kNeural)
      .In("images: T")
      .In("boxes: float")
      .In("colors: float")
      .Out("output: T")
      .Attr(kImageT)
      .Doc("Images with the outlines of boxes [batch, count, 4] in the rows of colors in turn.")
      .Shape(DrawShape)
      .NoGradient(op::kUndefinedGradient);
}

/// image_size [3], boxes [batch, count, 4], perhaps min_object_covered [].
Status DistortedShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape size, c.WithRank(0, 1));
  WEIR_ASSIGN(const PartialShape boxes, c.WithRank(1, 3));
  if (c.num_inputs() > 2) WEIR_TRY(c.WithRank(2, 0).status());
  WEIR_TRY(ExpectDim(size.dim(0), 3));
  WEIR_TRY(ExpectDim(boxes.dim(2), 4));
  c.set_output(0, VectorOf(3));
  c.set_output(1, VectorOf(3));
  c.set_output(2, PartialShape::Of({1, 1, 4}));
  return Status();
}

void DeclareDistorted(OpRegistry& ops) {
  const auto distorted = [&ops](std::string_view name, std::string_view no_gradient) {
    return ops.Declare(name)
        .Is(Category::kRandom)
        .In("image_size: T")
        .In("bounding_boxes: float")
        .Out("begin: T")
        .Out("size: T")
        .Out("bboxes: float")
        .Attr("T: {uint8, int8, int16, int32, int64}")
        .Attr("aspect_ratio_range: list(float) = [0.75, 1.33]")
        .Attr("area_range: list(float) = [0.05, 1.0]")
        .Attr("max_attempts: int = 100")
        .Attr("use_image_if_no_bounding_boxes: bool = false")
        .Shape(DistortedShape)
        .NoGradient(no_gradient)
        .Doc(
            "A random part of an image, as begin and size for Slice and as a box, that covers the portion "
            "min_object_covered of some box: its area is a portion of the image's in area_range, its width its height "
            "times a number in aspect_ratio_range. The whole image if max_attempts find none.");
  };
  constexpr std::string_view kSeed = "seed: int = 0", kSeed2 = "seed2: int = 0";
  constexpr std::string_view kDeclared = "TensorFlow declares it not differentiable";
  distorted("SampleDistortedBoundingBox", kDeclared)
      .Attr(kSeed)
      .Attr(kSeed2)
      .Attr("min_object_covered: float = 0.1")
      .Stateful();
  distorted("SampleDistortedBoundingBoxV2", kDeclared)
      .In("min_object_covered: float")
      .Attr(kSeed)
      .Attr(kSeed2)
      .Stateful();
  distorted("StatelessSampleDistortedBoundingBox", op::kUndefinedGradient)
      .In("min_object_covered: float")
      .In("seed: Tseed")
      .Attr("Tseed: {int32, int64}");
}

}  // namespace

void DeclareBoxes(OpRegistry& ops) {
  DeclareSuppressions(ops);
  DeclareCombined(ops);
  DeclareDrawing(ops);
  DeclareDistorted(ops);
}

}  // namespace weir::ops
