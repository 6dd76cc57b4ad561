// The structure of sparse tensors, given by coordinates, values and a dense shape: conversions, order, concatenation,
// slices, rows without entries.
#include <algorithm>

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

constexpr std::string_view kStructure = "its coordinates are discrete";

/// [rows, columns], each -1 if unknown.
PartialShape MatrixOf(int64_t rows, int64_t columns) { return PartialShape{rows, columns}; }

/// The extent of vector input i, -1 if unknown; an error if it cannot be a vector.
Result<int64_t> LengthOf(const ShapeContext& c, int i) {
  WEIR_ASSIGN(const PartialShape vector, c.WithRank(i, 1));
  return vector.dim(0);
}

Status SparseToDenseShape(ShapeContext& c) {
  if (const std::optional<std::vector<int64_t>> dims = c.ints(1); dims && c.input(1).rank() == 1) {
    for (const int64_t dim : *dims) {
      if (dim < 0) return InvalidArgument("Dimension {} must be >= 0", dim);
    }
  }
  WEIR_ASSIGN(PartialShape shape, c.shape_from(1));
  c.set_output(0, std::move(shape));
  return Status();
}

/// What a value got from the dense gradient; the rest is the default value's.
Result<std::vector<Grad>> SparseToDenseGradient(GradContext& g) {
  const auto sum = [&](Value v) {
    const Value axes = g.Apply("Range", {g.ConstInt(0), g.Apply("Rank", {v}), g.ConstInt(1)});
    return g.Apply("Sum", {v, axes});
  };
  const Value values = g.Apply("GatherNd", {g.Dy(0), g.X(0)});
  std::vector<Grad> grads(4);
  grads[2] = values;
  grads[3] = g.Sub(sum(g.Dy(0)), sum(values));
  return grads;
}

Status SparseReorderShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape indices, c.WithRank(0, 2));
  WEIR_ASSIGN(PartialShape values, c.WithRank(1, 1));
  WEIR_TRY(c.WithRank(2, 1).status());
  c.set_output(0, std::move(indices));
  c.set_output(1, std::move(values));
  return Status();
}

/// Reorders the entries' numbers likewise; their inverse brings the gradient back.
Result<std::vector<Grad>> SparseReorderGradient(GradContext& g) {
  const Value count = g.Apply("GatherV2", {g.ShapeOp(g.X(0)), g.ConstInt(0), g.ConstInt(0)});
  const Value numbers = g.Apply("Range", {g.ConstInt(0), count, g.ConstInt(1)});
  const std::vector<Value> ordered = g.ApplyAll("SparseReorder", {g.X(0), numbers, g.X(2)});
  std::vector<Grad> grads(3);
  if (ordered.size() < 2) return grads;  // the context has the error
  const Value inverse = g.Apply("InvertPermutation", {ordered[1]});
  grads[1] = g.Apply("GatherV2", {g.Dy(1), inverse, g.ConstInt(0)});
  return grads;
}

Status SparseReshapeShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape indices, c.WithRank(0, 2));
  WEIR_TRY(c.WithRank(1, 1).status());
  WEIR_ASSIGN(PartialShape target, c.WithRank(2, 1));
  c.set_output(0, MatrixOf(indices.dim(0), target.dim(0)));
  c.set_output(1, std::move(target));
  return Status();
}

/// Inputs: N matrices of coordinates, N vectors of values, N shapes.
Status SparseConcatShape(ShapeContext& c) {
  const int n = c.num_inputs() / 3;
  int64_t rows = 0, columns = -1;
  PartialShape shape = VectorOf(-1);
  for (int i = 0; i < n; ++i) {
    WEIR_ASSIGN(const PartialShape indices, c.WithRank(i, 2));
    WEIR_ASSIGN(const PartialShape values, c.WithRank(n + i, 1));
    WEIR_ASSIGN(const PartialShape own, c.WithRank(2 * n + i, 1));
    WEIR_ASSIGN(const int64_t entries, op::MergeDim(indices.dim(0), values.dim(0)));
    WEIR_ASSIGN(rows, AddDims(rows, entries));
    WEIR_ASSIGN(columns, op::MergeDim(columns, indices.dim(1)));
    WEIR_ASSIGN(shape, shape.Merge(own));
  }
  WEIR_ASSIGN(columns, op::MergeDim(columns, shape.dim(0)));
  c.set_output(0, MatrixOf(rows, columns));
  c.set_output(1, VectorOf(rows));
  c.set_output(2, VectorOf(columns));
  return Status();
}

