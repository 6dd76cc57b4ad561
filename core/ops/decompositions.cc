// Decompositions, inverses, determinants and solvers of the matrices in the last two axes.
#include <algorithm>

#include "core/base/errors.h"
#include "core/op/shape_context.h"
#include "core/ops/decomposition_gradients.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {
namespace {

using op::BroadcastShapes;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;

constexpr std::string_view kMatrixT = "T: {double, float, half, complex64, complex128}";
constexpr std::string_view kOldMatrixT = "T: {double, float}";
constexpr std::string_view kRealMatrixT = "T: {half, float, double}";

/// The extents of a batch of matrices; -1: not known.
struct Matrices {
  PartialShape batch;
  int64_t rows = -1, columns = -1;

  Result<PartialShape> With(std::initializer_list<int64_t> extents) const {
    return Join(batch, PartialShape::Of(extents));
  }
};

Result<Matrices> MatricesOf(const ShapeContext& c, int i) {
  WEIR_ASSIGN(const PartialShape s, c.WithRankAtLeast(i, 2));
  Matrices m;
  if (!s.has_rank()) return m;
  m.batch = Span(s, 0, s.rank() - 2);
  m.rows = s.dim(s.rank() - 2);
  m.columns = s.dim(s.rank() - 1);
  return m;
}

Result<Matrices> SquareMatricesOf(const ShapeContext& c, int i) {
  WEIR_ASSIGN(Matrices m, MatricesOf(c, i));
  WEIR_ASSIGN(m.rows, op::MergeDim(m.rows, m.columns));
  m.columns = m.rows;
  return m;
}

int64_t SmallerSide(const Matrices& m) {
  if (m.rows == 0 || m.columns == 0) return 0;
  return m.rows < 0 || m.columns < 0 ? -1 : std::min(m.rows, m.columns);
}

Status SetMatrices(ShapeContext& c, int output, const Matrices& m, std::initializer_list<int64_t> extents) {
  WEIR_ASSIGN(PartialShape shape, m.With(extents));
  c.set_output(output, std::move(shape));
  return Status();
}

Status SquareShape(ShapeContext& c) {
  WEIR_ASSIGN(const Matrices m, SquareMatricesOf(c, 0));
  return SetMatrices(c, 0, m, {m.rows, m.rows});
}

Status DeterminantShape(ShapeContext& c) {
  WEIR_ASSIGN(const Matrices m, SquareMatricesOf(c, 0));
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, m.batch);
  return Status();
}

Status LuShape(ShapeContext& c) {
  WEIR_ASSIGN(const Matrices m, SquareMatricesOf(c, 0));
  WEIR_TRY(SetMatrices(c, 0, m, {m.rows, m.rows}));
  return SetMatrices(c, 1, m, {m.rows});
}

Status QrShape(ShapeContext& c) {
  WEIR_ASSIGN(const Matrices m, MatricesOf(c, 0));
  WEIR_ASSIGN(const bool full, c.attrs().Bool("full_matrices"));
  const int64_t inner = full ? m.rows : SmallerSide(m);
  WEIR_TRY(SetMatrices(c, 0, m, {m.rows, inner}));
  return SetMatrices(c, 1, m, {inner, m.columns});
}

Status SvdShape(ShapeContext& c) {
  WEIR_ASSIGN(const Matrices m, MatricesOf(c, 0));
  WEIR_ASSIGN(const bool full, c.attrs().Bool("full_matrices"));
  WEIR_ASSIGN(const bool vectors, c.attrs().Bool("compute_uv"));
  const int64_t inner = SmallerSide(m);
  WEIR_TRY(SetMatrices(c, 0, m, {inner}));
  if (!vectors) {
    c.set_output(1, VectorOf(0));
    c.set_output(2, VectorOf(0));
    return Status();
  }
  WEIR_TRY(SetMatrices(c, 1, m, {m.rows, full ? m.rows : inner}));
  return SetMatrices(c, 2, m, {m.columns, full ? m.columns : inner});
}

