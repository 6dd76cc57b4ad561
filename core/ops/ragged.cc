// Ragged tensors, given by the splits of each axis and the values.
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

constexpr std::string_view kSplits = "Tsplits: {int32, int64} = DT_INT64";

Status RaggedRangeShape(ShapeContext& c) {
  int64_t rows = -1;
  bool scalars = true;
  for (int i = 0; i < 3; ++i) {
    WEIR_ASSIGN(const PartialShape operand, ToRankAtMost(c.input(i), 1));
    scalars = scalars && operand.rank() == 0;
    if (operand.rank() != 1) continue;
    WEIR_ASSIGN(rows, op::MergeDim(rows, operand.dim(0)));
  }
  if (scalars) rows = 1;
  WEIR_ASSIGN(const int64_t splits, AddDims(rows, 1));
  c.set_output(0, VectorOf(splits));
  c.set_output(1, VectorOf(-1));
  return Status();
}

/// Inputs: PARAMS_RAGGED_RANK splits, the values, the indices.
Status RaggedGatherShape(ShapeContext& c) {
  WEIR_ASSIGN(const int64_t rank, c.attrs().Int("PARAMS_RAGGED_RANK"));
  WEIR_ASSIGN(const int64_t out_rank, c.attrs().Int("OUTPUT_RAGGED_RANK"));
  const int values_at = c.num_inputs() - 2, outputs = c.num_outputs();
  for (int i = 0; i < values_at; ++i) WEIR_TRY(c.WithRank(i, 1).status());
  WEIR_ASSIGN(const PartialShape values, c.WithRankAtLeast(values_at, 1));
  const PartialShape& indices = c.input(values_at + 1);
  if (indices.has_rank() && indices.rank() + rank != out_rank + 1) {
    return InvalidArgument("OUTPUT_RAGGED_RANK = {}, but params have {} ragged axes and indices have rank {}", out_rank,
                           rank, indices.rank());
  }
  for (int i = 0; i + 1 < outputs; ++i) c.set_output(i, VectorOf(-1));
  WEIR_ASSIGN(PartialShape rows, Join(VectorOf(-1), Span(values, 1)));
  c.set_output(outputs - 1, std::move(rows));
  return Status();
}

/// IndexedSlices of the values: the gradient's rows belong to the values of the gathered rows, in order.
Result<std::vector<Grad>> RaggedGatherGradient(GradContext& g) {
  const int values_at = g.num_inputs() - 2;
  const Value zero = g.ConstInt(0), indices = g.X(values_at + 1);
  Value splits = g.X(0);  // of the rows into values
  for (int i = 1; i < values_at; ++i) splits = g.Apply("GatherV2", {g.X(i), splits, zero});
  const Value flat = g.Reshape(indices, g.ConstInts({-1}));
  const Value one = IndexScalar(g, g.TypeOf(flat), 1), delta = IndexScalar(g, g.TypeOf(splits), 1);
  const Value begin = g.Apply("GatherV2", {splits, flat, zero});
  const Value end = g.Apply("GatherV2", {splits, g.Add(flat, one), zero});
  std::vector<Grad> grads(static_cast<size_t>(g.num_inputs()));
  const std::vector<Value> rows = g.ApplyAll("RaggedRange", {begin, end, delta});
  if (rows.size() < 2) return grads;  // the context has the error
  grads[static_cast<size_t>(values_at)] = Grad::Slices(g.Dy(g.num_outputs() - 1), rows[1], g.ShapeOp(g.X(values_at)));
  return grads;
}

Status RaggedTensorToSparseShape(ShapeContext& c) {
  const int values_at = c.num_inputs() - 1;
  for (int i = 0; i < values_at; ++i) WEIR_TRY(c.WithRank(i, 1).status());
  WEIR_ASSIGN(const PartialShape values, c.WithRankAtLeast(values_at, 1));
  const int64_t rank = values.has_rank() ? values.rank() + values_at : -1;
  const int64_t count = values.fully_defined() ? values.elements() : -1;
  c.set_output(0, PartialShape{count, rank});
  c.set_output(1, VectorOf(count));
  c.set_output(2, VectorOf(rank));
  return Status();
}

Result<std::vector<Grad>> RaggedTensorToSparseGradient(GradContext& g) {
  std::vector<Grad> grads(static_cast<size_t>(g.num_inputs()));
  grads.back() = ReshapedLike(g, g.Dy(1), g.X(g.num_inputs() - 1));
  return grads;
}

/// Inputs: the shape, the values, the default, the row partitions. Extents that follow from the partitions are unknown.
Status RaggedTensorToTensorShape(ShapeContext& c) {
  WEIR_ASSIGN(const std::vector<std::string> kinds, c.attrs().Strings("row_partition_types"));
  if (kinds.empty()) return InvalidArgument("row_partition_types must not be empty");
  const int ragged = static_cast<int>(kinds.size()) - (kinds[0] == "FIRST_DIM_SIZE" ? 1 : 0) + 1;
  WEIR_ASSIGN(const PartialShape values, c.WithRankAtLeast(1, 1));
  WEIR_ASSIGN(const PartialShape wanted, ToRankAtMost(c.input(0), 1));
  if (!values.has_rank()) return Status();
  WEIR_ASSIGN(PartialShape shape, Join(PartialShape::OfRank(ragged), Span(values, 1)));
  if (wanted.rank() == 1) {
    WEIR_ASSIGN(const PartialShape given, c.shape_from(0));
    WEIR_ASSIGN(shape, shape.Merge(given));
  }
  c.set_output(0, std::move(shape));
  return Status();
}

