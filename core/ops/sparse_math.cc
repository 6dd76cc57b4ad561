// Arithmetic on sparse tensors: sums, products, reductions, softmax.
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

Status SparseMatMulShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 2).status());
  WEIR_TRY(c.WithRank(1, 1).status());
  WEIR_ASSIGN(PartialShape a, c.shape_from(2));
  WEIR_ASSIGN(a, ToRank(a, 2));
  WEIR_ASSIGN(const PartialShape b, c.WithRank(3, 2));
  WEIR_ASSIGN(const bool adjoint_a, c.attrs().Bool("adjoint_a"));
  WEIR_ASSIGN(const bool adjoint_b, c.attrs().Bool("adjoint_b"));
  WEIR_ASSIGN(PartialShape out, MatrixProduct(a, adjoint_a, b, adjoint_b));
  c.set_output(0, std::move(out));
  return Status();
}

/// The gradient of an entry at (r, c) is the product of row r of dy and of the conjugate of row c of b: of the rows and
/// columns that the adjoints name instead.
Value EntryGradients(GradContext& g, Value dy, bool adjoint_a, bool adjoint_b) {
  const Value indices = g.X(0), b = g.X(3), zero = g.ConstInt(0), one = g.ConstInt(1);
  const Value first = g.Apply("GatherV2", {indices, zero, one}), second = g.Apply("GatherV2", {indices, one, one});
  const Value rows = adjoint_b ? g.Apply("Transpose", {b, g.ConstInts({1, 0})}) : b;
  const Value of_dy = g.Apply("GatherV2", {dy, adjoint_a ? second : first, zero});
  const Value of_b = g.Apply("GatherV2", {rows, adjoint_a ? first : second, zero});
  // conj(a) enters the product of an adjoint a, and conj(b) that of an adjoint b.
  const Value factor = adjoint_b ? of_b : g.Conj(of_b);
  const Value sum = g.Apply("Sum", {g.Mul(of_dy, factor), g.ConstInts({1})});
  return adjoint_a ? g.Conj(sum) : sum;
}

Result<std::vector<Grad>> SparseMatMulGradient(GradContext& g) {
  WEIR_ASSIGN(const bool adjoint_a, g.attrs().Bool("adjoint_a"));
  WEIR_ASSIGN(const bool adjoint_b, g.attrs().Bool("adjoint_b"));
  const Value dy = g.Dy(0);
  Value by_b = g.Apply("SparseTensorDenseMatMul", {g.X(0), g.X(1), g.X(2), dy}, {{"adjoint_a", !adjoint_a}});
  if (adjoint_b) by_b = g.Conj(g.Apply("Transpose", {by_b, g.ConstInts({1, 0})}));
  std::vector<Grad> grads(4);
  grads[1] = EntryGradients(g, dy, adjoint_a, adjoint_b);
  grads[3] = by_b;
  return grads;
}

Result<std::vector<Grad>> SparseTensorDenseAddGradient(GradContext& g) {
  std::vector<Grad> grads(4);
  grads[1] = g.Apply("GatherNd", {g.Dy(0), g.X(0)});
  grads[3] = g.Dy(0);
  return grads;
}

Status SparseAddShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape shape, c.WithRank(2, 1));
  c.set_output(0, PartialShape{-1, shape.dim(0)});
  c.set_output(1, VectorOf(-1));
  c.set_output(2, std::move(shape));
  return Status();
}

Result<std::vector<Grad>> SparseAddGradient(GradContext& g) {
  const std::vector<Value> parts = g.ApplyAll("SparseAddGrad", {g.Dy(1), g.X(0), g.X(3), g.Y(0)});
  std::vector<Grad> grads(7);
  if (parts.size() < 2) return grads;  // the context has the error
  grads[1] = parts[0];
  grads[4] = parts[1];
  return grads;
}

Status SparseAddGradShape(ShapeContext& c) {
  for (int i = 0; i < 2; ++i) {
    WEIR_ASSIGN(const PartialShape indices, c.WithRank(1 + i, 2));
    c.set_output(i, VectorOf(indices.dim(0)));
  }
  return Status();
}

