// Quantised numbers: integers that stand for numbers at equal distances in a range, which travels beside them.
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/windows.h"

namespace weir::ops {
namespace {

using op::Category;
using op::Grad;
using op::GradContext;
using op::MergeDim;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;

/// Inputs `first` and `first` + 1 are the ends of the range: scalars, or, with the attribute `axis`, vectors with an
/// element per slice of input `sliced` along it.
Result<PartialShape> RangeOf(ShapeContext& c, int sliced, int first) {
  int64_t axis = -1;
  if (c.attrs().Find("axis") != nullptr) {
    WEIR_ASSIGN(axis, c.attrs().Int("axis"));
  }
  if (axis < -1) return InvalidArgument("axis should be at least -1, got {}", axis);
  const int rank = axis == -1 ? 0 : 1;
  WEIR_ASSIGN(PartialShape range, c.WithRank(first, rank));
  WEIR_ASSIGN(range, range.Merge(c.input(first + 1)));
  if (axis == -1) return range;
  if (axis >= kMaxRank) return InvalidArgument("axis must be less than {}, got {}", kMaxRank, axis);
  WEIR_ASSIGN(const PartialShape input, c.WithRankAtLeast(sliced, static_cast<int>(axis) + 1));
  if (!input.has_rank()) return range;
  WEIR_ASSIGN(const int64_t slices, MergeDim(range.dim(0), input.dim(static_cast<int>(axis))));
  return VectorOf(slices);
}

/// Output 0 has the shape of input 0; the others that of the range.
Status SlicedShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape range, RangeOf(c, 0, 1));
  c.set_output(0, c.input(0));
  for (int i = 1; i < c.num_outputs(); ++i) c.set_output(i, range);
  return Status();
}

Status RoundedShape(ShapeContext& c) {
  WEIR_TRY(SlicedShape(c));
  return c.num_inputs() > 3 ? c.WithRank(3, 0).status() : Status();
}

Status RoundedGradShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape range, RangeOf(c, 1, 2));
  WEIR_ASSIGN(PartialShape input, c.input(0).Merge(c.input(1)));
  c.set_output(0, std::move(input));
  c.set_output(1, range);
  c.set_output(2, range);
  return Status();
}

/// Inputs from `first` on and outputs from 1 on are scalars.
Status ScalarRanges(ShapeContext& c, int first) {
  for (int i = first; i < c.num_inputs(); ++i) WEIR_TRY(c.WithRank(i, 0).status());
  for (int i = 1; i < c.num_outputs(); ++i) c.set_output(i, PartialShape(Shape()));
  return Status();
}

Status ElementwiseShape(ShapeContext& c) {
  c.set_output(0, c.input(0));
  return ScalarRanges(c, 1);
}

Status RangeOnlyShape(ShapeContext& c) {
  c.set_output(0, PartialShape(Shape()));
  return ScalarRanges(c, 1);
}

Status QuantizedConv2DShape(ShapeContext& c) {
  const ImageAxes axes;
  WEIR_ASSIGN(const PartialShape input, c.WithRank(0, 4));
  WEIR_ASSIGN(const PartialShape filter, c.WithRank(1, 4));
  WEIR_ASSIGN(const std::vector<int64_t> strides, PerAxis(c.attrs(), "strides", axes, "QuantizedConv2D", "stride"));
  WEIR_ASSIGN(const std::vector<int64_t> dilations,
              PerAxis(c.attrs(), "dilations", axes, "QuantizedConv2D", "dilation"));
  WEIR_TRY(MergeDim(input.dim(3), filter.dim(2)).status());
  WEIR_ASSIGN(const WindowPaddings paddings, WindowPaddings::Of(c.attrs(), axes));
  WEIR_ASSIGN(const std::vector<int64_t> extents,
              WindowedExtents(axes, input, {filter.dim(0), filter.dim(1)}, strides, dilations, paddings));
  c.set_output(0, axes.Shape(input.dim(0), extents, filter.dim(3)));
  return ScalarRanges(c, 2);
}

Status QuantizedPoolShape(ShapeContext& c) {
  const ImageAxes axes;
  WEIR_ASSIGN(const PartialShape input, c.WithRank(0, 4));
  WEIR_ASSIGN(const std::vector<int64_t> windows, PerAxis(c.attrs(), "ksize", axes, "QuantizedPool", "ksize"));
  WEIR_ASSIGN(const std::vector<int64_t> strides, PerAxis(c.attrs(), "strides", axes, "QuantizedPool", "stride"));
  WEIR_ASSIGN(const WindowPaddings paddings, WindowPaddings::Of(c.attrs(), axes));
  WEIR_ASSIGN(const std::vector<int64_t> extents,
              WindowedExtents(axes, input, {windows[1], windows[2]}, strides, {}, paddings));
  c.set_output(0, axes.Shape(input.dim(0), extents, input.dim(3)));
  return ScalarRanges(c, 1);
}