/// The values' places are found by the same op on their numbers; a place without one has the default.
Result<std::vector<Grad>> RaggedTensorToTensorGradient(GradContext& g) {
  WEIR_ASSIGN(const std::vector<std::string> kinds, g.attrs().Strings("row_partition_types"));
  const auto ragged = static_cast<int32_t>(kinds.size()) - (kinds[0] == "FIRST_DIM_SIZE" ? 1 : 0) + 1;
  const Value values = g.X(1), otherwise = g.X(2), dy = g.Dy(0);
  const Value value_shape = g.ShapeOp(values);
  const Value count = g.Reshape(g.Apply("Slice", {value_shape, g.ConstInts({0}), g.ConstInts({1})}), g.ConstInts({}));
  const Value inner = g.Apply("Slice", {value_shape, g.ConstInts({1}), g.ConstInts({-1})});
  const Value outer = g.Apply("Slice", {g.ShapeOp(dy), g.ConstInts({0}), g.ConstInts({ragged})});
  std::vector<Value> inputs = {outer, g.Apply("Range", {g.ConstInt(0), count, g.ConstInt(1)}), g.ConstInt(-1)};
  for (int i = 3; i < g.num_inputs(); ++i) inputs.push_back(g.X(i));
  const Value places = g.Reshape(g.ApplyList("RaggedTensorToTensor", inputs,
                                             {{"row_partition_types", op::AttrValue(kinds)},
                                              {"num_row_partition_tensors", static_cast<int64_t>(kinds.size())}}),
                                 g.ConstInts({-1}));
  const Value rows = g.Reshape(dy, g.Apply("ConcatV2", {g.ConstInts({-1}), inner, g.ConstInt(0)}, {{"N", int64_t{2}}}));
  std::vector<Grad> grads(static_cast<size_t>(g.num_inputs()));
  grads[1] = g.Apply("UnsortedSegmentSum", {rows, places, count});
  // Number 0 for places without a value, -1, which are not summed, for the others.
  const Value defaults = g.Neg(
      g.Apply("Cast", {g.Apply("GreaterEqual", {places, g.ConstInt(0)})}, {{"DstT", op::AttrValue(DType::kInt32)}}));
  const Value sum = g.Reshape(g.Apply("UnsortedSegmentSum", {rows, defaults, g.ConstInt(1)}), inner);
  const Value default_shape = g.ShapeOp(otherwise);
  const std::vector<Value> axes = g.ApplyAll("BroadcastGradientArgs", {default_shape, inner});
  if (axes.size() < 2) return grads;  // the context has the error
  grads[2] = g.Reshape(g.Apply("Sum", {sum, axes[0]}), default_shape);
  return grads;
}

}  // namespace

void DeclareRagged(OpRegistry& ops) {
  ops.Declare("RaggedRange")
      .Is(Category::kArray)
      .In("starts: T")
      .In("limits: T")
      .In("deltas: T")
      .Out("rt_nested_splits: Tsplits")
      .Out("rt_dense_values: T")
      .Attr("T: {bfloat16, float, double, int32, int64} = DT_INT32")
      .Attr(kSplits)
      .Shape(RaggedRangeShape)
      .NoGradient(kDiscrete)
      .Doc("The numbers from starts[i] to limits[i], without it, by deltas[i], as row i of a ragged tensor.");
  ops.Declare("RaggedGather")
      .Is(Category::kArray)
      .In("params_nested_splits: PARAMS_RAGGED_RANK*Tsplits")
      .In("params_dense_values: Tvalues")
      .In("indices: Tindices")
      .Out("output_nested_splits: OUTPUT_RAGGED_RANK*Tsplits")
      .Out("output_dense_values: Tvalues")
      .Attr("Tvalues: type")
      .Attr("Tindices: {int32, int64}")
      .Attr(kSplits)
      .Attr("PARAMS_RAGGED_RANK: int >= 1")
      .Attr("OUTPUT_RAGGED_RANK: int >= 0")
      .MovesElements()
      .Shape(RaggedGatherShape)
      .Grad(RaggedGatherGradient)
      .Doc("The rows of a ragged tensor at `indices`.");
  ops.Declare("RaggedTensorToSparse")
      .Is(Category::kArray)
      .In("rt_nested_splits: RAGGED_RANK*Tsplits")
      .In("rt_dense_values: T")
      .Out("sparse_indices: int64")
      .Out("sparse_values: T")
      .Out("sparse_dense_shape: int64")
      .Attr("RAGGED_RANK: int >= 1")
      .Attr(kAnyT)
      .Attr(kSplits)
      .MovesElements()
      .Shape(RaggedTensorToSparseShape)
      .Grad(RaggedTensorToSparseGradient)
      .Doc("The values of a ragged tensor as a sparse one of its bounding shape.");
  ops.Declare("RaggedTensorToTensor")
      .Is(Category::kArray)
      .In("shape: Tshape")
      .In("values: T")
      .In("default_value: T")
      .In("row_partition_tensors: num_row_partition_tensors*Tindex")
      .Out("result: T")
      .Attr(kAnyT)
      .Attr("Tindex: {int64, int32}")
      .Attr("Tshape: {int64, int32}")
      .Attr("num_row_partition_tensors: int >= 1")
      .Attr("row_partition_types: list(string)")
      .Shape(RaggedTensorToTensorShape)
      .Grad(RaggedTensorToTensorGradient)
      .Doc("A ragged tensor as a dense one of the given or its bounding shape, with default_value elsewhere.");
}

}  // namespace weir::ops
