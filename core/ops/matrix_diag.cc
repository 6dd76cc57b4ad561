// Diagonals of matrices: Diag, MatrixDiag, MatrixDiagPart and MatrixSetDiag in all versions, MatrixBandPart.
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

constexpr std::string_view kDiagT = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}";
constexpr const char* kAlignAttr = "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'";

Status DiagShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape in, c.WithRankAtLeast(0, 1));
  WEIR_ASSIGN(PartialShape out, Join(in, in));
  c.set_output(0, std::move(out));
  return Status();
}

Status DiagPartShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return Status();
  if (in.rank() == 0 || in.rank() % 2 != 0) {
    return InvalidArgument("Input must have even and non-zero rank, input rank is {}", in.rank());
  }
  const int half = in.rank() / 2;
  PartialShape out = PartialShape::OfRank(half);
  for (int i = 0; i < half; ++i) {
    WEIR_ASSIGN(const int64_t extent, op::MergeDim(in.dim(i), in.dim(i + half)));
    out.set_dim(i, extent);
  }
  c.set_output(0, std::move(out));
  return Status();
}

/// The smaller of two extents; -1 if that is not known.
int64_t SmallerDim(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  return a < 0 || b < 0 ? -1 : std::min(a, b);
}

/// All extents but the last `count`; unknown rank if there are fewer.
PartialShape Without(const PartialShape& s, int count) {
  return s.rank() >= count ? Span(s, 0, s.rank() - count) : PartialShape();
}

Status MatrixDiagShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape in, c.WithRankAtLeast(0, 1));
  if (!in.has_rank()) return Status();
  WEIR_ASSIGN(PartialShape out, Join(in, VectorOf(in.dim(in.rank() - 1))));
  c.set_output(0, std::move(out));
  return Status();
}

Status MatrixDiagPartShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape in, c.WithRankAtLeast(0, 2));
  if (!in.has_rank()) return Status();
  const int rank = in.rank();
  WEIR_ASSIGN(PartialShape out, Join(Without(in, 2), VectorOf(SmallerDim(in.dim(rank - 2), in.dim(rank - 1)))));
  c.set_output(0, std::move(out));
  return Status();
}

/// `matrices` with the batch extents that `batch` knows.
Result<PartialShape> WithBatch(const PartialShape& matrices, const PartialShape& batch) {
  if (!batch.has_rank()) return matrices;
  WEIR_ASSIGN(const PartialShape other, Join(batch, PartialShape::OfRank(2)));
  return matrices.Merge(other);
}

Status MatrixSetDiagShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape in, c.WithRankAtLeast(0, 2));
  WEIR_ASSIGN(PartialShape diagonal, c.WithRankAtLeast(1, 1));
  if (in.has_rank()) {
    const int rank = in.rank();
    WEIR_ASSIGN(diagonal, c.WithRank(1, rank - 1));
    WEIR_TRY(op::MergeDim(SmallerDim(in.dim(rank - 2), in.dim(rank - 1)), diagonal.dim(rank - 2)).status());
  }
  WEIR_ASSIGN(PartialShape out, WithBatch(in, Without(diagonal, 1)));
  c.set_output(0, std::move(out));
  return Status();
}

/// The diagonals that an operand k names: from `lower` to `upper`, 0 being the main one.
struct Diagonals {
  int64_t lower = 0, upper = 0;
  bool one() const { return lower == upper; }
  int64_t count() const { return upper - lower + 1; }
};

/// The value of operand i, a number or a pair; nullopt if it is not known.
Result<std::optional<Diagonals>> DiagonalsFrom(const ShapeContext& c, int i) {
  WEIR_TRY(ToRankAtMost(c.input(i), 1).status());
  const std::optional<std::vector<int64_t>> k = c.ints(i);
  if (!k) return std::optional<Diagonals>();
  if (k->empty() || k->size() > 2) {
    return InvalidArgument("diag_index must be a vector with one or two elements. It has {} elements.", k->size());
  }
  const Diagonals range{k->front(), k->back()};
  if (range.lower > range.upper) return InvalidArgument("lower_diag_index is greater than upper_diag_index");
  return std::optional<Diagonals>(range);
}

/// InvalidArgument if a diagonal is outside of a matrix of that size; passes if the size is not known.
Status CheckDiagonals(const Diagonals& range, int64_t rows, int64_t columns) {
  if (rows < 0 || columns < 0) return Status();
  const auto outside = [&](int64_t d) { return d != 0 && (d <= -rows || d >= columns); };
  if (outside(range.lower)) return InvalidArgument("lower_diag_index is out of bound.");
  if (outside(range.upper)) return InvalidArgument("upper_diag_index is out of bound.");
  return Status();
}