Status QuantizedMatMulShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape a, c.WithRank(0, 2));
  WEIR_ASSIGN(const PartialShape b, c.WithRank(1, 2));
  WEIR_ASSIGN(const bool transpose_a, c.attrs().Bool("transpose_a"));
  WEIR_ASSIGN(const bool transpose_b, c.attrs().Bool("transpose_b"));
  WEIR_ASSIGN(PartialShape product, MatrixProduct(a, transpose_a, b, transpose_b));
  c.set_output(0, std::move(product));
  return ScalarRanges(c, 2);
}

/// The gradient of the output, of the first input only.
std::vector<Grad> StraightThrough(GradContext& g) {
  std::vector<Grad> grads(static_cast<size_t>(g.num_inputs()));
  grads[0] = g.Dy(0);
  return grads;
}

std::vector<Grad> RoundedGradient(GradContext& g) {
  op::AttrList attrs;
  if (const op::AttrValue* axis = g.attrs().Find("axis")) attrs.emplace_back("axis", *axis);
  const std::vector<op::Value> all =
      g.ApplyAll("QuantizeAndDequantizeV4Grad", {g.Dy(0), g.X(0), g.X(1), g.X(2)}, std::move(attrs));
  return std::vector<Grad>(all.begin(), all.end());
}

OpBuilder Quantized(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kNeural); }

constexpr const char* kModes = "mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'";

