// Diagonals of matrices: checks and extents.
#ifndef WEIR_PLUGINS_FUNCTORS_DIAGONAL_PLANS_H_
#define WEIR_PLUGINS_FUNCTORS_DIAGONAL_PLANS_H_

#include <algorithm>
#include <string_view>
#include <vector>

#include "plugins/functors/operands.h"
#include "plugins/functors/scalar.h"

namespace weir::functors {

struct DiagPlan {
  bool empty = false;

  int32_t Prepare(sdk::Prep& prep) {
    if (prep.shape(0).rank < 1) return prep.error().InvalidArgument("Input must be at least rank 1, got 0");
    empty = HasNoElements(prep.shape(0));
    std::vector<int64_t> out = DimsOf(prep.shape(0)), twice = out;
    out.insert(out.end(), twice.begin(), twice.end());
    return ExpectOutput(prep, 0, out);
  }
};

struct DiagPartPlan {
  bool empty = false;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape& in = prep.shape(0);
    if (in.rank == 0 || in.rank % 2 != 0) {
      return prep.error().InvalidArgument("The rank of the tensor should be even and positive, got shape ", in);
    }
    const uint32_t half = in.rank / 2;
    for (uint32_t i = 0; i < half; ++i) {
      if (in.dims[i] == in.dims[i + half]) continue;
      return prep.error().InvalidArgument("Invalid shape ", in, ": dimensions ", i, " and ", i + half,
                                          " do not match.");
    }
    empty = HasNoElements(in);
    return ExpectOutput(prep, 0, {in.dims, in.dims + half});
  }
};

/// Diagonals `lower` to `upper` of rows x columns matrices, in compact form: rows of `longest` elements, from the upper
/// diagonal to the lower one; shorter diagonals are aligned to the left or to the right.
struct DiagonalRows {
  int64_t batch = 0, rows = 0, columns = 0, lower = 0, upper = 0, longest = 0;
  bool left_above = true, left_below = true;

  WEIR_HD int64_t count() const { return upper - lower + 1; }
  WEIR_HD int64_t Length(int64_t d) const {
    const int64_t below = d < 0 ? rows + d : rows, right = d > 0 ? columns - d : columns;
    return below < right ? below : right;
  }
  /// Elements of the compact row of diagonal d in front of the diagonal's.
  WEIR_HD int64_t Front(int64_t d) const {
    return (d >= 0 && left_above) || (d <= 0 && left_below) ? 0 : longest - Length(d);
  }

  /// Reads k from operand i.
  int32_t ReadRange(const sdk::Prep& prep, uint32_t i) {
    const weir_shape& shape = prep.shape(i);
    if (shape.rank > 1) {
      return prep.error().InvalidArgument("diag_index must be a scalar or vector, received shape: ", shape);
    }
    std::vector<int64_t> k;
    if (const int32_t code = Steering(prep, i, &k); code != WEIR_OK) return code;
    if (k.empty()) return prep.error().InvalidArgument("Expected diag_index to have at least 1 element");
    if (k.size() > 2) {
      return prep.error().InvalidArgument("diag_index must have only one or two elements, received ", k.size(),
                                          " elements.");
    }
    lower = k.front();
    upper = k.back();
    if (lower > upper) {
      return prep.error().InvalidArgument("lower_diag_index must not be larger than upper_diag_index: ", lower, " > ",
                                          upper);
    }
    return WEIR_OK;
  }
  void ReadAlign(const sdk::Node& node) {
    const std::string_view align = node.String("align", "LEFT_LEFT");
    left_above = align.starts_with("LEFT_");
    left_below = align.ends_with("_LEFT");
  }
  /// Reads the size of the matrices in operand 0, whose diagonals must be within.
  int32_t ReadMatrices(const sdk::Prep& prep) {
    const weir_shape& in = prep.shape(0);
    if (in.rank < 2) return prep.error().InvalidArgument("input must be at least 2-dim, received shape: ", in);
    rows = in.dims[in.rank - 2];
    columns = in.dims[in.rank - 1];
    const auto outside = [&](int64_t d) { return d != 0 && (d <= -rows || d >= columns); };
    const bool low = outside(lower);
    if (low || outside(upper)) {
      return prep.error().InvalidArgument(low ? "lower" : "upper", "_diag_index is out of bound: ", low ? lower : upper,
                                          ". It must be between ", -rows, " and ", columns);
    }
    longest = std::max<int64_t>(0, std::min(rows + std::min<int64_t>(upper, 0), columns - std::max<int64_t>(lower, 0)));
    return WEIR_OK;
  }

