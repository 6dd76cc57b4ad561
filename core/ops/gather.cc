// Rows by index: gathers and their inverses, stitching, one-hot rows, and unique elements.
#include <algorithm>
#include <cstdlib>

#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/grad_shapes.h"
#include "core/ops/known_ints.h"
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

/// The attribute batch_dims as a non-negative number, checked against the rank of the indices if known.
Result<int> BatchDims(const ShapeContext& c, const PartialShape& params, const PartialShape& indices) {
  WEIR_ASSIGN(int64_t batch, c.attrs().Int("batch_dims"));
  const int rank = indices.rank();
  const int64_t least = std::min<int64_t>(batch < -kMaxRank ? kMaxRank : std::abs(batch), kMaxRank);
  WEIR_TRY(ToRankAtLeast(indices, static_cast<int>(least)).status());
  if (batch < 0 && rank < 0) return -1;
  if (batch < 0) batch += rank;
  if (params.has_rank() && batch >= params.rank()) {
    return InvalidArgument("batch_dims ({}) must be less than rank(params) ({}).", batch, params.rank());
  }
  return static_cast<int>(batch);
}

/// params[0..axis) + indices[batch..) + params(axis..]; the leading `batch` extents of both agree.
Result<PartialShape> GatherAlong(PartialShape params, const PartialShape& indices, int axis, int batch) {
  if (batch > axis) return InvalidArgument("batch_dims ({}) must be less than or equal to axis ({}).", batch, axis);
  for (int i = 0; i < batch && params.has_rank() && indices.has_rank(); ++i) {
    const Result<int64_t> shared = op::MergeDim(params.dim(i), indices.dim(i));
    if (!shared.ok()) {
      return InvalidArgument("params.shape[{}]: {} should be equal to indices.shape[{}]: {}", i, params.dim(i), i,
                             indices.dim(i));
    }
    params.set_dim(i, *shared);
  }
  WEIR_ASSIGN(const PartialShape head, Join(Span(params, 0, axis), Span(indices, batch)));
  return Join(head, Span(params, axis + 1));
}

Status GatherShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape params, c.WithRankAtLeast(0, 1));
  WEIR_ASSIGN(PartialShape out, GatherAlong(params, c.input(1), 0, 0));
  c.set_output(0, std::move(out));
  return Status();
}

Status GatherV2Shape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape params, c.WithRankAtLeast(0, 1));
  WEIR_TRY(c.WithRank(2, 0).status());
  const PartialShape& indices = c.input(1);
  WEIR_ASSIGN(const int batch, BatchDims(c, params, indices));
  const std::optional<int64_t> given = c.scalar_int(2);
  if (given && (*given < -kMaxRank || *given >= kMaxRank)) return InvalidArgument("axis {} is beyond any rank", *given);
  if (given && params.has_rank()) {
    const int64_t least = *given < 0 ? -*given : *given + 1;
    WEIR_TRY(ToRankAtLeast(params, static_cast<int>(least)).status());
  }
  if (!params.has_rank() || !indices.has_rank() || batch < 0) return Status();
  if (!given) {
    c.set_output(0, MaybeRank(params.rank() + indices.rank() - 1 - batch));
    return Status();
  }
  const int axis = static_cast<int>(*given < 0 ? *given + params.rank() : *given);
  WEIR_ASSIGN(PartialShape out, GatherAlong(params, indices, axis, batch));
  c.set_output(0, std::move(out));
  return Status();
}

Status ResourceGatherShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 0).status());
  WEIR_ASSIGN(const PartialShape held, c.held_shape(0));
  WEIR_ASSIGN(const int64_t given, c.attrs().Int("batch_dims"));
  if (given < 0) return InvalidArgument("batch_dims is negative ({})", given);
  const int batch = static_cast<int>(std::min<int64_t>(given, kMaxRank));
  WEIR_ASSIGN(const PartialShape params, ToRankAtLeast(held, batch + 1));
  WEIR_ASSIGN(const PartialShape indices, ToRankAtLeast(c.input(1), batch));
  WEIR_ASSIGN(PartialShape out, GatherAlong(params, indices, batch, batch));
  c.set_output(0, std::move(out));
  return Status();
}