/// Rows and columns of the matrices that MatrixDiagV2 makes of diagonals with up to `length` elements; -1: not known.
Result<PartialShape> MadeMatrix(const ShapeContext& c, const Diagonals& range, int64_t length) {
  const auto given = [&](int i) { return c.value(i) == nullptr ? std::optional<int64_t>() : c.scalar_int(i); };
  const std::optional<int64_t> rows_in = given(2), columns_in = given(3);
  if (!rows_in || !columns_in || length < 0) return PartialShape::OfRank(2);
  int64_t rows = *rows_in, columns = *columns_in;
  WEIR_ASSIGN(const int64_t least_rows, AddDims(length, -std::min<int64_t>(range.upper, 0)));
  WEIR_ASSIGN(const int64_t least_columns, AddDims(length, std::max<int64_t>(range.lower, 0)));
  if (rows == -1 && columns == -1) {
    rows = columns = std::max(least_rows, least_columns);
  } else if (rows == -1) {
    rows = least_rows;
  } else if (rows < least_rows) {
    return InvalidArgument("num_rows is too small");
  }
  if (columns == -1) {
    columns = least_columns;
  } else if (columns < least_columns) {
    return InvalidArgument("num_cols is too small.");
  }
  if (rows != least_rows && columns != least_columns) {
    return InvalidArgument(
        "num_rows and num_cols are not consistent with lower_diag_index, upper_diag_index, and the length of the given "
        "diagonals.\nnum_rows = {} != min_num_rows = {}, num_cols = {} != min_num_cols = {}",
        rows, least_rows, columns, least_columns);
  }
  return PartialShape::Make(std::vector<int64_t>{rows, columns});
}

Status MatrixDiagV2Shape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape in, c.WithRankAtLeast(0, 1));
  for (int i = 2; i < 5; ++i) WEIR_TRY(c.WithRank(i, 0).status());
  WEIR_ASSIGN(const std::optional<Diagonals> range, DiagonalsFrom(c, 1));
  if (!range || !in.has_rank()) return Status();
  const int rank = in.rank();
  const int64_t length = in.dim(rank - 1);
  if (!range->one()) {
    const int64_t given = rank < 2 ? 1 : in.dim(rank - 2);
    if (given >= 0 && given != range->count()) {
      return InvalidArgument(
          "The number of rows of `diagonal` doesn't match the number of diagonals implied from `d_lower` and "
          "`d_upper`.\nnum_diags = {}, d_lower = {}, d_upper = {}",
          given, range->lower, range->upper);
    }
  }
  WEIR_ASSIGN(const PartialShape matrix, MadeMatrix(c, *range, length));
  WEIR_ASSIGN(PartialShape out, Join(Without(in, range->one() ? 1 : 2), matrix));
  c.set_output(0, std::move(out));
  return Status();
}

Status MatrixDiagPartV2Shape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape in, c.WithRankAtLeast(0, 2));
  WEIR_TRY(c.WithRank(2, 0).status());
  WEIR_ASSIGN(const std::optional<Diagonals> range, DiagonalsFrom(c, 1));
  if (!range || !in.has_rank()) return Status();
  const int64_t rows = in.dim(in.rank() - 2), columns = in.dim(in.rank() - 1);
  WEIR_TRY(CheckDiagonals(*range, rows, columns));
  int64_t length = -1;
  if (rows >= 0 && columns >= 0) {
    length = std::max<int64_t>(
        0, std::min(rows + std::min<int64_t>(range->upper, 0), columns - std::max<int64_t>(range->lower, 0)));
  }
  PartialShape diagonal = VectorOf(length);
  if (!range->one()) diagonal = PartialShape::Of({range->count(), length});
  WEIR_ASSIGN(PartialShape out, Join(Without(in, 2), diagonal));
  c.set_output(0, std::move(out));
  return Status();
}

Status MatrixSetDiagV2Shape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape in, c.WithRankAtLeast(0, 2));
  WEIR_ASSIGN(PartialShape diagonal, c.WithRankAtLeast(1, 1));
  WEIR_ASSIGN(const std::optional<Diagonals> range, DiagonalsFrom(c, 2));
  if (in.has_rank()) {
    if (range) {
      WEIR_ASSIGN(diagonal, ToRank(diagonal, in.rank() - (range->one() ? 1 : 0)));
      WEIR_TRY(CheckDiagonals(*range, in.dim(in.rank() - 2), in.dim(in.rank() - 1)));
    } else {
      WEIR_ASSIGN(diagonal, ToRankAtLeast(diagonal, in.rank() - 1));
      WEIR_ASSIGN(diagonal, ToRankAtMost(diagonal, in.rank()));
    }
  }
  if (range && !in.fully_defined()) {
    WEIR_ASSIGN(in, WithBatch(in, Without(diagonal, range->one() ? 1 : 2)));
  }
  c.set_output(0, std::move(in));
  return Status();
}