/// Eigenvalues in a row above the eigenvectors.
Status StackedEigShape(ShapeContext& c) {
  WEIR_ASSIGN(const Matrices m, SquareMatricesOf(c, 0));
  WEIR_ASSIGN(const int64_t stacked, AddDims(m.rows, 1));
  return SetMatrices(c, 0, m, {stacked, m.rows});
}

Status EigShape(ShapeContext& c) {
  WEIR_ASSIGN(const Matrices m, SquareMatricesOf(c, 0));
  WEIR_ASSIGN(const bool vectors, c.attrs().Bool("compute_v"));
  WEIR_TRY(SetMatrices(c, 0, m, {m.rows}));
  if (vectors) return SetMatrices(c, 1, m, {m.rows, m.rows});
  c.set_output(1, VectorOf(0));
  return Status();
}

Status SolutionShape(ShapeContext& c, const Matrices& left, const PartialShape& batch, int64_t rows) {
  WEIR_ASSIGN(const Matrices right, MatricesOf(c, 1));
  WEIR_TRY(op::MergeDim(left.rows, right.rows).status());
  Matrices out;
  out.batch = batch;
  return SetMatrices(c, 0, out, {rows, right.columns});
}

Status SolveShape(ShapeContext& c) {
  WEIR_ASSIGN(const Matrices left, SquareMatricesOf(c, 0));
  WEIR_ASSIGN(const Matrices right, MatricesOf(c, 1));
  WEIR_ASSIGN(const PartialShape batch, left.batch.Merge(right.batch));
  WEIR_ASSIGN(const int64_t rows, op::MergeDim(left.rows, right.rows));
  return SolutionShape(c, left, batch, rows);
}

Status SolveLsShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(2, 0).status());
  WEIR_ASSIGN(const Matrices left, MatricesOf(c, 0));
  WEIR_ASSIGN(const Matrices right, MatricesOf(c, 1));
  WEIR_ASSIGN(const PartialShape batch, left.batch.Merge(right.batch));
  return SolutionShape(c, left, batch, left.columns);
}

Status TriangularSolveShape(ShapeContext& c) {
  WEIR_ASSIGN(const Matrices left, SquareMatricesOf(c, 0));
  WEIR_ASSIGN(const Matrices right, MatricesOf(c, 1));
  WEIR_ASSIGN(const PartialShape batch, BroadcastShapes(left.batch, right.batch));
  WEIR_ASSIGN(const int64_t rows, op::MergeDim(left.rows, right.rows));
  return SolutionShape(c, left, batch, rows);
}

/// A declaration, or its old name: TensorFlow gave ops of batches names of their own before GraphDef version 13.
struct OpName {
  const char* op;
  bool old;  // without a gradient
  std::string_view types;
};

OpBuilder Decomposition(OpRegistry& ops, const OpName& name) {
  OpBuilder declared = ops.Declare(name.op);
  declared.Attr(name.types);
  return declared;
}

/// Old names have no gradients.
void SetGradient(OpBuilder& declared, const OpName& name, op::GradFn gradient) {
  if (name.old) {
    declared.NoGradient(op::kUndefinedGradient);
  } else {
    declared.Grad(std::move(gradient));
  }
}

void DeclareSquare(OpRegistry& ops, const OpName& cholesky, const OpName& cholesky_grad, const OpName& inverse) {
  OpBuilder factor = Decomposition(ops, cholesky);
  factor.In("input: T").Out("output: T").Shape(SquareShape);
  factor.Doc(
      "The lower triangular L with L L^H = input, of positive definite matrices in their lower triangles; NaN for "
      "others.");
  SetGradient(factor, cholesky, CholeskyGradient);
  OpBuilder back = Decomposition(ops, cholesky_grad);
  back.In("l: T").In("grad: T").Out("output: T").Shape(SquareShape).NoGradient(op::kUndefinedGradient);
  back.Doc("The gradient of Cholesky by its input, from its output and the gradient by that.");
  OpBuilder inverted = Decomposition(ops, inverse);
  inverted.In("input: T").Out("output: T").Attr("adjoint: bool = false").Shape(SquareShape);
  inverted.Doc("The inverse of each matrix, or of its conjugate transpose.");
  SetGradient(inverted, inverse, MatrixInverseGradient);
}