Status SparseExtremeShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape indices, c.WithRank(0, 2));
  c.set_output(0, PartialShape{-1, indices.dim(1)});
  c.set_output(1, VectorOf(-1));
  return Status();
}

Status SparseDenseShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape indices, c.WithRank(0, 2));
  c.set_output(0, VectorOf(indices.dim(0)));
  return Status();
}

/// The dense operand's elements at the entries' places, and these places.
struct DenseAt {
  Value places, elements;

  explicit DenseAt(GradContext& g) {
    const Value y_shape = g.Apply("Shape", {g.X(3)}, {{"out_type", DType::kInt64}});
    const Value added = g.Reshape(g.Sub(g.Apply("Size", {g.X(2)}), g.Apply("Size", {y_shape})), g.ConstInts({1}));
    const Value one = IndexScalar(g, DType::kInt64, 1);
    const Value padded = JoinVectors(g, {g.Apply("Fill", {added, one}), y_shape});
    const Value scaled = g.Apply("FloorDiv", {g.X(0), g.Apply("FloorDiv", {g.X(2), padded})});
    places = g.Apply("Slice", {scaled, JoinVectors(g, {g.ConstInts({0}), added}), g.ConstInts({-1, -1})});
    elements = g.Apply("GatherNd", {g.X(3), places});
  }
};

/// `by_element` is the gradient by the dense element of each entry; several may share one.
std::vector<Grad> DenseGradients(GradContext& g, const DenseAt& dense, Value by_value, Value by_element) {
  const Value y_shape = g.Apply("Shape", {g.X(3)}, {{"out_type", DType::kInt64}});
  std::vector<Grad> grads(4);
  grads[1] = by_value;
  grads[3] = g.Apply("SparseTensorDenseAdd", {dense.places, by_element, y_shape, g.Apply("ZerosLike", {g.X(3)})});
  return grads;
}

Result<std::vector<Grad>> SparseDenseMulGradient(GradContext& g) {
  const DenseAt dense(g);
  return DenseGradients(g, dense, g.Mul(g.Dy(0), dense.elements), g.Mul(g.Dy(0), g.X(1)));
}
Result<std::vector<Grad>> SparseDenseDivGradient(GradContext& g) {
  const DenseAt dense(g);
  const Value by_element = g.Mul(g.Dy(0), g.Div(g.Neg(g.X(1)), g.Apply("Square", {dense.elements})));
  return DenseGradients(g, dense, g.Div(g.Dy(0), dense.elements), by_element);
}

Status SparseReduceShape(ShapeContext& c) {
  WEIR_ASSIGN(const bool keep_dims, c.attrs().Bool("keep_dims"));
  const std::optional<std::vector<int64_t>> shape = c.ints(2), axes = c.ints(3);
  if (!shape || !axes) return Status();
  const auto rank = static_cast<int64_t>(shape->size());
  std::vector<bool> reduced(shape->size());
  for (const int64_t axis : *axes) {
    if (axis < -rank || axis >= rank) {
      return InvalidArgument("Invalid reduction dimension {}, for input with {} dimensions.", axis, rank);
    }
    reduced[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  }
  std::vector<int64_t> dims;
  for (size_t d = 0; d < shape->size(); ++d) {
    if ((*shape)[d] < 0) return InvalidArgument("Dimension {} must be >= 0", (*shape)[d]);
    if (!reduced[d] || keep_dims) dims.push_back(reduced[d] ? 1 : (*shape)[d]);
  }
  WEIR_ASSIGN(PartialShape out, PartialShape::Make(dims));
  c.set_output(0, std::move(out));
  return Status();
}

/// Each entry gets the gradient of the place that it was reduced to.
Result<std::vector<Grad>> SparseReduceSumGradient(GradContext& g) {
  const Value shape = g.X(2), rank = g.Apply("Size", {shape});
  const Value axes = g.Apply("FloorMod", {g.Add(g.Reshape(g.X(3), g.ConstInts({-1})), rank), rank});
  const Value range = g.Apply("Range", {g.ConstInt(0), rank, g.ConstInt(1)});
  const Value ones = g.Apply("Fill", {g.ShapeOp(axes), g.ConstInt(1)});
  const Value kept = g.Apply("DynamicStitch", {range, axes, AsInt32(g, shape), ones}, {{"N", int64_t{2}}});
  const Value wide = g.Apply("Cast", {kept}, {{"DstT", DType::kInt64}});
  const Value scale = g.Apply("FloorDiv", {shape, wide});
  std::vector<Grad> grads(4);
  grads[1] = g.Apply("GatherNd", {g.Reshape(g.Dy(0), kept), g.Apply("FloorDiv", {g.X(0), scale})});
  return grads;
}

Status SparseSoftmaxShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 2).status());
  WEIR_ASSIGN(PartialShape values, c.WithRank(1, 1));
  WEIR_TRY(c.WithRank(2, 1).status());
  c.set_output(0, std::move(values));
  return Status();
}

