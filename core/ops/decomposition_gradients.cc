#include "core/ops/decomposition_gradients.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/ops/grad_shapes.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {

using op::Grad;
using op::GradContext;
using op::One;
using op::Value;

namespace {

/// Products of matrices in the last two axes; H takes the conjugate transpose of an operand.
Value Times(GradContext& g, Value a, Value b) { return g.Apply("BatchMatMulV2", {a, b}); }
Value HTimes(GradContext& g, Value a, Value b) { return g.Apply("BatchMatMulV2", {a, b}, {{"adj_x", true}}); }
Value TimesH(GradContext& g, Value a, Value b) { return g.Apply("BatchMatMulV2", {a, b}, {{"adj_y", true}}); }

/// x with its last two axes swapped.
Value Transposed(GradContext& g, Value x) {
  const PartialShape shape = g.ShapeOf(x);
  if (shape.has_rank()) {
    std::vector<int32_t> perm;
    for (int i = 0; i < shape.rank(); ++i) perm.push_back(i);
    if (perm.size() >= 2) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return g.Apply("Transpose", {x, g.ConstInts(perm)});
  }
  const Value rank = g.Apply("Rank", {x});
  const Value last = g.Sub(rank, g.ConstInt(1)), before = g.Sub(rank, g.ConstInt(2));
  const Value batch = g.Apply("Range", {g.ConstInt(0), before, g.ConstInt(1)});
  const Value swapped = g.Apply("Pack", {last, before}, {{"N", int64_t{2}}});
  return g.Apply("Transpose", {x, JoinVectors(g, {batch, swapped})});
}
Value Adjoint(GradContext& g, Value x) { return g.Conj(Transposed(g, x)); }

Value DiagonalOf(GradContext& g, Value x) { return g.Apply("MatrixDiagPart", {x}); }
Value DiagonalMatrix(GradContext& g, Value x) { return g.Apply("MatrixDiag", {x}); }
Value WithDiagonal(GradContext& g, Value x, Value diagonal) { return g.Apply("MatrixSetDiag", {x, diagonal}); }
Value LowerTriangle(GradContext& g, Value x) { return g.Apply("MatrixBandPart", {x, g.ConstInt(-1), g.ConstInt(0)}); }
Value UpperTriangle(GradContext& g, Value x) { return g.Apply("MatrixBandPart", {x, g.ConstInt(0), g.ConstInt(-1)}); }
Value Scaled(GradContext& g, double factor, Value x) { return g.Mul(g.ConstLike(x, factor), x); }
/// x / (x^2 + a trifle): 0 at 0.
Value SafeReciprocal(GradContext& g, Value x) {
  return g.Mul(x, g.Apply("Reciprocal", {g.Add(g.Mul(x, x), g.ConstLike(x, 1e-20))}));
}

/// Elements [begin, end) of a vector; an end of 0 means all that follow.
Value VectorPart(GradContext& g, Value vector, int32_t begin, int32_t end) {
  op::AttrList masks;
  if (begin == 0) masks.emplace_back("begin_mask", int64_t{1});
  if (end == 0) masks.emplace_back("end_mask", int64_t{1});
  return g.Apply("StridedSlice", {vector, g.ConstInts({begin}), g.ConstInts({end}), g.ConstInts({1})}, masks);
}
/// Columns [begin, end) of matrices; an end of 0 means all that follow.
Value Columns(GradContext& g, Value x, int64_t begin, int64_t end) {
  op::AttrList masks = {{"ellipsis_mask", int64_t{1}}};
  if (end == 0) masks.emplace_back("end_mask", int64_t{2});
  return g.Apply("StridedSlice",
                 {x, g.ConstInts({0, static_cast<int32_t>(begin)}), g.ConstInts({0, static_cast<int32_t>(end)}),
                  g.ConstInts({1, 1})},
                 masks);
}

/// One identity matrix with as many rows as the matrices in x have columns.
Value IdentityFor(GradContext& g, Value x) {
  const Value size = VectorPart(g, g.ShapeOp(x), -1, 0);
  return DiagonalMatrix(g, g.Apply("Fill", {size, g.ConstLike(x, 1)}));
}

Value TriangularSolve(GradContext& g, Value matrix, Value rhs, bool lower, bool adjoint) {
  return g.Apply("MatrixTriangularSolve", {matrix, rhs}, {{"lower", lower}, {"adjoint", adjoint}});
}

/// Numbers of a batch as matrices of one element.
Value AsMatrices(GradContext& g, Value numbers) {
  return g.Reshape(numbers, JoinVectors(g, {g.ShapeOp(numbers), g.ConstInts({1, 1})}));
}

/// 1 / (x_j - x_i) at (i, j), 0 on the diagonal.
Value ReciprocalDifferences(GradContext& g, Value x) {
  const Value row = g.Apply("ExpandDims", {x, g.ConstInt(-2)}), column = g.Apply("ExpandDims", {x, g.ConstInt(-1)});
  return WithDiagonal(g, SafeReciprocal(g, g.Sub(row, column)), g.Apply("ZerosLike", {x}));
}

/// Gradients of operands whose batch axes were broadcast, summed to the operands' shapes.
std::vector<Grad> UnbroadcastBatches(GradContext& g, Value a, Value da, Value b, Value db) {
  const PartialShape a_shape = g.ShapeOf(a), b_shape = g.ShapeOf(b);
  if (a_shape.fully_defined() && b_shape.fully_defined() && a_shape.rank() == b_shape.rank() &&
      Span(a_shape, 0, a_shape.rank() - 2) == Span(b_shape, 0, b_shape.rank() - 2)) {
    return {da, db};
  }
  const Value a_extents = g.ShapeOp(a), b_extents = g.ShapeOp(b);
  const std::vector<Value> axes =
      g.ApplyAll("BroadcastGradientArgs", {VectorPart(g, a_extents, 0, -2), VectorPart(g, b_extents, 0, -2)});
  if (axes.size() != 2) return {da, db};
  return {g.Reshape(g.Apply("Sum", {da, axes[0]}), a_extents), g.Reshape(g.Apply("Sum", {db, axes[1]}), b_extents)};
}

/// a b^H or its counterpart with the operands exchanged, negated: the gradient of a solver by its matrix.
Value SolvedMatrixGradient(GradContext& g, bool adjoint, Value solution, Value db) {
  return g.Neg(adjoint ? TimesH(g, solution, db) : TimesH(g, db, solution));
}

/// The last two extents of v; Unimplemented naming `op` if they are not known.
Result<std::pair<int64_t, int64_t>> KnownMatrix(GradContext& g, Value v, std::string_view op) {
  const PartialShape shape = g.ShapeOf(v);
  if (shape.rank() >= 2) {
    const int64_t rows = shape.dim(shape.rank() - 2), columns = shape.dim(shape.rank() - 1);
    if (rows >= 0 && columns >= 0) return std::pair(rows, columns);
  }
  return Unimplemented("the gradient of {} needs to know the last two extents, its shape is {}", op, shape.ToString());
}

}  // namespace