void DeclareDeterminants(OpRegistry& ops) {
  for (const OpName& name : {OpName{"MatrixDeterminant", false, "T: {half, float, double, complex64, complex128}"},
                             OpName{"BatchMatrixDeterminant", true, "T: {float, double, complex64, complex128}"}}) {
    OpBuilder declared = Decomposition(ops, name);
    declared.In("input: T").Out("output: T").Shape(DeterminantShape).Doc("The determinant of each matrix.");
    SetGradient(declared, name, MatrixDeterminantGradient);
  }
  ops.Declare("LogMatrixDeterminant")
      .In("input: T")
      .Out("sign: T")
      .Out("log_abs_determinant: T")
      .Attr("T: {half, float, double, complex64, complex128}")
      .Shape(DeterminantShape)
      .Grad(LogMatrixDeterminantGradient)
      .Doc("The sign (of complex ones, the direction) of each determinant, and the logarithm of its magnitude.");
}

void DeclareSolvers(OpRegistry& ops) {
  for (const OpName& name : {OpName{"MatrixSolve", false, kMatrixT}, OpName{"BatchMatrixSolve", true, kOldMatrixT}}) {
    OpBuilder declared = Decomposition(ops, name);
    declared.In("matrix: T").In("rhs: T").Out("output: T").Attr("adjoint: bool = false").Shape(SolveShape);
    declared.Doc("x with matrix x = rhs, or with the conjugate transpose of each matrix.");
    SetGradient(declared, name, MatrixSolveGradient);
  }
  for (const OpName& name :
       {OpName{"MatrixSolveLs", false, kMatrixT}, OpName{"BatchMatrixSolveLs", true, kOldMatrixT}}) {
    OpBuilder declared = Decomposition(ops, name);
    declared.In("matrix: T").In("rhs: T").In("l2_regularizer: double").Out("output: T");
    declared.Attr("fast: bool = true").Shape(SolveLsShape);
    declared.Doc(
        "The x that makes |matrix x - rhs|^2 + l2_regularizer |x|^2 least; by normal equations if `fast`, else by an "
        "orthogonal decomposition, without the regularizer.");
    SetGradient(declared, name, MatrixSolveLsGradient);
  }
  for (const OpName& name :
       {OpName{"MatrixTriangularSolve", false, "T: {bfloat16, double, float, half, complex64, complex128}"},
        OpName{"BatchMatrixTriangularSolve", true, kOldMatrixT}}) {
    OpBuilder declared = Decomposition(ops, name);
    declared.In("matrix: T").In("rhs: T").Out("output: T");
    declared.Attr("lower: bool = true").Attr("adjoint: bool = false").Shape(TriangularSolveShape);
    declared.Doc(
        "x with matrix x = rhs of the lower or the upper triangle of each matrix, or of its conjugate transpose; the "
        "other axes broadcast.");
    SetGradient(declared, name, MatrixTriangularSolveGradient);
  }
}

