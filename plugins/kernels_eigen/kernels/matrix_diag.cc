// Diagonals of matrices: Diag, DiagPart, MatrixDiag, MatrixDiagPart, MatrixSetDiag in all versions, MatrixBandPart.
#include <algorithm>
#include <cstring>

#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::HostIntegers;
using sdk::Integers;
using sdk::Prep;

/// Zeros in every byte.
void Clear(const AnyOutput& to) { std::memset(to.data(), 0, static_cast<size_t>(to.size()) * sdk::SizeOf(to.dtype())); }

struct Diag {
  bool empty = false;

  int32_t Prepare(Prep& prep) {
    if (prep.shape(0).rank < 1) return prep.error().InvalidArgument("Input must be at least rank 1, got 0");
    empty = HasNoElements(prep.shape(0));
    std::vector<int64_t> out = DimsOf(prep.shape(0)), twice = out;
    out.insert(out.end(), twice.begin(), twice.end());
    return ExpectOutput(prep, 0, out);
  }
  void Run(AnyInput diagonal, AnyOutput output) const {
    if (empty) return;
    Clear(output);
    ForBytes(sdk::SizeOf(output.dtype()), [&](auto element) {
      const auto* from = static_cast<const decltype(element)*>(diagonal.data());
      auto* to = static_cast<decltype(element)*>(output.data());
      for (int64_t i = 0, n = diagonal.size(); i < n; ++i) to[i * (n + 1)] = from[i];
    });
  }
};

struct DiagPart {
  bool empty = false;

  int32_t Prepare(Prep& prep) {
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
  void Run(AnyInput input, AnyOutput diagonal) const {
    if (empty) return;
    ForBytes(sdk::SizeOf(diagonal.dtype()), [&](auto element) {
      const auto* from = static_cast<const decltype(element)*>(input.data());
      auto* to = static_cast<decltype(element)*>(diagonal.data());
      for (int64_t i = 0, n = diagonal.size(); i < n; ++i) to[i] = from[i * (n + 1)];
    });
  }
};

/// Diagonals `lower` to `upper` of rows x columns matrices, in compact form: rows of `longest` elements, from the upper
/// diagonal to the lower one; shorter diagonals are aligned to the left or to the right.
struct DiagonalRows {
  int64_t batch = 0, rows = 0, columns = 0, lower = 0, upper = 0, longest = 0;
  bool left_above = true, left_below = true;

  int64_t count() const { return upper - lower + 1; }
  int64_t Length(int64_t d) const {
    return std::min(rows + std::min<int64_t>(d, 0), columns - std::max<int64_t>(d, 0));
  }

  /// Reads k from operand i.
  int32_t ReadRange(const Prep& prep, uint32_t i) {
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
  int32_t ReadMatrices(const Prep& prep) {
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

  /// Calls body(matrix, compact) with the positions of each element of a diagonal, in both forms.
  template <class Body>
  void ForElements(Body&& body) const {
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t d = upper; d >= lower; --d) {
        const int64_t length = Length(d);
        const bool left = (d >= 0 && left_above) || (d <= 0 && left_below);
        int64_t compact = (b * count() + upper - d) * longest + (left ? 0 : longest - length);
        int64_t matrix = (b * rows - std::min<int64_t>(d, 0)) * columns + std::max<int64_t>(d, 0);
        for (int64_t i = 0; i < length; ++i, ++compact, matrix += columns + 1) body(matrix, compact);
      }
    }
  }
  /// Sets the batch count for outputs of `per_batch` elements each.
  void CountBatches(const weir_shape& output, int64_t per_batch) {
    batch = HasNoElements(output) || per_batch == 0 ? 0 : sdk::SizeOf(output) / per_batch;
  }
};

struct MakeMatrices {
  DiagonalRows diagonals;