Result<std::vector<Grad>> CholeskyGradient(GradContext& g) {
  const Value l = g.Y(0);
  const Value inverse = TriangularSolve(g, l, IdentityFor(g, l), true, false);
  Value middle = HTimes(g, l, g.Dy(0));
  middle = LowerTriangle(g, WithDiagonal(g, middle, Scaled(g, 0.5, DiagonalOf(g, middle))));
  const Value half = Times(g, HTimes(g, inverse, middle), inverse);
  return One(Scaled(g, 0.5, g.Add(half, Adjoint(g, half))));
}

Result<std::vector<Grad>> MatrixInverseGradient(GradContext& g) {
  WEIR_ASSIGN(const bool adjoint, g.attrs().Bool("adjoint"));
  const Value inverse = g.Y(0);
  if (adjoint) return One(g.Neg(Times(g, inverse, HTimes(g, g.Dy(0), inverse))));
  return One(g.Neg(HTimes(g, inverse, TimesH(g, g.Dy(0), inverse))));
}

Result<std::vector<Grad>> MatrixDeterminantGradient(GradContext& g) {
  const Value inverse = g.Apply("MatrixInverse", {g.X(0)}, {{"adjoint", true}});
  return One(g.Mul(AsMatrices(g, g.Mul(g.Dy(0), g.Conj(g.Y(0)))), inverse));
}