Status SparseSliceShape(ShapeContext& c) {
  WEIR_ASSIGN(const int64_t rank, LengthOf(c, 2));
  c.set_output(0, MatrixOf(-1, rank));
  c.set_output(1, VectorOf(-1));
  c.set_output(2, VectorOf(rank));
  return Status();
}

Result<std::vector<Grad>> SparseSliceGradient(GradContext& g) {
  std::vector<Grad> grads(5);
  grads[1] = g.Apply("SparseSliceGrad", {g.Dy(1), g.X(0), g.X(3), g.Y(0)});
  return grads;
}

Status SparseSliceGradShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape indices, c.WithRank(1, 2));
  c.set_output(0, VectorOf(indices.dim(0)));
  return Status();
}

Status SparseSplitShape(ShapeContext& c) {
  WEIR_ASSIGN(const int64_t rank, LengthOf(c, 3));
  const int n = c.num_outputs() / 3;
  for (int i = 0; i < n; ++i) {
    c.set_output(i, MatrixOf(-1, rank));
    c.set_output(n + i, VectorOf(-1));
    c.set_output(2 * n + i, VectorOf(rank));
  }
  return Status();
}

Status SparseFillEmptyRowsShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape indices, c.WithRank(0, 2));
  WEIR_ASSIGN(const PartialShape values, c.WithRank(1, 1));
  WEIR_ASSIGN(const int64_t entries, op::MergeDim(indices.dim(0), values.dim(0)));
  WEIR_ASSIGN(const int64_t length, LengthOf(c, 2));
  WEIR_ASSIGN(const int64_t rank, op::MergeDim(indices.dim(1), length));
  WEIR_TRY(c.WithRank(3, 0).status());
  int64_t rows = -1;
  if (const std::optional<std::vector<int64_t>> shape = c.ints(2); shape && !shape->empty() && shape->front() >= 0) {
    rows = shape->front();
  }
  c.set_output(0, MatrixOf(-1, rank));
  c.set_output(1, VectorOf(-1));
  c.set_output(2, VectorOf(rows));
  c.set_output(3, VectorOf(entries));
  return Status();
}

Result<std::vector<Grad>> SparseFillEmptyRowsGradient(GradContext& g) {
  const std::vector<Value> parts = g.ApplyAll("SparseFillEmptyRowsGrad", {g.Y(3), g.Dy(1)});
  std::vector<Grad> grads(4);
  if (parts.size() < 2) return grads;  // the context has the error
  grads[1] = parts[0];
  grads[3] = parts[1];
  return grads;
}

Status SparseFillEmptyRowsGradShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape places, c.WithRank(0, 1));
  WEIR_TRY(c.WithRank(1, 1).status());
  c.set_output(0, std::move(places));
  c.set_output(1, Shape());
  return Status();
}

OpBuilder SparseOp(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kArray); }