  int32_t Plan(Prep& prep) {
    const weir_shape& in = prep.shape(0);
    if (in.rank < 1) return prep.error().InvalidArgument("diagonal must be at least 1-dim, received shape: ", in);
    diagonals.longest = in.dims[in.rank - 1];
    return WEIR_OK;
  }
  int32_t Finish(Prep& prep) {
    const weir_shape& in = prep.shape(0);
    std::vector<int64_t> out(in.dims, in.dims + in.rank - (diagonals.count() == 1 ? 1 : 2));
    out.push_back(diagonals.rows);
    out.push_back(diagonals.columns);
    if (const int32_t code = ExpectOutput(prep, 0, out); code != WEIR_OK) return code;
    diagonals.CountBatches(prep.output(0).shape, diagonals.rows * diagonals.columns);
    return WEIR_OK;
  }
  void Place(const AnyInput& diagonal, const AnyOutput& output) const {
    ForBytes(sdk::SizeOf(output.dtype()), [&](auto element) {
      const auto* from = static_cast<const decltype(element)*>(diagonal.data());
      auto* to = static_cast<decltype(element)*>(output.data());
      diagonals.ForElements([&](int64_t matrix, int64_t compact) { to[matrix] = from[compact]; });
    });
  }
};

struct MatrixDiag : MakeMatrices {
  int32_t Prepare(Prep& prep) {
    if (const int32_t code = Plan(prep); code != WEIR_OK) return code;
    diagonals.rows = diagonals.columns = diagonals.longest;
    return Finish(prep);
  }
  void Run(AnyInput diagonal, AnyOutput output) const {
    if (diagonals.batch == 0) return;
    Clear(output);
    Place(diagonal, output);
  }
};

struct MatrixDiagV2 : MakeMatrices {
  int32_t Prepare(Prep& prep) {
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
  void Run(AnyInput diagonal, HostIntegers, HostIntegers, HostIntegers, AnyInput padding, AnyOutput output) const {
    if (diagonals.batch == 0) return;
    FillWith(padding.data(), output);
    Place(diagonal, output);
  }
};

struct TakeDiagonals {
  DiagonalRows diagonals;

  int32_t Plan(Prep& prep) {
    if (const int32_t code = diagonals.ReadMatrices(prep); code != WEIR_OK) return code;
    const weir_shape& in = prep.shape(0);
    std::vector<int64_t> out(in.dims, in.dims + in.rank - 2);
    if (diagonals.count() > 1) out.push_back(diagonals.count());
    out.push_back(diagonals.longest);
    if (const int32_t code = ExpectOutput(prep, 0, out); code != WEIR_OK) return code;
    diagonals.CountBatches(prep.output(0).shape, diagonals.count() * diagonals.longest);
    return WEIR_OK;
  }
  void Take(const AnyInput& input, const AnyOutput& output) const {
    ForBytes(sdk::SizeOf(output.dtype()), [&](auto element) {
      const auto* from = static_cast<const decltype(element)*>(input.data());
      auto* to = static_cast<decltype(element)*>(output.data());
      diagonals.ForElements([&](int64_t matrix, int64_t compact) { to[compact] = from[matrix]; });
    });
  }
};

struct MatrixDiagPart : TakeDiagonals {
  int32_t Prepare(Prep& prep) { return Plan(prep); }
  void Run(AnyInput input, AnyOutput diagonal) const { Take(input, diagonal); }
};

struct MatrixDiagPartV2 : TakeDiagonals {
  int32_t Prepare(Prep& prep) {
    if (const int32_t code = diagonals.ReadRange(prep, 1); code != WEIR_OK) return code;
    if (prep.shape(2).rank != 0) return prep.error().InvalidArgument("padding_value must be a scalar");
    diagonals.ReadAlign(prep.node());
    return Plan(prep);
  }
  void Run(AnyInput input, HostIntegers, AnyInput padding, AnyOutput diagonal) const {
    if (diagonals.batch == 0) return;
    FillWith(padding.data(), diagonal);
    Take(input, diagonal);
  }
};

struct SetDiagonals {
  DiagonalRows diagonals;

