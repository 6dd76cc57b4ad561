// Counts, positions in sorted rows, order statistics, distinct slices.
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
using op::Grad;
using op::GradContext;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;
using op::Value;

constexpr std::string_view kCountedT = "T: {int32, int64, float, double}";

/// The number of bins in scalar input i; -1 if it is not known.
Result<int64_t> BinsFrom(const ShapeContext& c, int i) {
  WEIR_TRY(c.WithRank(i, 0).status());
  const std::optional<int64_t> size = c.scalar_int(i);
  if (size && *size < 0) return InvalidArgument("size ({}) must be non-negative", *size);
  return size.value_or(-1);
}

Status BincountShape(ShapeContext& c) {
  WEIR_ASSIGN(const int64_t bins, BinsFrom(c, 1));
  c.set_output(0, VectorOf(bins));
  return Status();
}

Status DenseBincountShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape in, ToRankAtMost(c.input(0), 2));
  WEIR_ASSIGN(const int64_t bins, BinsFrom(c, 1));
  if (!in.has_rank()) return Status();
  c.set_output(0, in.rank() == 2 ? PartialShape::Of({in.dim(0), bins}) : VectorOf(bins));
  return Status();
}

Status SparseBincountShape(ShapeContext& c) {
  WEIR_ASSIGN(const int64_t bins, BinsFrom(c, 3));
  const std::optional<std::vector<int64_t>> dims = c.ints(2);
  if (!c.value(3) || !dims) return Status();
  if (dims->size() == 1) {
    c.set_output(0, VectorOf(bins));
  } else if (dims->size() == 2) {
    c.set_output(0, PartialShape::Of({dims->front(), bins}));
  }
  return c.outputs()[0].Check();
}

Status RaggedBincountShape(ShapeContext& c) { return BinsFrom(c, 2).status(); }

/// Counts as a sparse tensor of that rank, -1 if it is not known.
void CountsOfRank(ShapeContext& c, int64_t rank) {
  c.set_output(0, PartialShape{-1, rank});
  c.set_output(1, VectorOf(-1));
  c.set_output(2, VectorOf(rank));
}

Status DenseCountShape(ShapeContext& c) {
  PartialShape values = c.input(0);
  // Weights without elements have any shape.
  const PartialShape& weights = c.input(1);
  if (weights.elements() > 0) {
    WEIR_ASSIGN(values, weights.Merge(values));
  }
  CountsOfRank(c, values.rank());
  return Status();
}

/// The kernel's matrix of coordinates has at most two columns.
Status SparseCountShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape indices, c.WithRank(0, 2));
  CountsOfRank(c, std::min<int64_t>(indices.dim(1), 2));
  return Status();
}

Status RaggedCountShape(ShapeContext& c) {
  CountsOfRank(c, 2);
  return Status();
}

Status HistogramShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape range, c.WithRank(1, 1));
  WEIR_TRY(ExpectDim(range.dim(0), 2));
  WEIR_TRY(c.WithRank(2, 0).status());
  const std::optional<int64_t> bins = c.scalar_int(2);
  if (bins && *bins <= 0) return InvalidArgument("Requires nbins > 0: {}", *bins);
  c.set_output(0, VectorOf(bins.value_or(-1)));
  return Status();
}

/// Eight elements of the last axis become one.
Status BitpackShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape in, c.WithRankAtLeast(0, 1));
  WEIR_TRY(c.WithRank(1, 0).status());
  if (!in.has_rank()) return Status();
  const int last = in.rank() - 1;
  if (in.dim(last) >= 0 && in.dim(last) % 8 != 0) {
    return InvalidArgument("Dimension size must be evenly divisible by 8 but is {}", in.dim(last));
  }
  c.set_output(0, Replaced(in, last, in.dim(last) < 0 ? -1 : in.dim(last) / 8));
  return Status();
}

Status NthElementShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape in, c.WithRankAtLeast(0, 1));
  if (c.input(1).has_rank() && c.input(1).rank() != 0) {
    return InvalidArgument("Input must be scalar but has rank {}", c.input(1).rank());
  }
  WEIR_ASSIGN(const int64_t n, DimFromScalar(c, 1));
  if (!in.has_rank()) return Status();
  const int64_t last = in.dim(in.rank() - 1);
  if (n >= 0 && last >= 0 && last <= n) {
    return InvalidArgument("Input must have last dimension > n = {} but is {}", n, last);
  }
  c.set_output(0, Span(in, 0, in.rank() - 1));
  return Status();
}