void DeclareQuantizers(OpRegistry& ops) {
  Quantized(ops, "QuantizeV2")
      .In("input: float")
      .In("min_range: float")
      .In("max_range: float")
      .Out("output: T")
      .Out("output_min: float")
      .Out("output_max: float")
      .Attr("T: quantizedtype")
      .Attr(kModes)
      .Attr("round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO'")
      .Attr("narrow_range: bool = false")
      .Attr("axis: int = -1")
      .Attr("ensure_minimum_range: float = 0.01")
      .Shape(SlicedShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc(
          "The input, limited to [min_range, max_range], as integers, and the range that they stand for. `mode` says "
          "how they are spread over it; SCALED has the integer 0 for 0. With `axis`, each slice has a range of its "
          "own.");
  Quantized(ops, "Dequantize")
      .In("input: T")
      .In("min_range: float")
      .In("max_range: float")
      .Out("output: dtype")
      .Attr("T: quantizedtype")
      .Attr(kModes)
      .Attr("narrow_range: bool = false")
      .Attr("axis: int = -1")
      .Attr("dtype: {bfloat16, float} = DT_FLOAT")
      .Shape(SlicedShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("The numbers that integers of a range stand for: the reverse of QuantizeV2.");
}

constexpr const char* kRoundedT = "T: {bfloat16, half, float, double}";
constexpr const char* kRoundModes = "round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'";

OpBuilder Rounded(OpRegistry& ops, std::string_view name) {
  return Quantized(ops, name)
      .In("input: T")
      .Out("output: T")
      .Attr("signed_input: bool = true")
      .Attr(kRoundedT)
      .Shape(RoundedShape)
      .Grad(StraightThrough)
      .Doc(
          "The input as after quantisation to num_bits and back: rounded to numbers at equal distances, of which one "
          "is "
          "0, in the given range or in that of the input. The gradient passes as if nothing were rounded.");
}

void DeclareRoundings(OpRegistry& ops) {
  Rounded(ops, "QuantizeAndDequantize")
      .Attr("num_bits: int = 8")
      .Attr("range_given: bool = false")
      .Attr("input_min: float = 0.0")
      .Attr("input_max: float = 0.0")
      .Shape(op::SameAs(0));
  for (const char* name : {"QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"}) {
    OpBuilder rounded = Rounded(ops, name);
    rounded.In("input_min: T").In("input_max: T").Attr("num_bits: int = 8").Attr("range_given: bool = false");
    rounded.Attr(kRoundModes).Attr("narrow_range: bool = false").Attr("axis: int = -1");
    if (std::string_view(name).ends_with("4")) rounded.Grad(RoundedGradient);
  }
  Rounded(ops, "QuantizeAndDequantizeV3")
      .In("input_min: T")
      .In("input_max: T")
      .In("num_bits: int32")
      .Attr("range_given: bool = true")
      .Attr("narrow_range: bool = false")
      .Attr("axis: int = -1");
  Quantized(ops, "QuantizeAndDequantizeV4Grad")
      .In("gradients: T")
      .In("input: T")
      .In("input_min: T")
      .In("input_max: T")
      .Out("input_backprop: T")
      .Out("input_min_backprop: T")
      .Out("input_max_backprop: T")
      .Attr(kRoundedT)
      .Attr("axis: int = -1")
      .Shape(RoundedGradShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("The gradient where the input is in [input_min, input_max], and zeros elsewhere and for the range.");
}

void DeclareRanges(OpRegistry& ops) {
  Quantized(ops, "RequantizationRange")
      .In("input: Tinput")
      .In("input_min: float")
      .In("input_max: float")
      .Out("output_min: float")
      .Out("output_max: float")
      .Attr("Tinput: quantizedtype")
      .Shape(RangeOnlyShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("The least and the largest number that the integers stand for; the least is at most 0.");
  Quantized(ops, "Requantize")
      .In("input: Tinput")
      .In("input_min: float")
      .In("input_max: float")
      .In("requested_output_min: float")
      .In("requested_output_max: float")
      .Out("output: out_type")
      .Out("output_min: float")
      .Out("output_max: float")
      .Attr("Tinput: quantizedtype")
      .Attr("out_type: quantizedtype")
      .Shape(ElementwiseShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("The same numbers as integers of another type and range.");
}

void DeclareActivations8(OpRegistry& ops) {
  for (const char* name : {"QuantizedRelu", "QuantizedRelu6"}) {
    OpBuilder relu = Quantized(ops, name);
    relu.In("features: Tinput").In("min_features: float").In("max_features: float");
    relu.Out("activations: out_type").Out("min_activations: float").Out("max_activations: float");
    relu.Attr("Tinput: quantizedtype").Attr("out_type: quantizedtype = DT_QUINT8");
    relu.Shape(ElementwiseShape).NoGradient(op::kUndefinedGradient);
    relu.Doc("Integers not below that of 0, and for Relu6 not above that of 6; same range.");
  }
}

void DeclareProducts8(OpRegistry& ops) {
  Quantized(ops, "QuantizedConv2D")
      .In("input: Tinput")
      .In("filter: Tfilter")
      .In("min_input: float")
      .In("max_input: float")
      .In("min_filter: float")
      .In("max_filter: float")
      .Out("output: out_type")
      .Out("min_output: float")
      .Out("max_output: float")
      .Attr("Tinput: quantizedtype")
      .Attr("Tfilter: quantizedtype")
      .Attr("out_type: quantizedtype = DT_QINT32")
      .Attr("strides: list(int)")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("dilations: list(int) = [1, 1, 1, 1]")
      .Shape(QuantizedConv2DShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("Conv2D of quantised images and filters in integers, and the range of its output.");
  Quantized(ops, "QuantizedMatMul")
      .In("a: T1")
      .In("b: T2")
      .In("min_a: float")
      .In("max_a: float")
      .In("min_b: float")
      .In("max_b: float")
      .Out("out: Toutput")
      .Out("min_out: float")
      .Out("max_out: float")
      .Attr("T1: quantizedtype")
      .Attr("T2: quantizedtype")
      .Attr("Toutput: quantizedtype = DT_QINT32")
      .Attr("transpose_a: bool = false")
      .Attr("transpose_b: bool = false")
      .Attr("Tactivation: quantizedtype = DT_QUINT8")
      .Shape(QuantizedMatMulShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("The product of two quantised matrices in integers, and the range of its output.");
  for (const char* name : {"QuantizedMaxPool", "QuantizedAvgPool"}) {
    Quantized(ops, name)
        .In("input: T")
        .In("min_input: float")
        .In("max_input: float")
        .Out("output: T")
        .Out("min_output: float")
        .Out("max_output: float")
        .Attr("T: quantizedtype")
        .Attr("ksize: list(int)")
        .Attr("strides: list(int)")
        .Attr("padding: {'SAME', 'VALID'}")
        .Shape(QuantizedPoolShape)
        .NoGradient(op::kUndefinedGradient)
        .Doc("Maxima or means of windows over quantised images; same range.");
  }
}

}  // namespace

void DeclareQuantize(OpRegistry& ops) {
  DeclareQuantizers(ops);
  DeclareRoundings(ops);
  DeclareRanges(ops);
  DeclareActivations8(ops);
  DeclareProducts8(ops);
}

}  // namespace weir::ops