/// The align attribute of the third versions; the second ones put all diagonals to the left.
Result<std::string> AlignOf(GradContext& g) {
  if (!g.attrs().Has("align")) return std::string("LEFT_LEFT");
  return g.attrs().String("align");
}

Result<std::vector<Grad>> MatrixDiagV2Gradient(GradContext& g) {
  WEIR_ASSIGN(const std::string align, AlignOf(g));
  std::vector<Grad> grads(5);
  grads[0] = g.Apply("MatrixDiagPartV3", {g.Dy(0), g.X(1), g.ConstLike(g.Dy(0), 0)}, {{"align", align}});
  return grads;
}

Result<std::vector<Grad>> MatrixDiagPartGradient(GradContext& g) {
  const PartialShape in = g.ShapeOf(g.X(0));
  if (in.has_rank() && in.dim(in.rank() - 1) >= 0 && in.dim(in.rank() - 1) == in.dim(in.rank() - 2)) {
    return op::One(g.Apply("MatrixDiag", {g.Dy(0)}));
  }
  return op::One(g.Apply("MatrixSetDiag", {g.Apply("ZerosLike", {g.X(0)}), g.Dy(0)}));
}

Result<std::vector<Grad>> MatrixDiagPartV2Gradient(GradContext& g) {
  WEIR_ASSIGN(const std::string align, AlignOf(g));
  const Value zeros = g.Apply("ZerosLike", {g.X(0)});
  return std::vector<Grad>{g.Apply("MatrixSetDiagV3", {zeros, g.Dy(0), g.X(1)}, {{"align", align}}), Grad::None(),
                           Grad::None()};
}

std::vector<Grad> MatrixSetDiagGradient(GradContext& g) {
  const Value kept = g.Apply("MatrixSetDiag", {g.Dy(0), g.Apply("ZerosLike", {g.X(1)})});
  return {kept, g.Apply("MatrixDiagPart", {g.Dy(0)})};
}

Result<std::vector<Grad>> MatrixSetDiagV2Gradient(GradContext& g) {
  WEIR_ASSIGN(const std::string align, AlignOf(g));
  const Value zeros = g.Apply("ZerosLike", {g.X(1)});
  const Value kept = g.Apply("MatrixSetDiagV3", {g.Dy(0), zeros, g.X(2)}, {{"align", align}});
  const Value set = g.Apply("MatrixDiagPartV3", {g.Dy(0), g.X(2), g.ConstLike(g.Dy(0), 0)}, {{"align", align}});
  return std::vector<Grad>{kept, set, Grad::None()};
}

OpBuilder Moving(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name).Is(Category::kArray).MovesElements();
}

void DeclareTensorDiagonals(OpRegistry& ops) {
  Moving(ops, "Diag")
      .In("diagonal: T")
      .Out("output: T")
      .Attr(kDiagT)
      .Shape(DiagShape)
      .Grad([](GradContext& g) { return op::One(g.Apply("DiagPart", {g.Dy(0)})); })
      .Doc("Zeros in the shape of `diagonal` twice, with its elements where both halves of the indices are equal.");
  Moving(ops, "DiagPart")
      .In("input: T")
      .Out("diagonal: T")
      .Attr(kDiagT)
      .Shape(DiagPartShape)
      .Grad([](GradContext& g) { return op::One(g.Apply("Diag", {g.Dy(0)})); })
      .Doc("The elements where the first and the second half of the indices are equal.");
}

