// Reductions of segments of rows, and the cut of rows into partitions.
#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/grad_shapes.h"
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

/// data: [rows, row…], segment_ids: [rows] -> [?, row…].
Status SegmentShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape data, c.WithRankAtLeast(0, 1));
  WEIR_TRY(c.WithRank(1, 1).status());
  WEIR_ASSIGN(PartialShape out, Join(VectorOf(-1), Span(data, 1)));
  c.set_output(0, std::move(out));
  return Status();
}

/// data: [segment_ids' extents, row…] -> [num_segments, row…].
Status UnsortedSegmentShape(ShapeContext& c) {
  WEIR_ASSIGN(const int64_t segments, DimFromScalar(c, 2));
  if (!c.input(1).has_rank()) return Status();
  WEIR_ASSIGN(const PartialShape data, MergePrefix(c.input(0), c.input(1)));
  WEIR_ASSIGN(PartialShape out, Join(VectorOf(segments), Span(data, c.input(1).rank())));
  c.set_output(0, std::move(out));
  return Status();
}

/// The shape of the rows, [extent, row…]; inputs 1 and 2 are vectors of one length.
Result<PartialShape> ChosenRowsShape(const ShapeContext& c, int64_t extent) {
  WEIR_ASSIGN(const PartialShape data, c.WithRankAtLeast(0, 1));
  WEIR_ASSIGN(const PartialShape indices, c.WithRank(1, 1));
  WEIR_ASSIGN(const PartialShape ids, c.WithRank(2, 1));
  WEIR_TRY(indices.Merge(ids).status());
  return Join(VectorOf(extent), Span(data, 1));
}

/// The extent in scalar input 3, -1 if it is not known; `name` is TensorFlow's for it.
Result<int64_t> GivenExtent(const ShapeContext& c, std::string_view name) {
  WEIR_TRY(c.WithRank(3, 0).status());
  const std::optional<int64_t> extent = c.scalar_int(3);
  if (extent && *extent < 0) return InvalidArgument("Cannot specify a negative value for {}", name);
  return extent.value_or(-1);
}

Status SparseSegmentShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape out, ChosenRowsShape(c, -1));
  c.set_output(0, std::move(out));
  return Status();
}

Status SparseSegmentWithCountShape(ShapeContext& c) {
  WEIR_ASSIGN(const int64_t segments, GivenExtent(c, "num_segments"));
  WEIR_ASSIGN(PartialShape out, ChosenRowsShape(c, segments));
  c.set_output(0, std::move(out));
  return Status();
}

Status SparseSegmentGradShape(ShapeContext& c) {
  WEIR_ASSIGN(const int64_t extent, GivenExtent(c, "output_dim0"));
  WEIR_ASSIGN(PartialShape out, ChosenRowsShape(c, extent));
  c.set_output(0, std::move(out));
  return Status();
}

Status SparseSegmentGradV2Shape(ShapeContext& c) {
  WEIR_TRY(GivenExtent(c, "output_dim0").status());
  WEIR_ASSIGN(PartialShape out, ChosenRowsShape(c, -1));
  c.set_output(0, std::move(out));
  c.set_output(1, VectorOf(-1));
  return Status();
}

/// data: [partitions' extents, row…] -> [?, row…] for each partition.
Status DynamicPartitionShape(ShapeContext& c) {
  const PartialShape& partitions = c.input(1);
  if (!partitions.has_rank()) return Status();
  WEIR_ASSIGN(const PartialShape data, MergePrefix(c.input(0), partitions));
  WEIR_ASSIGN(const PartialShape out, Join(VectorOf(-1), Span(data, partitions.rank())));
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, out);
  return Status();
}

Value Rows(GradContext& g, Value from, Value at) { return g.Apply("GatherV2", {from, at, g.ConstInt(0)}); }
Value ZerosLike(GradContext& g, Value v) { return g.Apply("ZerosLike", {v}); }
Value CastTo(GradContext& g, Value v, DType type) { return g.Apply("Cast", {v}, {{"DstT", type}}); }

Result<std::vector<Grad>> SegmentSumGradient(GradContext& g) {
  return std::vector<Grad>{Rows(g, g.Dy(0), g.X(1)), Grad::None()};
}

/// Row s of dy over the length of segment s is the gradient of each of its rows.
Result<std::vector<Grad>> SegmentMeanGradient(GradContext& g) {
  const Value row_rank = g.Sub(g.Apply("Rank", {g.X(0)}), g.ConstInt(1));
  const Value row_ones = g.Apply("Fill", {g.Apply("ExpandDims", {row_rank, g.ConstInt(0)}), g.ConstInt(1)});
  const Value ones_shape = JoinVectors(g, {g.ShapeOp(g.X(1)), row_ones});
  const Value ones = g.Apply("Fill", {ones_shape, g.ConstLike(g.Dy(0), 1)});
  const Value scaled = g.Div(g.Dy(0), g.Apply("SegmentSum", {ones, g.X(1)}));
  return std::vector<Grad>{Rows(g, scaled, g.X(1)), Grad::None()};
}

