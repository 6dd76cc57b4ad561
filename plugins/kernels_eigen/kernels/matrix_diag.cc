// Diagonals of matrices: Diag, DiagPart, MatrixDiag, MatrixDiagPart, MatrixSetDiag in all versions, MatrixBandPart.
#include <algorithm>
#include <cstring>

#include "plugins/functors/diagonal_plans.h"
#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::HostIntegers;
using sdk::Integers;

/// Zeros in every byte.
void Clear(const AnyOutput& to) { std::memset(to.data(), 0, static_cast<size_t>(to.size()) * sdk::SizeOf(to.dtype())); }

struct Diag : functors::DiagPlan {
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

struct DiagPart : functors::DiagPartPlan {
  void Run(AnyInput input, AnyOutput diagonal) const {
    if (empty) return;
    ForBytes(sdk::SizeOf(diagonal.dtype()), [&](auto element) {
      const auto* from = static_cast<const decltype(element)*>(input.data());
      auto* to = static_cast<decltype(element)*>(diagonal.data());
      for (int64_t i = 0, n = diagonal.size(); i < n; ++i) to[i] = from[i * (n + 1)];
    });
  }
};

/// Calls body(matrix, compact) with the positions of each element of a diagonal, in both forms.
template <class Body>
void ForElements(const functors::DiagonalRows& r, Body&& body) {
  for (int64_t b = 0; b < r.batch; ++b) {
    for (int64_t d = r.upper; d >= r.lower; --d) {
      const int64_t length = r.Length(d);
      int64_t compact = (b * r.count() + r.upper - d) * r.longest + r.Front(d);
      int64_t matrix = (b * r.rows - std::min<int64_t>(d, 0)) * r.columns + std::max<int64_t>(d, 0);
      for (int64_t i = 0; i < length; ++i, ++compact, matrix += r.columns + 1) body(matrix, compact);
    }
  }
}

template <class Plan>
struct MakeMatrices : Plan {
  void Place(const AnyInput& diagonal, const AnyOutput& output) const {
    ForBytes(sdk::SizeOf(output.dtype()), [&](auto element) {
      const auto* from = static_cast<const decltype(element)*>(diagonal.data());
      auto* to = static_cast<decltype(element)*>(output.data());
      ForElements(this->diagonals, [&](int64_t matrix, int64_t compact) { to[matrix] = from[compact]; });
    });
  }
};

struct MatrixDiag : MakeMatrices<functors::MatrixDiagPlan> {
  void Run(AnyInput diagonal, AnyOutput output) const {
    if (diagonals.batch == 0) return;
    Clear(output);
    Place(diagonal, output);
  }
};

struct MatrixDiagV2 : MakeMatrices<functors::MatrixDiagV2Plan> {
  void Run(AnyInput diagonal, HostIntegers, HostIntegers, HostIntegers, AnyInput padding, AnyOutput output) const {
    if (diagonals.batch == 0) return;
    FillWith(padding.data(), output);
    Place(diagonal, output);
  }
};

template <class Plan>
struct TakeDiagonals : Plan {
  void Take(const AnyInput& input, const AnyOutput& output) const {
    ForBytes(sdk::SizeOf(output.dtype()), [&](auto element) {
      const auto* from = static_cast<const decltype(element)*>(input.data());
      auto* to = static_cast<decltype(element)*>(output.data());
      ForElements(this->diagonals, [&](int64_t matrix, int64_t compact) { to[compact] = from[matrix]; });
    });
  }
};

struct MatrixDiagPart : TakeDiagonals<functors::TakeDiagonalsPlan> {
  void Run(AnyInput input, AnyOutput diagonal) const { Take(input, diagonal); }
};

struct MatrixDiagPartV2 : TakeDiagonals<functors::MatrixDiagPartV2Plan> {
  void Run(AnyInput input, HostIntegers, AnyInput padding, AnyOutput diagonal) const {
    if (diagonals.batch == 0) return;
    FillWith(padding.data(), diagonal);
    Take(input, diagonal);
  }
};

template <class Plan>
struct SetDiagonals : Plan {
  void Set(const AnyInput& input, const AnyInput& given, const AnyOutput& output) const {
    if (this->diagonals.batch == 0) return;
    const uint32_t bytes = sdk::SizeOf(output.dtype());
    if (output.data() != input.data()) {
      std::memcpy(output.data(), input.data(), static_cast<size_t>(output.size()) * bytes);
    }
    ForBytes(bytes, [&](auto element) {
      const auto* from = static_cast<const decltype(element)*>(given.data());
      auto* to = static_cast<decltype(element)*>(output.data());
      ForElements(this->diagonals, [&](int64_t matrix, int64_t compact) { to[matrix] = from[compact]; });
    });
  }
};

struct MatrixSetDiag : SetDiagonals<functors::SetDiagonalsPlan> {
  void Run(AnyInput input, AnyInput diagonal, AnyOutput output) const { Set(input, diagonal, output); }
};

struct MatrixSetDiagV2 : SetDiagonals<functors::MatrixSetDiagV2Plan> {
  void Run(AnyInput input, AnyInput diagonal, HostIntegers, AnyOutput output) const { Set(input, diagonal, output); }
};

struct MatrixBandPart : functors::MatrixBandPartPlan {
  int32_t Run(sdk::Env& env, AnyInput input, Integers num_lower, Integers num_upper, AnyOutput output) const {
    const int64_t lower = num_lower[0], upper = num_upper[0];
    if (const int32_t code = CheckBand(env.error(), lower, upper); code != WEIR_OK) return code;
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