void DeclareConversions(OpRegistry& ops) {
  SparseOp(ops, "SparseToDense")
      .In("sparse_indices: Tindices")
      .In("output_shape: Tindices")
      .In("sparse_values: T")
      .In("default_value: T")
      .Out("dense: T")
      .Attr("validate_indices: bool = true")
      .Attr(kAnyT)
      .Attr("Tindices: {int32, int64}")
      .MovesElements()
      .Shape(SparseToDenseShape)
      .Grad(SparseToDenseGradient)
      .Doc("A dense tensor with sparse_values at sparse_indices and default_value elsewhere.");
  SparseOp(ops, "SparseReorder")
      .In("input_indices: int64")
      .In("input_values: T")
      .In("input_shape: int64")
      .Out("output_indices: int64")
      .Out("output_values: T")
      .Attr(kAnyT)
      .MovesElements()
      .Shape(SparseReorderShape)
      .Grad(SparseReorderGradient)
      .Doc("The entries of a sparse tensor in row-major order.");
  SparseOp(ops, "SparseReshape")
      .In("input_indices: int64")
      .In("input_shape: int64")
      .In("new_shape: int64")
      .Out("output_indices: int64")
      .Out("output_shape: int64")
      .Shape(SparseReshapeShape)
      .NoGradient(kStructure)
      .Doc("The coordinates of a sparse tensor's entries in new_shape, whose one -1 follows from the size.");
}

void DeclareSparseParts(OpRegistry& ops) {
  SparseOp(ops, "SparseConcat")
      .In("indices: N*int64")
      .In("values: N*T")
      .In("shapes: N*int64")
      .Out("output_indices: int64")
      .Out("output_values: T")
      .Out("output_shape: int64")
      .Attr("concat_dim: int")
      .Attr("N: int >= 2")
      .Attr(kAnyT)
      .MovesElements()
      .Shape(SparseConcatShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("Sparse tensors behind each other along an axis, their entries in row-major order.");
  SparseOp(ops, "SparseSlice")
      .In("indices: int64")
      .In("values: T")
      .In("shape: int64")
      .In("start: int64")
      .In("size: int64")
      .Out("output_indices: int64")
      .Out("output_values: T")
      .Out("output_shape: int64")
      .Attr(kAnyT)
      .MovesElements()
      .Shape(SparseSliceShape)
      .Grad(SparseSliceGradient)
      .Doc("The part of a sparse tensor from `start` on, of at most `size`.");
  SparseOp(ops, "SparseSliceGrad")
      .In("backprop_val_grad: T")
      .In("input_indices: int64")
      .In("input_start: int64")
      .In("output_indices: int64")
      .Out("val_grad: T")
      .Attr(kNumberT)
      .Shape(SparseSliceGradShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("The gradient of SparseSlice by its values.");
  SparseOp(ops, "SparseSplit")
      .In("split_dim: int64")
      .In("indices: int64")
      .In("values: T")
      .In("shape: int64")
      .Out("output_indices: num_split*int64")
      .Out("output_values: num_split*T")
      .Out("output_shape: num_split*int64")
      .Attr("num_split: int >= 1")
      .Attr(kAnyT)
      .MovesElements()
      .Shape(SparseSplitShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("Cuts a sparse tensor along an axis into num_split parts, the first ones longer by one if need be.");
  SparseOp(ops, "SparseFillEmptyRows")
      .In("indices: int64")
      .In("values: T")
      .In("dense_shape: int64")
      .In("default_value: T")
      .Out("output_indices: int64")
      .Out("output_values: T")
      .Out("empty_row_indicator: bool")
      .Out("reverse_index_map: int64")
      .Attr(kAnyT)
      .MovesElements()
      .Shape(SparseFillEmptyRowsShape)
      .Grad(SparseFillEmptyRowsGradient)
      .Doc("A sparse tensor in which rows without entries have default_value in column 0.");
  SparseOp(ops, "SparseFillEmptyRowsGrad")
      .In("reverse_index_map: int64")
      .In("grad_values: T")
      .Out("d_values: T")
      .Out("d_default_value: T")
      .Attr(kAnyT)
      .Shape(SparseFillEmptyRowsGradShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("The gradients of SparseFillEmptyRows by its values and by the default value.");
}

}  // namespace

void DeclareSparse(OpRegistry& ops) {
  DeclareConversions(ops);
  DeclareSparseParts(ops);
}

}  // namespace weir::ops