/// The gradient of a segment is divided evenly among the rows' elements that equal the result.
Result<std::vector<Grad>> SegmentExtremeGradient(GradContext& g) {
  const Value ids = g.X(1), dy = g.Dy(0);
  const Value selected = g.Apply("Equal", {g.X(0), Rows(g, g.Y(0), ids)});
  const Value count = g.Apply("SegmentSum", {CastTo(g, selected, g.TypeOf(dy)), ids});
  const Value shares = Rows(g, g.Div(dy, count), ids);
  return std::vector<Grad>{g.Apply("SelectV2", {selected, shares, ZerosLike(g, g.X(0))}), Grad::None()};
}

/// What the gradients of SegmentProd and UnsortedSegmentProd have in common. Where an element is 0 the product of the
/// others is that of the elements with 1 in its place, unless another one is 0 as well.
struct ProductParts {
  Value is_zero, dy, without_zeros, others;  // others: the product of a segment's elements without its zeros
};
ProductParts PartsOfProduct(GradContext& g, std::string_view sum, std::string_view product,
                            const std::vector<Value>& segments) {
  const auto of = [&](std::string_view op, Value data) {
    std::vector<Value> inputs = {data};
    inputs.insert(inputs.end(), segments.begin(), segments.end());
    return g.ApplyList(op, inputs);
  };
  ProductParts parts;
  parts.is_zero = g.Apply("Equal", {g.X(0), g.ConstLike(g.X(0), 0)});
  const Value zeros = of(sum, CastTo(g, parts.is_zero, DType::kInt32));
  parts.dy =
      g.Apply("SelectV2", {g.Apply("Greater", {zeros, g.ConstInt(1)}), ZerosLike(g, g.Dy(0)), g.Dy(0)});
  parts.without_zeros = g.Apply("SelectV2", {parts.is_zero, g.Apply("OnesLike", {g.X(0)}), g.X(0)});
  parts.others = of(product, parts.without_zeros);
  return parts;
}

Result<std::vector<Grad>> SegmentProdGradient(GradContext& g) {
  const Value ids = g.X(1);
  const ProductParts parts = PartsOfProduct(g, "SegmentSum", "SegmentProd", {ids});
  const Value quotient = g.Div(Rows(g, g.Y(0), ids), parts.without_zeros);
  const Value partial = g.Apply("SelectV2", {parts.is_zero, Rows(g, parts.others, ids), quotient});
  return std::vector<Grad>{g.Mul(Rows(g, parts.dy, ids), partial), Grad::None()};
}

/// Rows of `from` at the segment ids in input 1; zeros where an id is negative.
struct KeptRows {
  Value rows;  // ids with 0 for the negative ones
  Value mask;  // broadcasts over the rows' elements

  KeptRows(GradContext& g, Value data) {
    const Value ids = g.X(1);
    const Value kept = g.Apply("GreaterEqual", {ids, ZerosLike(g, ids)});
    rows = g.Apply("Maximum", {ids, ZerosLike(g, ids)});
    gathered_ = g.Apply("GatherV2", {data, rows, g.ConstInt(0)});
    const Value row_rank = g.Sub(g.Apply("Rank", {gathered_}), g.Apply("Rank", {ids}));
    const Value ones = g.Apply("Fill", {g.Reshape(row_rank, g.ConstInts({1})), g.ConstInt(1)});
    mask = g.Reshape(kept, JoinVectors(g, {g.ShapeOp(ids), ones}));
  }

  /// The rows of the data of the constructor.
  Value First(GradContext& g) const { return g.Apply("SelectV2", {mask, gathered_, ZerosLike(g, gathered_)}); }
  Value Of(GradContext& g, Value from) const {
    const Value gathered = Rows(g, from, rows);
    return g.Apply("SelectV2", {mask, gathered, ZerosLike(g, gathered)});
  }

 private:
  Value gathered_;
};

/// Row i of dy is the gradient of every row in segment i; rows with a negative id have none.
Result<std::vector<Grad>> UnsortedSegmentSumGradient(GradContext& g) {
  const KeptRows kept(g, g.Dy(0));
  return std::vector<Grad>{kept.First(g), Grad::None(), Grad::None()};
}

