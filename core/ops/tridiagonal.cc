// Matrices with three diagonals: products and systems.
#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {
namespace {

using op::Grad;
using op::GradContext;
using op::OpRegistry;
using op::ShapeContext;
using op::Value;

constexpr std::string_view kMatrixT = "T: {double, float, complex64, complex128}";

/// All inputs have one rank, at least 2, and fitting batch extents.
Status CheckBatches(const ShapeContext& c) {
  PartialShape batch;
  int rank = -1;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const PartialShape& input = c.input(i);
    if (!input.has_rank()) continue;
    if (input.rank() < 2) return InvalidArgument("Input tensor {} must have rank >= 2, got {}", i, input.rank());
    if (rank >= 0 && input.rank() != rank) return InvalidArgument("All input tensors must have the same rank.");
    rank = input.rank();
    WEIR_ASSIGN(batch, batch.Merge(Span(input, 0, rank - 2)));
  }
  return Status();
}

int64_t FromEnd(const PartialShape& shape, int i) { return shape.has_rank() ? shape.dim(shape.rank() - i) : -1; }
bool Differ(int64_t a, int64_t b) { return a >= 0 && b >= 0 && a != b; }

/// diagonals [..., 3, n], rhs [..., n, columns].
Status SolveShape(ShapeContext& c) {
  WEIR_TRY(CheckBatches(c));
  if (Differ(FromEnd(c.input(0), 2), 3)) {
    return InvalidArgument("Expected diagonals to be provided as a matrix with 3 rows, got {} rows.",
                           FromEnd(c.input(0), 2));
  }
  if (Differ(FromEnd(c.input(0), 1), FromEnd(c.input(1), 2))) {
    return InvalidArgument("Expected the same number of left-hand sides and right-hand sides, got {} and {}.",
                           FromEnd(c.input(0), 1), FromEnd(c.input(1), 2));
  }
  c.set_output(0, c.input(1));
  return Status();
}

/// Three diagonals [..., 1, n] and rhs [..., n, columns].
Status ProductShape(ShapeContext& c) {
  WEIR_TRY(CheckBatches(c));
  constexpr std::string_view kNames[] = {"superdiagonal", "main diagonal", "subdiagonal"};
  for (int i = 0; i < 3; ++i) {
    if (Differ(FromEnd(c.input(i), 2), 1) || Differ(FromEnd(c.input(i), 1), FromEnd(c.input(3), 2))) {
      return InvalidArgument("Invalid {} shape.", kNames[i]);
    }
  }
  c.set_output(0, c.input(3));
  return Status();
}

/// The part [begin, end) of axis -2; 0 leaves a bound open.
Value Rows(GradContext& g, Value x, int32_t begin, int32_t end) {
  const int64_t open_begin = (begin == 0 ? 2 : 0) | 4, open_end = (end == 0 ? 2 : 0) | 4;
  return g.Apply("StridedSlice", {x, g.ConstInts({0, begin, 0}), g.ConstInts({0, end, 0}), g.ConstInts({1, 1, 1})},
                 {{"ellipsis_mask", int64_t{1}}, {"begin_mask", open_begin}, {"end_mask", open_end}});
}

Value Joined(GradContext& g, const std::vector<Value>& parts, int32_t axis) {
  std::vector<Value> inputs = parts;
  inputs.push_back(g.ConstInt(axis));
  return g.ApplyList("ConcatV2", inputs, {{"N", static_cast<int64_t>(parts.size())}});
}

/// Row i is row i + 1, or i - 1, of x; zeros come in.
Value Next(GradContext& g, Value x) {
  return Joined(g, {Rows(g, x, 1, 0), g.Apply("ZerosLike", {Rows(g, x, 0, 1)})}, -2);
}
Value Previous(GradContext& g, Value x) {
  return Joined(g, {g.Apply("ZerosLike", {Rows(g, x, 0, 1)}), Rows(g, x, 0, -1)}, -2);
}