/// Inputs 0..N-1 are indices, inputs N..2N-1 data; the largest index determines the length.
Status DynamicStitchShape(ShapeContext& c) {
  const int count = c.num_inputs() / 2;
  PartialShape row;
  int64_t largest = -1;
  bool all_known = true;
  for (int i = 0; i < count; ++i) {
    if (const std::optional<std::vector<int64_t>> indices = c.ints(i)) {
      for (size_t k = 0; k < indices->size(); ++k) {
        if ((*indices)[k] < 0) return InvalidArgument("indices[{}] is out of range", k);
        largest = std::max(largest, (*indices)[k]);
      }
    } else {
      all_known = false;
    }
    if (!c.input(i).has_rank()) continue;
    WEIR_ASSIGN(const PartialShape data, MergePrefix(c.input(i + count), c.input(i)));
    WEIR_ASSIGN(row, row.Merge(Span(data, c.input(i).rank())));
  }
  WEIR_ASSIGN(PartialShape out, Join(VectorOf(all_known ? largest + 1 : -1), row));
  c.set_output(0, std::move(out));
  return Status();
}

Status OneHotShape(ShapeContext& c) {
  WEIR_ASSIGN(const int64_t axis, c.attrs().Int("axis"));
  if (axis < -1) return InvalidArgument("axis must be >= -1");
  WEIR_ASSIGN(const int64_t depth, DimFromScalar(c, 1));
  WEIR_TRY(c.WithRank(2, 0).status());
  WEIR_TRY(c.WithRank(3, 0).status());
  const PartialShape& indices = c.input(0);
  if (!indices.has_rank()) return Status();
  if (axis > indices.rank()) {
    return InvalidArgument("Expected axis to be -1 or between [0, {}).  But received: {}", indices.rank() + 1, axis);
  }
  const int at = axis < 0 ? indices.rank() : static_cast<int>(axis);
  WEIR_ASSIGN(const PartialShape head, Join(Span(indices, 0, at), VectorOf(depth)));
  WEIR_ASSIGN(PartialShape out, Join(head, Span(indices, at)));
  c.set_output(0, std::move(out));
  return Status();
}

Status UniqueShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape x, c.WithRank(0, 1));
  c.set_output(0, VectorOf(-1));
  c.set_output(1, std::move(x));
  return Status();
}

Status ListDiffShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 1).status());
  WEIR_TRY(c.WithRank(1, 1).status());
  c.set_output(0, VectorOf(-1));
  c.set_output(1, VectorOf(-1));
  return Status();
}

/// The rows of dy as IndexedSlices of a tensor of shape `params_shape`, for a gather along axis 0 with `indices`.
Grad GatheredRows(GradContext& g, Value params_shape, Value indices) {
  const Value count = SizeVector(g, indices);
  const Value rows = JoinVectors(g, {count, ElementsFrom(g, params_shape, g.ConstInt(1))});
  const Value values = g.Reshape(g.Dy(0), rows);  // named Reshape, the indices Reshape_1
  return Grad::Slices(values, g.Reshape(indices, count), params_shape);
}

/// The shape of params as int32, computed via int64 as in TensorFlow's graphs.
Value ParamsShape(GradContext& g) {
  const Value wide = g.Apply("Shape", {g.X(0)}, {{"out_type", DType::kInt64}});
  return g.Apply("Cast", {wide}, {{"DstT", DType::kInt32}});
}

/// Adds to `indices` the offset of their batch, so that row `indices[b, …]` of batch b becomes a row of params with its
/// batch extents and the gathered axis flattened to one.
Value WithBatchOffsets(GradContext& g, Value indices, Value batch_shape, Value axis_size) {
  const Value zero = g.ConstInt(0), one = g.ConstInt(1);
  const Value batches = g.Apply("Prod", {batch_shape, g.ConstInts({0})});
  const Value first = g.Mul(g.Apply("Range", {zero, batches, one}), axis_size);
  const Value by_batch =
      g.Reshape(AsInt32(g, indices), JoinVectors(g, {g.Reshape(batches, g.ConstInts({1})), g.ConstInts({-1})}));
  return g.Add(by_batch, g.Apply("ExpandDims", {first, one}));
}

