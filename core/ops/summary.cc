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
  Summary(ops, "MergeSummary")
      .In("inputs: N*string")
      .Attr("N: int >= 1")
      .Shape(Scalar())
      .Doc("One Summary proto with the values of all; a tag that occurs twice is InvalidArgument.");
}

}  // namespace weir::ops