void DeclareFactors(OpRegistry& ops) {
  ops.Declare("Qr")
      .In("input: T")
      .Out("q: T")
      .Out("r: T")
      .Attr("full_matrices: bool = false")
      .Attr(kMatrixT)
      .Shape(QrShape)
      .Grad(QrGradient)
      .Doc("q with orthonormal columns and r upper triangular, with q r = input.");
  ops.Declare("Lu")
      .In("input: T")
      .Out("lu: T")
      .Out("p: output_idx_type")
      .Attr(kMatrixT)
      .Attr("output_idx_type: {int32, int64} = DT_INT32")
      .Shape(LuShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc(
          "L below the diagonal, with ones on its own, and U on and above it, with L U = the rows p of each matrix, "
          "which must be invertible.");
  for (const OpName& name :
       {OpName{"Svd", false, kMatrixT}, OpName{"BatchSvd", true, "T: {double, float, complex64, complex128}"}}) {
    OpBuilder declared = Decomposition(ops, name);
    declared.In("input: T").Out("s: T").Out("u: T").Out("v: T");
    declared.Attr("compute_uv: bool = true").Attr("full_matrices: bool = false").Shape(SvdShape);
    declared.Doc(
        "Singular values in descending order, and the vectors u and v in columns, with u diag(s) v^H = input.");
    SetGradient(declared, name, SvdGradient);
  }
}

void DeclareEigenvalues(OpRegistry& ops) {
  for (const OpName& name :
       {OpName{"SelfAdjointEig", true, kRealMatrixT}, OpName{"BatchSelfAdjointEig", true, kOldMatrixT}}) {
    OpBuilder declared = Decomposition(ops, name);
    declared.In("input: T").Out("output: T").Shape(StackedEigShape).NoGradient(op::kUndefinedGradient);
    declared.Doc("Eigenvalues in ascending order above the eigenvectors, of matrices in their lower triangles.");
  }
  for (const OpName& name :
       {OpName{"SelfAdjointEigV2", false, kMatrixT}, OpName{"BatchSelfAdjointEigV2", true, kOldMatrixT}}) {
    OpBuilder declared = Decomposition(ops, name);
    declared.In("input: T").Out("e: T").Out("v: T").Attr("compute_v: bool = true").Shape(EigShape);
    declared.Doc("Eigenvalues in ascending order, and eigenvectors in columns, of matrices in their lower triangles.");
    SetGradient(declared, name, SelfAdjointEigGradient);
  }
  ops.Declare("Eig")
      .In("input: T")
      .Out("e: Tout")
      .Out("v: Tout")
      .Attr("compute_v: bool = true")
      .Attr("T: {float, double, complex64, complex128}")
      .Attr("Tout: {complex64, complex128}")
      .Shape(EigShape)
      .Grad(EigGradient)
      .Doc("Eigenvalues, and eigenvectors in columns, of square matrices.");
}

void DeclareFunctions(OpRegistry& ops) {
  ops.Declare("MatrixExponential")
      .In("input: T")
      .Out("output: T")
      .Attr(kMatrixT)
      .Shape(SquareShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("The exponential series of each matrix.");
  ops.Declare("MatrixLogarithm")
      .In("input: T")
      .Out("output: T")
      .Attr("T: {complex64, complex128}")
      .Shape(SquareShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("The principal logarithm of each matrix, whose exponential is the matrix.");
  ops.Declare("MatrixSquareRoot")
      .In("input: T")
      .Out("output: T")
      .Attr(kMatrixT)
      .Shape(SquareShape)
      .Grad(MatrixSquareRootGradient)
      .Doc("The principal square root of each matrix, whose square is the matrix.");
}

}  // namespace

void DeclareMatrix(OpRegistry& ops) {
  DeclareSquare(ops, {"Cholesky", false, kMatrixT}, {"CholeskyGrad", false, kRealMatrixT},
                {"MatrixInverse", false, kMatrixT});
  DeclareSquare(ops, {"BatchCholesky", true, kOldMatrixT}, {"BatchCholeskyGrad", true, kOldMatrixT},
                {"BatchMatrixInverse", true, kOldMatrixT});
  DeclareDeterminants(ops);
  DeclareSolvers(ops);
  DeclareFactors(ops);
  DeclareEigenvalues(ops);
  DeclareFunctions(ops);
}

}  // namespace weir::ops