/// Gradient of a gather along another axis, or with batches: moves the gathered axis behind the batch axes, sums the
/// rows, and moves the axis back. Supports ranks known only at run time.
Value GatherAlongAxisGradient(GradContext& g, Value axis, int64_t batch_dims) {
  const Value zero = g.ConstInt(0), one = g.ConstInt(1);
  const Value shape = g.ShapeOp(g.X(0));
  const Value after_axis = g.Add(axis, one);
  const Value batch = g.ConstInt(static_cast<int32_t>(batch_dims));
  const Value axis_size = g.Reshape(Elements(g, shape, axis, after_axis), g.ConstInts({}));
  const Value outer = Elements(g, shape, zero, axis), inner = ElementsFrom(g, shape, after_axis);
  const Value batch_shape = Elements(g, shape, zero, batch), between = Elements(g, shape, batch, axis);
  // dy as [outer…, gathered, inner…], then as [batch…, gathered, between…, inner…].
  const Value values = g.Reshape(g.Dy(0), JoinVectors(g, {outer, g.ConstInts({-1}), inner}));
  const Value rank = g.Apply("Rank", {g.X(0)});
  const Value batch_axes = g.Apply("Range", {zero, batch, one}), between_axes = g.Apply("Range", {batch, axis, one});
  const Value inner_axes = g.Apply("Range", {after_axis, rank, one});
  const Value to_front = JoinVectors(g, {batch_axes, g.Reshape(axis, g.ConstInts({1})), between_axes, inner_axes});
  const Value moved = g.Apply("Transpose", {values, to_front});
  const Value flat = g.Reshape(moved, JoinVectors(g, {g.ConstInts({-1}), between, inner}));
  const Value rows = WithBatchOffsets(g, g.X(1), batch_shape, axis_size);
  const Value row_count = g.Mul(g.Apply("Prod", {batch_shape, g.ConstInts({0})}), axis_size);
  const Value summed = g.Apply("UnsortedSegmentSum", {flat, g.Reshape(rows, g.ConstInts({-1})), row_count});
  const Value unflat_shape = JoinVectors(g, {batch_shape, g.Reshape(axis_size, g.ConstInts({1})), between, inner});
  const Value back = g.Apply("InvertPermutation", {to_front});
  return g.Apply("Transpose", {g.Reshape(summed, unflat_shape), back});
}

/// The axis of `x` in the integer scalar `axis` as a non-negative int32; a constant if possible.
Value FromFront(GradContext& g, Value axis, Value x) {
  if (const Tensor* known = g.ConstantOf(axis); known != nullptr && known->elements() == 1) {
    const int64_t at = *known->scalar<int64_t>();
    const int rank = g.ShapeOf(x).rank();
    if (at >= 0 || rank >= 0) return g.ConstInt(static_cast<int32_t>(at < 0 ? at + rank : at));
  }
  return g.Apply("FloorMod", {AsInt32(g, axis), g.Apply("Rank", {x})});
}

Result<std::vector<Grad>> GatherGradient(GradContext& g) {
  return std::vector<Grad>{GatheredRows(g, ParamsShape(g), g.X(1)), Grad::None()};
}

Result<std::vector<Grad>> GatherV2Gradient(GradContext& g) {
  WEIR_ASSIGN(int64_t batch_dims, g.attrs().Int("batch_dims"));
  if (batch_dims < 0) {
    const int rank = g.ShapeOf(g.X(1)).rank();
    if (rank < 0)
      return Unimplemented("The gradient of GatherV2 with batch_dims {} needs the indices' rank", batch_dims);
    batch_dims += rank;
  }
  const Value axis = FromFront(g, g.X(2), g.X(0));
  const Tensor* known = g.ConstantOf(axis);
  std::vector<Grad> grads(3);
  if (batch_dims == 0 && known != nullptr && known->scalar<int32_t>() == 0) {
    grads[0] = GatheredRows(g, ParamsShape(g), g.X(1));
  } else {
    grads[0] = GatherAlongAxisGradient(g, axis, batch_dims);
  }
  return grads;
}

Result<std::vector<Grad>> ResourceGatherGradient(GradContext& g) {
  WEIR_ASSIGN(const int64_t batch_dims, g.attrs().Int("batch_dims"));
  if (batch_dims != 0) return Unimplemented("The gradient of ResourceGather with batch_dims {}", batch_dims);
  return std::vector<Grad>{GatheredRows(g, g.Apply("VariableShape", {g.X(0)}), g.X(1)), Grad::None()};
}