Result<std::vector<Grad>> UnsortedSegmentExtremeGradient(GradContext& g) {
  const Value dy = g.Dy(0);
  const KeptRows kept(g, g.Y(0));
  const Value equal = g.Apply("Equal", {g.X(0), kept.First(g)});
  const Value selected = g.Apply("LogicalAnd", {equal, kept.mask});
  const Value count = g.Apply("UnsortedSegmentSum", {CastTo(g, selected, g.TypeOf(dy)), g.X(1), g.X(2)});
  const Value shares = kept.Of(g, g.Div(dy, count));
  const Value grad = g.Apply("SelectV2", {selected, shares, ZerosLike(g, shares)});
  return std::vector<Grad>{grad, Grad::None(), Grad::None()};
}

Result<std::vector<Grad>> UnsortedSegmentProdGradient(GradContext& g) {
  const ProductParts parts = PartsOfProduct(g, "UnsortedSegmentSum", "UnsortedSegmentProd", {g.X(1), g.X(2)});
  const KeptRows kept(g, parts.dy);
  const Value quotient = g.Div(Rows(g, g.Y(0), kept.rows), parts.without_zeros);
  const Value partial = g.Apply("SelectV2", {parts.is_zero, Rows(g, parts.others, kept.rows), quotient});
  return std::vector<Grad>{g.Mul(kept.First(g), partial), Grad::None(), Grad::None()};
}

/// The gradient by `op`; IndexedSlices by its V2 if the node asks for them.
Result<std::vector<Grad>> SparseSegmentGradient(GradContext& g, const std::string& op) {
  WEIR_ASSIGN(const bool sparse, g.attrs().Bool("sparse_gradient"));
  const Value shape = g.ShapeOp(g.X(0));
  const Value extent = g.Apply("GatherV2", {shape, g.ConstInt(0), g.ConstInt(0)});
  std::vector<Grad> grads(static_cast<size_t>(g.num_inputs()));
  if (sparse) {
    const std::vector<Value> rows = g.ApplyAll(op + "V2", {g.Dy(0), g.X(1), g.X(2), extent});
    if (rows.size() == 2) grads[0] = Grad::Slices(rows[0], rows[1], shape);
  } else {
    grads[0] = g.Apply(op, {g.Dy(0), g.X(1), g.X(2), extent});
  }
  return grads;
}

/// Stitches the partitions' gradients at the rows' positions, which are partitioned likewise.
Result<std::vector<Grad>> DynamicPartitionGradient(GradContext& g) {
  const Value partitions = g.X(1), prefix = g.ShapeOp(partitions);
  const Value count = g.Apply("Prod", {prefix, g.ConstInts({0})});
  const Value range = g.Apply("Range", {g.ConstInt(0), count, g.ConstInt(1)});
  const std::vector<Value> places = g.ApplyAll("DynamicPartition", {g.Reshape(range, prefix), partitions},
                                               {{"num_partitions", int64_t{g.num_outputs()}}});
  std::vector<Value> inputs = places;
  for (int i = 0; i < g.num_outputs(); ++i) inputs.push_back(g.Dy(i));
  const Value stitched = g.ApplyList("ParallelDynamicStitch", inputs, {{"N", int64_t{g.num_outputs()}}});
  return std::vector<Grad>{g.Reshape(stitched, g.ShapeOp(g.X(0))), Grad::None()};
}

OpBuilder Segment(OpRegistry& ops, std::string_view name, std::string_view type) {
  return ops.Declare(name)
      .Is(Category::kArray)
      .In("data: T")
      .In("segment_ids: Tindices")
      .Out("output: T")
      .Attr(type)
      .Attr("Tindices: {int32, int64}")
      .Shape(SegmentShape);
}

OpBuilder UnsortedSegment(OpRegistry& ops, std::string_view name, std::string_view type) {
  return ops.Declare(name)
      .Is(Category::kArray)
      .In("data: T")
      .In("segment_ids: Tindices")
      .In("num_segments: Tnumsegments")
      .Out("output: T")
      .Attr(type)
      .Attr(name == "UnsortedSegmentSum" ? "Tindices: {int16, int32, int64}" : "Tindices: {int32, int64}")
      .Attr("Tnumsegments: {int32, int64} = DT_INT32")
      .Shape(UnsortedSegmentShape);
}

/// The operands of the sums over chosen rows and of their gradients, before the last one.
OpBuilder ChosenRows(OpRegistry& ops, const std::string& name, std::string_view of, std::string_view type) {
  return ops.Declare(name)
      .Is(Category::kArray)
      .In(fmt::format("{}: T", of))
      .In("indices: Tidx")
      .In("segment_ids: Tsegmentids")
      .Attr(type)
      .Attr(kIndexT)
      .Attr("Tsegmentids: {int32, int64} = DT_INT32");
}