Result<std::vector<Grad>> LogMatrixDeterminantGradient(GradContext& g) {
  const Value inverse = g.Apply("MatrixInverse", {g.X(0)}, {{"adjoint", true}});
  return One(g.Mul(AsMatrices(g, g.Dy(1)), inverse));
}

Result<std::vector<Grad>> MatrixSolveGradient(GradContext& g) {
  WEIR_ASSIGN(const bool adjoint, g.attrs().Bool("adjoint"));
  const Value db = g.Apply("MatrixSolve", {g.X(0), g.Dy(0)}, {{"adjoint", !adjoint}});
  return std::vector<Grad>{SolvedMatrixGradient(g, adjoint, g.Y(0), db), db};
}

Result<std::vector<Grad>> MatrixTriangularSolveGradient(GradContext& g) {
  WEIR_ASSIGN(const bool adjoint, g.attrs().Bool("adjoint"));
  WEIR_ASSIGN(const bool lower, g.attrs().Bool("lower"));
  const Value db = TriangularSolve(g, g.X(0), g.Dy(0), lower, !adjoint);
  const Value whole = SolvedMatrixGradient(g, adjoint, g.Y(0), db);
  const Value da = lower ? LowerTriangle(g, whole) : UpperTriangle(g, whole);
  return UnbroadcastBatches(g, g.X(0), da, g.X(1), db);
}

Result<std::vector<Grad>> MatrixSolveLsGradient(GradContext& g) {
  WEIR_ASSIGN(const bool fast, g.attrs().Bool("fast"));
  if (!fast) return Unimplemented("Gradient not defined for fast=False");
  const Value a = g.X(0), b = g.X(1), dx = g.Dy(0);
  WEIR_ASSIGN(const auto extents, KnownMatrix(g, a, "MatrixSolveLs"));
  const bool tall = extents.first >= extents.second;
  const Value gramian = tall ? HTimes(g, a, a) : TimesH(g, a, a);
  const Value weight = g.Apply("Cast", {g.X(2)}, {{"DstT", g.TypeOf(a)}});
  const Value factor = g.Apply("Cholesky", {g.Add(gramian, g.Mul(weight, IdentityFor(g, gramian)))});
  const auto solve = [&](Value rhs) {
    return TriangularSolve(g, factor, TriangularSolve(g, factor, rhs, true, false), true, true);
  };
  if (tall) {
    const Value z = solve(dx), product = TimesH(g, g.Y(0), z);
    const Value symmetric = g.Add(product, Adjoint(g, product));
    return std::vector<Grad>{g.Sub(TimesH(g, b, z), Times(g, a, symmetric)), Times(g, a, z), Grad::None()};
  }
  const Value db = solve(Times(g, a, dx)), inner = solve(b);
  const Value along = g.Neg(Times(g, db, HTimes(g, inner, a)));
  const Value across = TimesH(g, inner, g.Sub(dx, HTimes(g, a, db)));
  return std::vector<Grad>{g.Add(along, across), db, Grad::None()};
}

/// Solves r dr + dr r = dx as a linear system of the elements of dr, with Kronecker products of r and the identity.
Result<std::vector<Grad>> MatrixSquareRootGradient(GradContext& g) {
  const Value r = g.Y(0), shape = g.ShapeOp(r);
  const Value batch = VectorPart(g, shape, 0, -2), n = VectorPart(g, shape, -1, 0), one = g.ConstInts({1});
  const Value square = g.Mul(n, n);
  const auto kronecker = [&](Value left, Value right) {
    const Value outer = g.Reshape(left, JoinVectors(g, {batch, n, one, n, one}));
    const Value inner = g.Reshape(right, JoinVectors(g, {batch, one, n, one, n}));
    return g.Reshape(g.Mul(outer, inner), JoinVectors(g, {batch, square, square}));
  };
  const Value identity = g.Add(g.Apply("ZerosLike", {r}), IdentityFor(g, r));
  const Value system = g.Add(kronecker(identity, Adjoint(g, r)), kronecker(g.Conj(r), identity));
  const Value rhs = g.Reshape(Transposed(g, g.Dy(0)), JoinVectors(g, {batch, square, one}));
  return One(Transposed(g, g.Reshape(g.Apply("MatrixSolve", {system, rhs}), shape)));
}