/// Where there are equal elements, the gradient is divided between them.
std::vector<Grad> NthElementGradient(GradContext& g) {
  const auto column = [&](Value v) { return g.Apply("ExpandDims", {v, g.ConstInt(-1)}); };
  const Value dy = column(g.Dy(0));
  const Value same = g.Apply("Cast", {g.Apply("Equal", {column(g.Y(0)), g.X(0)})}, {{"DstT", g.TypeOf(dy)}});
  const Value count = g.Apply("Sum", {same, g.ConstInt(-1)}, {{"keep_dims", true}});
  return {g.Mul(g.Div(same, count), dy), Grad::None()};
}

Status BoundShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 2).status());
  WEIR_ASSIGN(PartialShape values, c.WithRank(1, 2));
  c.set_output(0, std::move(values));
  return Status();
}

/// Distinct slices along an axis; without one, of a vector.
Status UniqueAlongShape(ShapeContext& c) {
  const PartialShape &x = c.input(0), &axes = c.input(1);
  const auto count = [&] {
    if (c.num_outputs() > 2) c.set_output(2, VectorOf(-1));
  };
  if (axes.has_rank() && axes.rank() != 1) return InvalidArgument("axis expects a 1D vector.");
  c.set_output(1, VectorOf(-1));
  count();
  const std::optional<std::vector<int64_t>> given = c.ints(1);
  if (!given || !x.has_rank()) {
    c.set_output(0, MaybeRank(x.rank()));
    return Status();
  }
  int64_t axis = 0;
  if (given->size() > 1) {
    return InvalidArgument("axis does not support input tensors larger than 1 elements.");
  }
  if (given->empty()) {
    if (x.rank() != 1) return InvalidArgument("x expects a 1D vector.");
  } else {
    axis = (*given)[0];
    if (axis < -x.rank() || axis >= x.rank()) {
      return InvalidArgument("axis expects to be in the range [{}, {})", -x.rank(), x.rank());
    }
    if (axis < 0) axis += x.rank();
  }
  c.set_output(0, Replaced(x, static_cast<int>(axis), -1));
  c.set_output(1, VectorOf(x.dim(static_cast<int>(axis))));
  return Status();
}

Status UniqueWithCountsShape(ShapeContext& c) {
  c.set_output(0, VectorOf(-1));
  c.set_output(1, c.input(0));
  c.set_output(2, VectorOf(-1));
  return Status();
}

OpBuilder Counting(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kArray); }