  int32_t Plan(Prep& prep) {
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
  void Set(const AnyInput& input, const AnyInput& given, const AnyOutput& output) const {
    if (diagonals.batch == 0) return;
    const uint32_t bytes = sdk::SizeOf(output.dtype());
    if (output.data() != input.data()) {
      std::memcpy(output.data(), input.data(), static_cast<size_t>(output.size()) * bytes);
    }
    ForBytes(bytes, [&](auto element) {
      const auto* from = static_cast<const decltype(element)*>(given.data());
      auto* to = static_cast<decltype(element)*>(output.data());
      diagonals.ForElements([&](int64_t matrix, int64_t compact) { to[matrix] = from[compact]; });
    });
  }
};

struct MatrixSetDiag : SetDiagonals {
  int32_t Prepare(Prep& prep) { return Plan(prep); }
  void Run(AnyInput input, AnyInput diagonal, AnyOutput output) const { Set(input, diagonal, output); }
};

struct MatrixSetDiagV2 : SetDiagonals {
  int32_t Prepare(Prep& prep) {
    if (const int32_t code = diagonals.ReadRange(prep, 2); code != WEIR_OK) return code;
    diagonals.ReadAlign(prep.node());
    return Plan(prep);
  }
  void Run(AnyInput input, AnyInput diagonal, HostIntegers, AnyOutput output) const { Set(input, diagonal, output); }
};

struct MatrixBandPart {
  int64_t batch = 0, rows = 0, columns = 0;

  int32_t Prepare(Prep& prep) {
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
  int32_t Run(sdk::Env& env, AnyInput input, Integers num_lower, Integers num_upper, AnyOutput output) const {
    const int64_t lower = num_lower[0], upper = num_upper[0];
    if (lower > rows) {
      return env.error().InvalidArgument("num_lower must be negative or less or equal to number of rows (", rows,
                                         ") got: ", lower);
    }
    if (upper > columns) {
      return env.error().InvalidArgument("num_upper must be negative or less or equal to number of columns (", columns,
                                         ") got: ", upper);
    }
    if (batch == 0) return WEIR_OK;
    const size_t bytes = sdk::SizeOf(output.dtype());
    const auto* from = static_cast<const char*>(input.data());
    auto* to = static_cast<char*>(output.data());
    const size_t row_bytes = static_cast<size_t>(columns) * bytes;
    for (int64_t i = 0; i < batch * rows; ++i, from += row_bytes, to += row_bytes) {
      const int64_t row = i % rows;
      const int64_t begin = lower < 0 ? 0 : std::clamp<int64_t>(row - lower, 0, columns);
      const int64_t end = upper < 0 ? columns : std::clamp<int64_t>(row + upper + 1, begin, columns);
      const size_t kept = static_cast<size_t>(begin) * bytes, after = static_cast<size_t>(end) * bytes;
      if (from != to) std::memcpy(to + kept, from + kept, after - kept);
      std::memset(to, 0, kept);
      std::memset(to + after, 0, row_bytes - after);
    }
    return WEIR_OK;
  }
};

}  // namespace

void AddMatrixDiag(sdk::KernelTable& k) {
  constexpr uint64_t kDiagSet = DTypeSet({WEIR_FLOAT16, WEIR_BFLOAT16, WEIR_FLOAT32, WEIR_FLOAT64, WEIR_COMPLEX64,
                                          WEIR_COMPLEX128, WEIR_INT32, WEIR_INT64});
  k.Add<Diag>("Diag").Restrict("T", kDiagSet).Class(WEIR_CLASS_GATHER);
  k.Add<DiagPart>("DiagPart").Restrict("T", kDiagSet).Class(WEIR_CLASS_GATHER);
  for (const char* op : {"MatrixDiag", "BatchMatrixDiag"}) {
    k.Add<MatrixDiag>(op).Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
  }
  for (const char* op : {"MatrixDiagPart", "BatchMatrixDiagPart"}) {
    k.Add<MatrixDiagPart>(op).Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
  }
  for (const char* op : {"MatrixSetDiag", "BatchMatrixSetDiag"}) {
    k.Add<MatrixSetDiag>(op).Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
  }
  for (const char* op : {"MatrixBandPart", "BatchMatrixBandPart"}) {
    k.Add<MatrixBandPart>(op).Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
  }
  for (const char* op : {"MatrixDiagV2", "MatrixDiagV3"}) {
    k.Add<MatrixDiagV2>(op).Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
  }
  for (const char* op : {"MatrixDiagPartV2", "MatrixDiagPartV3"}) {
    k.Add<MatrixDiagPartV2>(op).Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
  }
  for (const char* op : {"MatrixSetDiagV2", "MatrixSetDiagV3"}) {
    k.Add<MatrixSetDiagV2>(op).Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
  }
}

}  // namespace weir::kernels_eigen