  /// Sets the batch count for outputs of `per_batch` elements each.
  void CountBatches(const weir_shape& output, int64_t per_batch) {
    batch = HasNoElements(output) || per_batch == 0 ? 0 : sdk::SizeOf(output) / per_batch;
  }
};

struct MakeMatricesPlan {
  DiagonalRows diagonals;

  int32_t Plan(sdk::Prep& prep) {
    const weir_shape& in = prep.shape(0);
    if (in.rank < 1) return prep.error().InvalidArgument("diagonal must be at least 1-dim, received shape: ", in);
    diagonals.longest = in.dims[in.rank - 1];
    return WEIR_OK;
  }
  int32_t Finish(sdk::Prep& prep) {
    const weir_shape& in = prep.shape(0);
    std::vector<int64_t> out(in.dims, in.dims + in.rank - (diagonals.count() == 1 ? 1 : 2));
    out.push_back(diagonals.rows);
    out.push_back(diagonals.columns);
    if (const int32_t code = ExpectOutput(prep, 0, out); code != WEIR_OK) return code;
    diagonals.CountBatches(prep.output(0).shape, diagonals.rows * diagonals.columns);
    return WEIR_OK;
  }
};

struct MatrixDiagPlan : MakeMatricesPlan {
  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = Plan(prep); code != WEIR_OK) return code;
    diagonals.rows = diagonals.columns = diagonals.longest;
    return Finish(prep);
  }
};

struct MatrixDiagV2Plan : MakeMatricesPlan {
  int32_t Prepare(sdk::Prep& prep) {
    DiagonalRows& d = diagonals;
    if (const int32_t code = d.ReadRange(prep, 1); code != WEIR_OK) return code;
    if (const int32_t code = Plan(prep); code != WEIR_OK) return code;
    constexpr const char* kNames[] = {"num_rows", "num_cols", "padding_value"};
    for (uint32_t i = 2; i < 5; ++i) {
      if (prep.shape(i).rank != 0) return prep.error().InvalidArgument(kNames[i - 2], " must be a scalar");
    }
    if (const int32_t code = Steering(prep, 2, "num_rows", &d.rows); code != WEIR_OK) return code;
    if (const int32_t code = Steering(prep, 3, "num_cols", &d.columns); code != WEIR_OK) return code;
    const weir_shape& in = prep.shape(0);
    if (d.count() > 1 && (in.rank < 2 || in.dims[in.rank - 2] != d.count())) {
      return prep.error().InvalidArgument(
          "The number of diagonals provided in the input does not match the lower_diag_index and upper_diag_index "
          "range.");
    }
    const int64_t rows = d.longest - std::min<int64_t>(d.upper, 0);
    const int64_t columns = d.longest + std::max<int64_t>(d.lower, 0);
    if (d.rows != -1 && d.rows < rows) return prep.error().InvalidArgument("The number of rows is too small.");
    if (d.columns != -1 && d.columns < columns) {
      return prep.error().InvalidArgument("The number of columns is too small.");
    }
    if (d.rows == -1 && d.columns == -1) {
      d.rows = d.columns = std::max(rows, columns);
    } else if (d.rows == -1) {
      d.rows = rows;
    } else if (d.columns == -1) {
      d.columns = columns;
    }
    if (d.rows != rows && d.columns != columns) {
      return prep.error().InvalidArgument(
          "The number of rows or columns is not consistent with the specified d_lower, d_upper, and diagonal.");
    }
    d.ReadAlign(prep.node());
    return Finish(prep);
  }
};