Result<std::vector<Grad>> SelfAdjointEigGradient(GradContext& g) {
  WEIR_ASSIGN(const bool vectors, g.attrs().Bool("compute_v"));
  Value v = g.Y(1), inner = DiagonalMatrix(g, g.Dy(0));
  if (vectors) {
    inner = g.Add(inner, g.Mul(ReciprocalDifferences(g, g.Y(0)), HTimes(g, v, g.Dy(1))));
  } else {
    const std::vector<Value> again = g.ApplyAll("SelfAdjointEigV2", {g.X(0)}, {{"compute_v", true}});
    if (again.size() != 2) return g.status();
    v = again[1];
  }
  const Value whole = Times(g, v, TimesH(g, inner, v));
  // The op reads the lower triangle only.
  const Value lower = LowerTriangle(g, g.Add(whole, Adjoint(g, whole)));
  return One(WithDiagonal(g, lower, Scaled(g, 0.5, DiagonalOf(g, lower))));
}

Result<std::vector<Grad>> EigGradient(GradContext& g) {
  WEIR_ASSIGN(const bool vectors, g.attrs().Bool("compute_v"));
  Value inner = DiagonalMatrix(g, g.Dy(0)), adjoint;
  if (vectors) {
    const Value v = g.Y(1);
    adjoint = Adjoint(g, v);
    const Value product = Times(g, adjoint, g.Dy(1));
    const Value real = Scaled(g, 0.5, g.Add(product, g.Conj(product)));
    const Value parallel = Times(g, Times(g, adjoint, v), DiagonalMatrix(g, DiagonalOf(g, real)));
    const Value across = g.Sub(product, parallel);
    inner = g.Add(inner, g.Mul(g.Conj(ReciprocalDifferences(g, g.Y(0))), across));
  } else {
    const std::vector<Value> again = g.ApplyAll("Eig", {g.X(0)}, {{"compute_v", true}, {"Tout", g.TypeOf(g.Y(0))}});
    if (again.size() != 2) return g.status();
    adjoint = Adjoint(g, again[1]);
  }
  const Value da = g.Apply("MatrixSolve", {adjoint, Times(g, inner, adjoint)});
  return One(g.Apply("Cast", {da}, {{"DstT", g.TypeOf(g.X(0))}}));
}

namespace {

/// x r^-H of an upper triangular r.
Value OverAdjoint(GradContext& g, Value x, Value r) {
  return Adjoint(g, TriangularSolve(g, r, Adjoint(g, x), false, false));
}

/// The gradient of the decomposition of matrices with no more columns than rows.
Value TallQrGradient(GradContext& g, Value q, Value r, Value dq, Value dr) {
  const Value along_q = HTimes(g, q, dq), along_r = TimesH(g, r, dr);
  const Value skew = g.Add(g.Sub(along_q, Adjoint(g, along_q)), g.Sub(along_r, Adjoint(g, along_r)));
  const Value first = Times(g, q, g.Add(dr, OverAdjoint(g, LowerTriangle(g, skew), r)));
  const Value second = OverAdjoint(g, g.Sub(dq, Times(g, q, along_q)), r);
  const Value whole = g.Add(first, second);
  if (g.TypeOf(q) != DType::kComplex64 && g.TypeOf(q) != DType::kComplex128) return whole;
  const Value m = DiagonalOf(g, g.Sub(along_r, Adjoint(g, along_q)));
  const Value imaginary = DiagonalMatrix(g, Scaled(g, 0.5, g.Sub(m, g.Conj(m))));
  return g.Add(whole, OverAdjoint(g, Times(g, q, Adjoint(g, imaginary)), r));
}

}  // namespace