void DeclareMainDiagonals(OpRegistry& ops) {
  constexpr std::string_view kMake = "Matrices of zeros with the vectors of the last axis on their diagonals.";
  constexpr std::string_view kPart = "The diagonals of the matrices in the last two axes.";
  constexpr std::string_view kSet = "The matrices in the last two axes with `diagonal` on their diagonals.";
  Moving(ops, "MatrixDiag")
      .In("diagonal: T")
      .Out("output: T")
      .Attr(kAnyT)
      .Shape(MatrixDiagShape)
      .Grad([](GradContext& g) { return op::One(g.Apply("MatrixDiagPart", {g.Dy(0)})); })
      .Doc(kMake);
  Moving(ops, "MatrixDiagPart")
      .In("input: T")
      .Out("diagonal: T")
      .Attr(kAnyT)
      .Shape(MatrixDiagPartShape)
      .Grad(MatrixDiagPartGradient)
      .Doc(kPart);
  Moving(ops, "MatrixSetDiag")
      .In("input: T")
      .In("diagonal: T")
      .Out("output: T")
      .Attr(kAnyT)
      .Shape(MatrixSetDiagShape)
      .Grad(MatrixSetDiagGradient)
      .Doc(kSet);
  // The names before GraphDef version 14.
  Moving(ops, "BatchMatrixDiag")
      .In("diagonal: T")
      .Out("output: T")
      .Attr(kAnyT)
      .Shape(MatrixDiagShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc(kMake);
  Moving(ops, "BatchMatrixDiagPart")
      .In("input: T")
      .Out("diagonal: T")
      .Attr(kAnyT)
      .Shape(MatrixDiagPartShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc(kPart);
  Moving(ops, "BatchMatrixSetDiag")
      .In("input: T")
      .In("diagonal: T")
      .Out("output: T")
      .Attr(kAnyT)
      .Shape(MatrixSetDiagShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc(kSet);
}

/// The forms with a range of diagonals k; `aligned`: version 3, else 2.
void DeclareDiagonalRanges(OpRegistry& ops, bool aligned) {
  const std::string version = aligned ? "V3" : "V2";
  OpBuilder make = Moving(ops, "MatrixDiag" + version);
  make.In("diagonal: T").In("k: int32").In("num_rows: int32").In("num_cols: int32").In("padding_value: T");
  make.Out("output: T").Attr(kAnyT).Shape(MatrixDiagV2Shape).Grad(MatrixDiagV2Gradient);
  make.Doc(
      "Matrices of num_rows and num_cols (-1: as many as fit) filled with `padding_value`, with the vectors in the "
      "last axis of `diagonal` on the diagonals k, or from k[0] to k[1].");
  OpBuilder part = Moving(ops, "MatrixDiagPart" + version);
  part.In("input: T").In("k: int32").In("padding_value: T");
  part.Out("diagonal: T").Attr(kAnyT).Shape(MatrixDiagPartV2Shape).Grad(MatrixDiagPartV2Gradient);
  part.Doc(
      "The diagonals k, or from k[0] to k[1], of the matrices in the last two axes; shorter ones are filled up with "
      "`padding_value`.");
  OpBuilder set = Moving(ops, "MatrixSetDiag" + version);
  set.In("input: T").In("diagonal: T").In("k: int32");
  set.Out("output: T").Attr(kAnyT).Shape(MatrixSetDiagV2Shape).Grad(MatrixSetDiagV2Gradient);
  set.Doc("The matrices in the last two axes with `diagonal` on their diagonals k, or from k[0] to k[1].");
  if (!aligned) return;
  make.Attr(kAlignAttr);
  part.Attr(kAlignAttr);
  set.Attr(kAlignAttr);
}

void DeclareBands(OpRegistry& ops) {
  constexpr std::string_view kBand =
      "The matrices in the last two axes with zeros below the num_lower-th and above the num_upper-th diagonal; a "
      "negative number keeps all of that side.";
  Moving(ops, "MatrixBandPart")
      .In("input: T")
      .In("num_lower: Tindex")
      .In("num_upper: Tindex")
      .Out("band: T")
      .Attr(kAnyT)
      .Attr("Tindex: {int32, int64} = DT_INT64")
      .Shape(op::SameAs(0))
      .Grad([](GradContext& g) -> Result<std::vector<Grad>> {
        return std::vector<Grad>{g.Apply("MatrixBandPart", {g.Dy(0), g.X(1), g.X(2)}), Grad::None(), Grad::None()};
      })
      .Doc(kBand);
  Moving(ops, "BatchMatrixBandPart")
      .In("input: T")
      .In("num_lower: int64")
      .In("num_upper: int64")
      .Out("band: T")
      .Attr(kAnyT)
      .Shape(op::SameAs(0))
      .NoGradient(op::kUndefinedGradient)
      .Doc(kBand);
}

}  // namespace

void DeclareMatrixDiag(OpRegistry& ops) {
  DeclareTensorDiagonals(ops);
  DeclareMainDiagonals(ops);
  DeclareDiagonalRanges(ops, false);
  DeclareDiagonalRanges(ops, true);
  DeclareBands(ops);
}

}  // namespace weir::ops