struct TakeDiagonalsPlan {
  DiagonalRows diagonals;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = diagonals.ReadMatrices(prep); code != WEIR_OK) return code;
    const weir_shape& in = prep.shape(0);
    std::vector<int64_t> out(in.dims, in.dims + in.rank - 2);
    if (diagonals.count() > 1) out.push_back(diagonals.count());
    out.push_back(diagonals.longest);
    if (const int32_t code = ExpectOutput(prep, 0, out); code != WEIR_OK) return code;
    diagonals.CountBatches(prep.output(0).shape, diagonals.count() * diagonals.longest);
    return WEIR_OK;
  }
};

struct MatrixDiagPartV2Plan : TakeDiagonalsPlan {
  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = diagonals.ReadRange(prep, 1); code != WEIR_OK) return code;
    if (prep.shape(2).rank != 0) return prep.error().InvalidArgument("padding_value must be a scalar");
    diagonals.ReadAlign(prep.node());
    return TakeDiagonalsPlan::Prepare(prep);
  }
};

struct SetDiagonalsPlan {
  DiagonalRows diagonals;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &in = prep.shape(0), &given = prep.shape(1);
    if (in.rank < 2) return prep.error().InvalidArgument("input must be at least 2-dim, received shape: ", in);
    if (given.rank < 1) {
      return prep.error().InvalidArgument("diagonal must be at least 1-dim, received shape: ", given);
    }
    if (const int32_t code = diagonals.ReadMatrices(prep); code != WEIR_OK) return code;
    const int64_t count = diagonals.count();
    if (count > 1 && (given.rank < 2 || given.dims[given.rank - 2] != count)) {
      return prep.error().InvalidArgument(
          "The number of diagonals provided in `diag` is not consistent with `lower_diag_index` and "
          "`upper_diag_index`");
    }
    std::vector<int64_t> wanted(in.dims, in.dims + in.rank - 2);
    if (count > 1) wanted.push_back(count);
    wanted.push_back(diagonals.longest);
    const weir_shape expected{static_cast<uint32_t>(wanted.size()), 0, wanted.data()};
    if (!sdk::SameShape(given, expected)) {
      return prep.error().InvalidArgument(
          "Either first dimensions of diagonal don't match input.shape[:-2], or diagonal.shape[:-1] is not equal to "
          "the longests diagonal in range [lower_diag_index:upper_diag_index].\nInput shape: ",
          in, "\nDiagonal shape: ", given, "\nExpected diagonal shape: ", expected);
    }
    prep.MayAlias(0, 0);
    diagonals.CountBatches(in, diagonals.rows * diagonals.columns);
    return ExpectOutput(prep, 0, DimsOf(in));
  }
};

struct MatrixSetDiagV2Plan : SetDiagonalsPlan {
  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = diagonals.ReadRange(prep, 2); code != WEIR_OK) return code;
    diagonals.ReadAlign(prep.node());
    return SetDiagonalsPlan::Prepare(prep);
  }
};

struct MatrixBandPartPlan {
  int64_t batch = 0, rows = 0, columns = 0;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape& in = prep.shape(0);
    if (in.rank < 2) return prep.error().InvalidArgument("input must be at least 2-dim, received shape: ", in);
    if (prep.shape(1).rank != 0)
      return prep.error().InvalidArgument("num_lower must be scalar, got shape ", prep.shape(1));
    if (prep.shape(2).rank != 0)
      return prep.error().InvalidArgument("num_upper must be scalar, got shape ", prep.shape(2));
    rows = in.dims[in.rank - 2];
    columns = in.dims[in.rank - 1];
    batch = HasNoElements(in) ? 0 : SizeOf(in, 0, in.rank - 2);
    prep.MayAlias(0, 0);
    return WEIR_OK;
  }
  /// Checks the numbers of diagonals, which only a call knows.
  int32_t CheckBand(const sdk::Error& error, int64_t lower, int64_t upper) const {
    if (lower > rows) {
      return error.InvalidArgument("num_lower must be negative or less or equal to number of rows (", rows,
                                   ") got: ", lower);
    }
    if (upper <= columns) return WEIR_OK;
    return error.InvalidArgument("num_upper must be negative or less or equal to number of columns (", columns,
                                 ") got: ", upper);
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_DIAGONAL_PLANS_H_