Result<std::vector<Grad>> QrGradient(GradContext& g) {
  const Value q = g.Y(0), r = g.Y(1), dq = g.Dy(0), dr = g.Dy(1);
  WEIR_ASSIGN(const auto extents, KnownMatrix(g, g.X(0), "Qr"));
  WEIR_ASSIGN(const bool full, g.attrs().Bool("full_matrices"));
  const auto [rows, columns] = extents;
  if (full && rows > columns) {
    return Unimplemented("QrGrad not implemented when nrows > ncols and full_matrices is true: {} and {}", rows,
                         columns);
  }
  if (rows >= columns) return One(TallQrGradient(g, q, r, dq, dr));
  const Value rest = Columns(g, g.X(0), rows, 0), d_rest = Columns(g, dr, rows, 0);
  const Value dq_all = g.Add(dq, TimesH(g, rest, d_rest));
  const Value left = TallQrGradient(g, q, Columns(g, r, 0, rows), dq_all, Columns(g, dr, 0, rows));
  if (rows == 0) return One(g.Apply("ZerosLike", {g.X(0)}));
  const Value right = Times(g, q, d_rest);
  return One(g.ApplyList("ConcatV2", {left, right, g.ConstInt(-1)}, {{"N", int64_t{2}}}));
}

Result<std::vector<Grad>> SvdGradient(GradContext& g) {
  WEIR_ASSIGN(const bool vectors, g.attrs().Bool("compute_uv"));
  WEIR_ASSIGN(const bool full, g.attrs().Bool("full_matrices"));
  const Value ds = DiagonalMatrix(g, g.Dy(0));
  if (!vectors) {
    const std::vector<Value> again = g.ApplyAll("Svd", {g.X(0)}, {{"compute_uv", true}});
    if (again.size() != 3) return g.status();
    return One(Times(g, again[1], TimesH(g, ds, again[2])));
  }
  WEIR_ASSIGN(const auto extents, KnownMatrix(g, g.X(0), "Svd"));
  const bool tall = extents.first > extents.second;  // then the adjoint is differentiated
  const int64_t m = std::min(extents.first, extents.second), n = std::max(extents.first, extents.second);
  if (full && n - m > 1) {
    return Unimplemented("svd gradient is not implemented for abs(m - n) > 1 when full_matrices is True: {} and {}",
                         extents.first, extents.second);
  }
  const Value s = g.Y(0), u = g.Y(tall ? 2 : 1), v = g.Y(tall ? 1 : 2);
  const Value du = g.Dy(tall ? 2 : 1), dv = g.Dy(tall ? 1 : 2);
  const Value f = ReciprocalDifferences(g, g.Apply("Square", {s}));
  const Value s_matrix = DiagonalMatrix(g, s), s_inverse = DiagonalMatrix(g, SafeReciprocal(g, s));
  const Value v1 = full && m < n ? Columns(g, v, 0, m) : v, dv1 = full && m < n ? Columns(g, dv, 0, m) : dv;
  const Value along_v = HTimes(g, v1, dv1);
  const Value f_u = g.Mul(f, HTimes(g, u, du)), f_v = g.Mul(f, along_v);
  Value inner = g.Add(ds, Times(g, g.Add(f_u, Adjoint(g, f_u)), s_matrix));
  inner = g.Add(inner, Times(g, s_matrix, g.Add(f_v, Adjoint(g, f_v))));
  Value da = Times(g, u, TimesH(g, inner, v1));
  if (m < n) {
    const Value dv1_adjoint = Adjoint(g, dv1);
    Value across = g.Sub(dv1_adjoint, TimesH(g, Times(g, dv1_adjoint, v1), v1));
    if (full) {
      const Value v2 = Columns(g, v, m, n), dv2 = Columns(g, dv, m, n);
      across = g.Sub(across, TimesH(g, HTimes(g, v1, dv2), v2));
    }
    da = g.Add(da, Times(g, Times(g, u, s_inverse), across));
  }
  if (g.TypeOf(s) == DType::kComplex64 || g.TypeOf(s) == DType::kComplex128) {
    const Value diagonal = DiagonalOf(g, along_v);
    const Value twist = DiagonalMatrix(g, g.Sub(g.Conj(diagonal), diagonal));
    da = g.Add(da, Scaled(g, 0.5, Times(g, u, TimesH(g, Times(g, s_inverse, twist), v1))));
  }
  return One(tall ? Adjoint(g, da) : da);
}

}  // namespace weir::ops