/// (dy - sum of dy * y over the row) * y, of the entries only.
Result<std::vector<Grad>> SparseSoftmaxGradient(GradContext& g) {
  const Value indices = g.X(0), shape = g.X(2), y = g.Y(0), dy = g.Dy(0);
  const Value sums = g.Apply("SparseReduceSum", {indices, g.Mul(y, dy), shape, g.ConstInts({-1})},
                             {{"keep_dims", true}});
  const Value rest = g.Apply("SparseDenseCwiseAdd", {indices, dy, shape, g.Neg(sums)});
  return std::vector<Grad>{Grad::None(), g.Mul(rest, y), Grad::None()};
}

OpBuilder SparseMath(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kMath); }

void DeclareWithDense(OpRegistry& ops) {
  SparseMath(ops, "SparseTensorDenseMatMul")
      .In("a_indices: Tindices")
      .In("a_values: T")
      .In("a_shape: int64")
      .In("b: T")
      .Out("product: T")
      .Attr(kAnyT)
      .Attr("Tindices: {int32, int64} = DT_INT64")
      .Attr("adjoint_a: bool = false")
      .Attr("adjoint_b: bool = false")
      .Shape(SparseMatMulShape)
      .Grad(SparseMatMulGradient)
      .Doc("The product of a sparse matrix and a dense one, either of them adjoint.");
  SparseMath(ops, "SparseTensorDenseAdd")
      .In("a_indices: Tindices")
      .In("a_values: T")
      .In("a_shape: Tindices")
      .In("b: T")
      .Out("output: T")
      .Attr(kNumberT)
      .Attr("Tindices: {int32, int64}")
      .Shape(op::SameAs(3))
      .Grad(SparseTensorDenseAddGradient)
      .Doc("The dense tensor `b` with the entries of a sparse tensor of its shape added.");
  struct Binary {
    const char* name;
    op::GradFn gradient;  // empty: TensorFlow has none
    const char* doc;
  };
  const Binary kBinary[] = {
      {"SparseDenseCwiseAdd", {}, "Each entry plus the dense element at its place, where `dense` is broadcast."},
      {"SparseDenseCwiseMul", SparseDenseMulGradient,
       "Each entry times the dense element at its place, where `dense` is broadcast."},
      {"SparseDenseCwiseDiv", SparseDenseDivGradient,
       "Each entry over the dense element at its place, where `dense` is broadcast."}};
  for (const Binary& binary : kBinary) {
    OpBuilder op = SparseMath(ops, binary.name);
    op.In("sp_indices: int64")
        .In("sp_values: T")
        .In("sp_shape: int64")
        .In("dense: T")
        .Out("output: T")
        .Attr(kNumberT)
        .Shape(SparseDenseShape)
        .Doc(binary.doc);
    if (binary.gradient) {
      op.Grad(binary.gradient);
    } else {
      op.NoGradient(op::kUndefinedGradient);
    }
  }
}