void DeclareSparseSegment(OpRegistry& ops, const std::string& name, std::string_view type, std::string_view what) {
  const std::string op = "SparseSegment" + name;
  const auto gradient = [back = op + "Grad"](GradContext& g) { return SparseSegmentGradient(g, back); };
  ChosenRows(ops, op, "data", type)
      .Out("output: T")
      .Attr("sparse_gradient: bool = false")
      .Shape(SparseSegmentShape)
      .Grad(gradient)
      .Doc(fmt::format("Row s is {} of the rows of `data` at the indices whose segment id is s.", what));
  ChosenRows(ops, op + "WithNumSegments", "data", type)
      .In("num_segments: Tnumsegments")
      .Out("output: T")
      .Attr("Tnumsegments: {int32, int64} = DT_INT32")
      .Attr("sparse_gradient: bool = false")
      .Shape(SparseSegmentWithCountShape)
      .Grad(gradient)
      .Doc(fmt::format("{} with num_segments rows.", op));
  ChosenRows(ops, op + "Grad", "grad", kFloatT)
      .In("output_dim0: int32")
      .Out("output: T")
      .Shape(SparseSegmentGradShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc(fmt::format("The gradient of {}, with output_dim0 rows.", op));
  ChosenRows(ops, op + "GradV2", "grad", kFloatT)
      .In("dense_output_dim0: int32")
      .Out("output: T")
      .Out("sorted_unique_indices: Tidx")
      .Shape(SparseSegmentGradV2Shape)
      .NoGradient(op::kUndefinedGradient)
      .Doc(fmt::format("The rows of the gradient of {} that get something, and their sorted indices.", op));
}

}  // namespace

void DeclareSegment(OpRegistry& ops) {
  Segment(ops, "SegmentSum", kNumberT)
      .Grad(SegmentSumGradient)
      .Doc("Row s is the sum of the rows of `data` with id s; the ids do not decrease.");
  Segment(ops, "SegmentMean", kNumberT)
      .Grad(SegmentMeanGradient)
      .Doc("Row s is the mean of the rows of `data` with id s, 0 if there are none; the ids do not decrease.");
  Segment(ops, "SegmentProd", kNumberT)
      .Grad(SegmentProdGradient)
      .Doc("Row s is the product of the rows of `data` with id s; the ids do not decrease.");
  Segment(ops, "SegmentMax", kRealNumberT)
      .Grad(SegmentExtremeGradient)
      .Doc("Row s is the maximum of the rows of `data` with id s, 0 if there are none; the ids do not decrease.");
  Segment(ops, "SegmentMin", kRealNumberT)
      .Grad(SegmentExtremeGradient)
      .Doc("Row s is the minimum of the rows of `data` with id s, 0 if there are none; the ids do not decrease.");
  UnsortedSegment(ops, "UnsortedSegmentSum", kNumberT)
      .Grad(UnsortedSegmentSumGradient)
      .Doc("Row s is the sum of the rows of `data` whose segment id is s; rows with a negative id are dropped.");
  UnsortedSegment(ops, "UnsortedSegmentProd", kNumberT)
      .Grad(UnsortedSegmentProdGradient)
      .Doc("Row s is the product of the rows of `data` whose segment id is s; rows with a negative id are dropped.");
  UnsortedSegment(ops, "UnsortedSegmentMax", kRealNumberT)
      .Grad(UnsortedSegmentExtremeGradient)
      .Doc("Row s is the maximum of the rows of `data` whose segment id is s, the least number if there are none.");
  UnsortedSegment(ops, "UnsortedSegmentMin", kRealNumberT)
      .Grad(UnsortedSegmentExtremeGradient)
      .Doc("Row s is the minimum of the rows of `data` whose segment id is s, the largest number if there are none.");
  DeclareSparseSegment(ops, "Sum", kRealNumberT, "the sum");
  DeclareSparseSegment(ops, "Mean", kFloatT, "the mean");
  DeclareSparseSegment(ops, "SqrtN", kFloatT, "the sum, over the root of the count,");
  ops.Declare("DynamicPartition")
      .Is(Category::kArray)
      .In("data: T")
      .In("partitions: int32")
      .Out("outputs: num_partitions*T")
      .Attr("num_partitions: int >= 1")
      .Attr(kAnyT)
      .MovesElements()
      .Shape(DynamicPartitionShape)
      .Grad(DynamicPartitionGradient)
      .Doc("Cuts rows into num_partitions tensors: row data[i] goes to output partitions[i].");
}

}  // namespace weir::ops