/// The matrices of x with rows and columns exchanged.
Value Flipped(GradContext& g, Value x) {
  const Value rank = g.Apply("Rank", {x}), one = g.ConstInt(1);
  const Value batch = g.Apply("Range", {g.ConstInt(0), g.Sub(rank, g.ConstInt(2)), one});
  const Value last = g.ApplyList("Pack", {g.Sub(rank, one), g.Sub(rank, g.ConstInt(2))}, {{"N", int64_t{2}}});
  return g.Apply("Transpose", {x, Joined(g, {batch, last}, 0)});
}

Value RowSums(GradContext& g, Value x) { return g.Apply("Sum", {x, g.ConstInts({-1})}, {{"keep_dims", true}}); }

std::vector<Grad> ProductGradient(GradContext& g) {
  const Value dy = g.Dy(0), x = g.Conj(g.X(3));
  const auto column = [&](int i) { return g.Conj(Flipped(g, g.X(i))); };
  const auto row = [&](Value product) { return Flipped(g, RowSums(g, product)); };
  const Value upper = Previous(g, g.Mul(column(0), dy)), lower = Next(g, g.Mul(column(2), dy));
  const Value dx = g.Add(g.Add(upper, g.Mul(column(1), dy)), lower);
  return {row(g.Mul(Next(g, x), dy)), row(g.Mul(x, dy)), row(g.Mul(Previous(g, x), dy)), dx};
}

/// The solution of the transposed system is the gradient by rhs; its product with the solution that by the diagonals.
Result<std::vector<Grad>> SolveGradient(GradContext& g) {
  WEIR_ASSIGN(const bool pivoting, g.attrs().Bool("partial_pivoting"));
  WEIR_ASSIGN(const bool perturb, g.attrs().Bool("perturb_singular"));
  const Value columns = Flipped(g, g.X(0));  // [..., n, 3]
  const auto diagonal = [&](int32_t i) {
    return g.Apply("StridedSlice", {columns, g.ConstInts({0, i}), g.ConstInts({0, i + 1}), g.ConstInts({1, 1})},
                   {{"ellipsis_mask", int64_t{1}}});
  };
  const Value transposed = Flipped(g, Joined(g, {Next(g, diagonal(2)), diagonal(1), Previous(g, diagonal(0))}, -1));
  const Value drhs = g.Apply("TridiagonalSolve", {transposed, g.Dy(0)},
                             {{"partial_pivoting", pivoting}, {"perturb_singular", perturb}});
  const Value y = g.Y(0);
  const Value products = Joined(
      g, {RowSums(g, g.Mul(drhs, Next(g, y))), RowSums(g, g.Mul(drhs, y)), RowSums(g, g.Mul(drhs, Previous(g, y)))},
      -1);
  return std::vector<Grad>{g.Neg(Flipped(g, products)), drhs};
}

}  // namespace

void DeclareTridiagonal(OpRegistry& ops) {
  ops.Declare("TridiagonalMatMul")
      .In("superdiag: T")
      .In("maindiag: T")
      .In("subdiag: T")
      .In("rhs: T")
      .Out("output: T")
      .Attr(kMatrixT)
      .Shape(ProductShape)
      .Grad(ProductGradient)
      .Doc(
          "Products of matrices with three diagonals [..., 1, n] and matrices rhs [..., n, columns]; the last element "
          "of superdiag and the first of subdiag are not used.");
  ops.Declare("TridiagonalSolve")
      .In("diagonals: T")
      .In("rhs: T")
      .Out("output: T")
      .Attr("partial_pivoting: bool = true")
      .Attr("perturb_singular: bool = false")
      .Attr(kMatrixT)
      .Shape(SolveShape)
      .Grad(SolveGradient)
      .Doc(
          "Solutions of systems with the three diagonals [..., 3, n], the upper first, of matrices; NaN for singular "
          "ones.");
}

}  // namespace weir::ops
