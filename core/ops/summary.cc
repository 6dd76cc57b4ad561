// Summaries: values as serialized protos for event files.
#include "core/op/shape_context.h"
#include "core/ops/families.h"

namespace weir::ops {
namespace {

using op::Category;
using op::OpBuilder;
using op::OpRegistry;
using op::Scalar;
using op::ShapeContext;

/// tags and values have one shape.
Status HistogramSummaryShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 0).status());
  c.set_output(0, Shape());
  return Status();
}

OpBuilder Summary(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name).Out("summary: string").Is(Category::kSummary).NoGradient("a summary is a serialized proto");
}

}  // namespace

void DeclareSummary(OpRegistry& ops) {
  Summary(ops, "ScalarSummary")
      .In("tags: string")
      .In("values: T")
      .Attr("T: realnumbertype")
      .Shape(Scalar())
      .Doc("A Summary proto with one simple value per tag.");
  Summary(ops, "HistogramSummary")
      .In("tag: string")
      .In("values: T")
      .Attr("T: realnumbertype = DT_FLOAT")
      .Shape(HistogramSummaryShape)
      .Doc("A Summary proto with the histogram of all values; a value that is not finite is InvalidArgument.");
  Summary(ops, "ImageSummary")
      .In("tag: string")
      .In("tensor: T")
      .Attr("max_images: int >= 1 = 3")
      .Attr("T: {uint8, float, half, double} = DT_FLOAT")
      .Attr("bad_color: tensor = [255, 0, 0, 255]")
      .Shape(HistogramSummaryShape)
      .Doc(
          "A Summary proto with the first max_images images of [batch, height, width, channels] as PNG files, named "
          "tag/image/0 and so on. Images of floating-point numbers are scaled; pixels that are not finite get "
          "bad_color.");
  Summary(ops, "AudioSummary")
      .In("tag: string")
      .In("tensor: float")
      .Attr("sample_rate: float")
      .Attr("max_outputs: int >= 1 = 3")
      .Shape(HistogramSummaryShape)
      .Doc("As AudioSummaryV2, with the sample rate in an attribute.");
  Summary(ops, "AudioSummaryV2")
      .In("tag: string")
      .In("tensor: float")
      .In("sample_rate: float")
      .Attr("max_outputs: int >= 1 = 3")
      .Shape(HistogramSummaryShape)
      .Doc(
          "A Summary proto with the first max_outputs sounds of [batch, samples, channels] or [batch, samples] as WAV "
          "files, named tag/audio/0 and so on.");
  Summary(ops, "TensorSummary")
      .In("tensor: T")
      .Attr("T: type")
      .Attr("description: string = ''")
      .Attr("labels: list(string) = []")
      .Attr("display_name: string = ''")
      .Shape(Scalar())
      .Doc("A Summary proto with the tensor, named as the node.");
  Summary(ops, "TensorSummaryV2")
      .In("tag: string")
      .In("tensor: T")
      .In("serialized_summary_metadata: string")
      .Attr("T: type")
      .Shape(Scalar())
      .Doc("A Summary proto with the tensor, named `tag`, and a serialized SummaryMetadata.");
  Summary(ops, "MergeSummary")
      .In("inputs: N*string")
      .Attr("N: int >= 1")
      .Shape(Scalar())
      .Doc("One Summary proto with the values of all; a tag that occurs twice is InvalidArgument.");
}

}  // namespace weir::ops