/// Two sparse tensors of one shape.
OpBuilder TwoSparse(OpRegistry& ops, std::string_view name, std::string_view type) {
  return SparseMath(ops, name)
      .In("a_indices: int64")
      .In("a_values: T")
      .In("a_shape: int64")
      .In("b_indices: int64")
      .In("b_values: T")
      .In("b_shape: int64")
      .Attr(type);
}

void DeclareWithSparse(OpRegistry& ops) {
  TwoSparse(ops, "SparseAdd", kNumberT)
      .In("thresh: Treal")
      .Out("sum_indices: int64")
      .Out("sum_values: T")
      .Out("sum_shape: int64")
      .Attr("Treal: realnumbertype")
      .Shape(SparseAddShape)
      .Grad(SparseAddGradient)
      .Doc("The sum of two sparse tensors, without entries whose magnitude is below `thresh`.");
  SparseMath(ops, "SparseAddGrad")
      .In("backprop_val_grad: T")
      .In("a_indices: int64")
      .In("b_indices: int64")
      .In("sum_indices: int64")
      .Out("a_val_grad: T")
      .Out("b_val_grad: T")
      .Attr(kNumberT)
      .Shape(SparseAddGradShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("The gradients of SparseAdd by the values of both operands.");
  TwoSparse(ops, "SparseSparseMaximum", kRealNumberT)
      .Out("output_indices: int64")
      .Out("output_values: T")
      .Shape(SparseExtremeShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("The larger elements of two sparse tensors, at the places where either has an entry.");
  TwoSparse(ops, "SparseSparseMinimum", kNumberT)
      .Out("output_indices: int64")
      .Out("output_values: T")
      .Shape(SparseExtremeShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("The smaller elements of two sparse tensors, at the places where either has an entry.");
}

OpBuilder Reduction(OpRegistry& ops, std::string_view name, std::string_view type) {
  return SparseMath(ops, name)
      .In("input_indices: int64")
      .In("input_values: T")
      .In("input_shape: int64")
      .In("reduction_axes: int32")
      .Attr("keep_dims: bool = false")
      .Attr(type);
}

OpBuilder SparseReduction(OpRegistry& ops, std::string_view name, std::string_view type) {
  return Reduction(ops, name, type)
      .Out("output_indices: int64")
      .Out("output_values: T")
      .Out("output_shape: int64")
      .Shape(op::Unknown())
      .NoGradient(op::kUndefinedGradient);
}

void DeclareReductions(OpRegistry& ops) {
  Reduction(ops, "SparseReduceSum", kNumberT)
      .Out("output: T")
      .Shape(SparseReduceShape)
      .Grad(SparseReduceSumGradient)
      .Doc("The sum of a sparse tensor over the given axes, dense.");
  Reduction(ops, "SparseReduceMax", kRealNumberT)
      .Out("output: T")
      .Shape(SparseReduceShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("The maximum of a sparse tensor's entries over the given axes, dense; 0 where there are none.");
  SparseReduction(ops, "SparseReduceSumSparse", kNumberT)
      .Doc("The sum of a sparse tensor over the given axes, sparse.");
  SparseReduction(ops, "SparseReduceMaxSparse", kRealNumberT)
      .Doc("The maximum of a sparse tensor's entries over the given axes, sparse.");
  SparseMath(ops, "SparseSoftmax")
      .In("sp_indices: int64")
      .In("sp_values: T")
      .In("sp_shape: int64")
      .Out("output: T")
      .Attr("T: {half, float, double}")
      .Shape(SparseSoftmaxShape)
      .Grad(SparseSoftmaxGradient)
      .Doc("Softmax over the entries of each row of the last axis.");
}

}  // namespace

void DeclareSparseMath(OpRegistry& ops) {
  DeclareWithDense(ops);
  DeclareWithSparse(ops);
  DeclareReductions(ops);
}

}  // namespace weir::ops