Result<std::vector<Grad>> DynamicStitchGradient(GradContext& g) {
  const int count = g.num_inputs() / 2;
  std::vector<Grad> grads(static_cast<size_t>(g.num_inputs()));
  for (int i = 0; i < count; ++i) {
    grads[static_cast<size_t>(i + count)] = g.Apply("GatherV2", {g.Dy(0), g.X(i), g.ConstInt(0)});
  }
  return grads;
}

void DeclareGathers(OpRegistry& ops) {
  ops.Declare("Gather")
      .Is(Category::kArray)
      .In("params: Tparams")
      .In("indices: Tindices")
      .Out("output: Tparams")
      .Attr("validate_indices: bool = true")
      .Attr("Tparams: type")
      .Attr("Tindices: {int32, int64}")
      .MovesElements()
      .KnownInts(KnownGather)
      .Shape(GatherShape)
      .Grad(GatherGradient)
      .Doc("The rows of `params` at `indices`.");
  ops.Declare("GatherV2")
      .Is(Category::kArray)
      .In("params: Tparams")
      .In("indices: Tindices")
      .In("axis: Taxis")
      .Out("output: Tparams")
      .Attr("batch_dims: int = 0")
      .Attr("Tparams: type")
      .Attr("Tindices: {int16, int32, int64}")
      .Attr("Taxis: {int32, int64}")
      .MovesElements()
      .KnownInts(KnownGather)
      .Shape(GatherV2Shape)
      .Grad(GatherV2Gradient)
      .Doc("The slices of `params` along `axis` at `indices`; the first batch_dims axes of both are looped over.");
  ops.Declare("ResourceGather")
      .Is(Category::kArray)
      .In("resource: resource")
      .In("indices: Tindices")
      .Out("output: dtype")
      .Attr("batch_dims: int = 0")
      .Attr("validate_indices: bool = true")
      .Attr("dtype: type")
      .Attr("Tindices: {int32, int64}")
      .Stateful()
      .MovesElements()
      .Shape(ResourceGatherShape)
      .Grad(ResourceGatherGradient)
      .Doc("The rows of the variable behind the handle at `indices`.");
  ops.Declare("OneHot")
      .Is(Category::kArray)
      .In("indices: TI")
      .In("depth: int32")
      .In("on_value: T")
      .In("off_value: T")
      .Out("output: T")
      .Attr("axis: int = -1")
      .Attr(kAnyT)
      .Attr("TI: {uint8, int8, int32, int64} = DT_INT64")
      .MovesElements()
      .Shape(OneHotShape)
      .NoGradient("its indices are discrete and its two values stand for constants")
      .Doc("off_value everywhere, on_value where the position along the new axis equals the index.");
}

void DeclareStitches(OpRegistry& ops) {
  for (const char* name : {"DynamicStitch", "ParallelDynamicStitch"}) {
    ops.Declare(name)
        .Is(Category::kArray)
        .In("indices: N*int32")
        .In("data: N*T")
        .Out("merged: T")
        .Attr("N: int >= 1")
        .Attr(kAnyT)
        .MovesElements()
        .Shape(DynamicStitchShape)
        .Grad(DynamicStitchGradient)
        .Doc("Puts row data[m][i] at row indices[m][i] of the answer; of rows for one place the last stays.");
  }
}

void DeclareDistinct(OpRegistry& ops) {
  ops.Declare("Unique")
      .Is(Category::kArray)
      .In("x: T")
      .Out("y: T")
      .Out("idx: out_idx")
      .Attr(kAnyT)
      .Attr("out_idx: {int32, int64} = DT_INT32")
      .MovesElements()
      .Shape(UniqueShape)
      .NoGradient(kDiscrete)
      .Doc("The distinct elements of a vector in order of first appearance, and where each element went.");
  ops.Declare("ListDiff")
      .Is(Category::kArray)
      .In("x: T")
      .In("y: T")
      .Out("out: T")
      .Out("idx: out_idx")
      .Attr(kAnyT)
      .Attr("out_idx: {int32, int64} = DT_INT32")
      .MovesElements()
      .Shape(ListDiffShape)
      .NoGradient(kDiscrete)
      .Doc("The elements of x that are not in y, in order, and their positions in x.");
}

}  // namespace

void DeclareGather(OpRegistry& ops) {
  DeclareGathers(ops);
  DeclareStitches(ops);
  DeclareDistinct(ops);
}

}  // namespace weir::ops