void DeclareCounts(OpRegistry& ops) {
  Counting(ops, "Bincount")
      .In("arr: int32")
      .In("size: int32")
      .In("weights: T")
      .Out("bins: T")
      .Attr(kCountedT)
      .Shape(BincountShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("How often each number below `size` is in `arr`, or the sum of its weights; larger numbers do not count.");
  Counting(ops, "DenseBincount")
      .In("input: Tidx")
      .In("size: Tidx")
      .In("weights: T")
      .Out("output: T")
      .Attr("Tidx: {int32, int64}")
      .Attr(kCountedT)
      .Attr("binary_output: bool = false")
      .Shape(DenseBincountShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc(
          "How often each number below `size` is in `input`, or in each row of it, or the sum of its weights; with "
          "binary_output 1 for those that are there.");
  Counting(ops, "SparseBincount")
      .In("indices: int64")
      .In("values: Tidx")
      .In("dense_shape: int64")
      .In("size: Tidx")
      .In("weights: T")
      .Out("output: T")
      .Attr("Tidx: {int32, int64}")
      .Attr(kCountedT)
      .Attr("binary_output: bool = false")
      .Shape(SparseBincountShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("As DenseBincount, of the values of a sparse vector, or of each row of a sparse matrix.");
  Counting(ops, "RaggedBincount")
      .In("splits: int64")
      .In("values: Tidx")
      .In("size: Tidx")
      .In("weights: T")
      .Out("output: T")
      .Attr("Tidx: {int32, int64}")
      .Attr(kCountedT)
      .Attr("binary_output: bool = false")
      .Shape(RaggedBincountShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("As DenseBincount, of each row of a ragged tensor.");
  Counting(ops, "HistogramFixedWidth")
      .In("values: T")
      .In("value_range: T")
      .In("nbins: int32")
      .Out("out: dtype")
      .Attr(kCountedT)
      .Attr("dtype: {int32, int64} = DT_INT32")
      .Shape(HistogramShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("How many values are in each of `nbins` equal parts of the range; those outside count at its ends.");
  Counting(ops, "CompareAndBitpack")
      .In("input: T")
      .In("threshold: T")
      .Out("output: uint8")
      .Attr("T: {bool, half, float, double, int8, int16, int32, int64}")
      .Shape(BitpackShape)
      .NoGradient(kDiscrete)
      .Doc(
          "One bit for each element, 1 where it is above `threshold`; eight of the last axis in a byte, highest "
          "first.");
}

void DeclareSparseCounts(OpRegistry& ops) {
  const auto counted = [&ops](std::string_view name) {
    return Counting(ops, name)
        .Out("output_indices: int64")
        .Out("output_values: output_type")
        .Out("output_dense_shape: int64")
        .Attr("T: {int32, int64}")
        .Attr("minlength: int >= -1 = -1")
        .Attr("maxlength: int >= -1 = -1")
        .Attr("binary_output: bool")
        .Attr("output_type: {int32, int64, float, double}")
        .NoGradient(op::kUndefinedGradient);
  };
  counted("DenseCountSparseOutput")
      .In("values: T")
      .In("weights: output_type")
      .Shape(DenseCountShape)
      .Doc(
          "How often each number is in `values`, or in each row of it, or the sum of its weights, as a sparse tensor. "
          "It is as wide as the largest number needs, at least minlength; with maxlength, exactly that, without larger "
          "numbers.");
  counted("SparseCountSparseOutput")
      .In("indices: int64")
      .In("values: T")
      .In("dense_shape: int64")
      .In("weights: output_type")
      .Shape(SparseCountShape)
      .Doc("As DenseCountSparseOutput, of the values of a sparse tensor.");
  counted("RaggedCountSparseOutput")
      .In("splits: int64")
      .In("values: T")
      .In("weights: output_type")
      .Shape(RaggedCountShape)
      .Doc("As DenseCountSparseOutput, of each row of a ragged tensor.");
}

void DeclareOrder(OpRegistry& ops) {
  Counting(ops, "NthElement")
      .In("input: T")
      .In("n: int32")
      .Out("values: T")
      .Attr("reverse: bool = false")
      .Attr(kRealNumberT)
      .Shape(NthElementShape)
      .Grad(NthElementGradient)
      .Doc("The element of each row that is at position n once the row is sorted, in descending order if `reverse`.");
  for (const bool upper : {false, true}) {
    Counting(ops, upper ? "UpperBound" : "LowerBound")
        .In("sorted_inputs: T")
        .In("values: T")
        .Out("output: out_type")
        .Attr(kAnyT)
        .Attr("out_type: {int32, int64} = DT_INT32")
        .Shape(BoundShape)
        .NoGradient(op::kUndefinedGradient)
        .Doc(upper ? "The position of the first larger element in the sorted row, for each value of the same row."
                   : "The position of the first element that is not smaller, for each value of the same row.");
  }
  Counting(ops, "Bucketize")
      .In("input: T")
      .Out("output: int32")
      .Attr(kCountedT)
      .Attr("boundaries: list(float)")
      .Shape(op::SameAs(0))
      .NoGradient(kDiscrete)
      .Doc("How many of the ascending boundaries are not above each element.");
}

void DeclareUniques(OpRegistry& ops) {
  for (const bool counts : {false, true}) {
    OpBuilder declared = Counting(ops, counts ? "UniqueWithCountsV2" : "UniqueV2");
    declared.In("x: T").In("axis: Taxis").Out("y: T").Out("idx: out_idx");
    declared.Attr(kAnyT).Attr("Taxis: {int32, int64} = DT_INT64").Attr("out_idx: {int32, int64} = DT_INT32");
    declared.MovesElements().Shape(UniqueAlongShape).NoGradient(kDiscrete);
    if (counts) declared.Out("count: out_idx");
    declared.Doc(counts ? "As UniqueV2, and how often each slice of y is in x."
                        : "The distinct slices of x along an axis, in order of first appearance, and where each went; "
                          "of a vector, `axis` may be empty.");
  }
  Counting(ops, "UniqueWithCounts")
      .In("x: T")
      .Out("y: T")
      .Out("idx: out_idx")
      .Out("count: out_idx")
      .Attr(kAnyT)
      .Attr("out_idx: {int32, int64} = DT_INT32")
      .MovesElements()
      .Shape(UniqueWithCountsShape)
      .NoGradient(kDiscrete)
      .Doc("As Unique, and how often each element of y is in x.");
}

}  // namespace

void DeclareCounting(OpRegistry& ops) {
  DeclareCounts(ops);
  DeclareSparseCounts(ops);
  DeclareOrder(ops);
  DeclareUniques(ops);
}

}  // namespace weir::ops
