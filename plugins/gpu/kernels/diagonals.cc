// Diagonals of matrices: a thread for each element of the result.
#include "plugins/functors/diagonal_plans.h"

#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::DiagonalRows;
using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;
using sdk::HostIntegers;
using sdk::Prep;

/// Matrices of diagonals in compact form. An element outside of the diagonals is that of `others` at other_step times
/// its index, or 0 without them.
template <class E>
struct MatrixOfDiagonalsWork {
  Ptr<const E> diagonals, others;
  Ptr<E> to;
  int64_t other_step;
  DiagonalRows rows;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t c = i % rows.columns, r = i / rows.columns % rows.rows, b = i / rows.columns / rows.rows;
    const int64_t d = c - r;
    if (d < rows.lower || d > rows.upper) {
      E none{};
      to[i] = others ? others[i * other_step] : none;
      return;
    }
    const int64_t place = d >= 0 ? r : c;
    to[i] = diagonals[(b * rows.count() + rows.upper - d) * rows.longest + rows.Front(d) + place];
  }
};

/// Diagonals in compact form of matrices; the rest of a row is the padding, or 0 without one.
template <class E>
struct DiagonalsOfMatrixWork {
  Ptr<const E> matrix, padding;
  Ptr<E> to;
  DiagonalRows rows;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t count = rows.count(), d = rows.upper - i / rows.longest % count, b = i / rows.longest / count;
    const int64_t place = i % rows.longest - rows.Front(d);
    if (place < 0 || place >= rows.Length(d)) {
      E none{};
      to[i] = padding ? padding[0] : none;
      return;
    }
    const int64_t r = d < 0 ? place - d : place, c = d > 0 ? place + d : place;
    to[i] = matrix[(b * rows.rows + r) * rows.columns + c];
  }
};

int32_t ToMatrices(const Env& env, const DiagonalRows& rows, const AnyInput& diagonals, const void* others,
                   int64_t other_step, const AnyOutput& y) {
  if (rows.batch == 0) return WEIR_OK;
  return functors::ForBytes(sdk::SizeOf(y.dtype()), [&](auto element) {
    using E = decltype(element);
    return Launch(env, y.size(),
                  MatrixOfDiagonalsWork<E>{static_cast<const E*>(diagonals.data()), static_cast<const E*>(others),
                                           static_cast<E*>(y.data()), other_step, rows});
  });
}
int32_t ToDiagonals(const Env& env, const DiagonalRows& rows, const AnyInput& x, const void* padding,
                    const AnyOutput& y) {
  if (rows.batch == 0) return WEIR_OK;
  return functors::ForBytes(sdk::SizeOf(y.dtype()), [&](auto element) {
    using E = decltype(element);
    return Launch(env, y.size(),
                  DiagonalsOfMatrixWork<E>{static_cast<const E*>(x.data()), static_cast<const E*>(padding),
                                           static_cast<E*>(y.data()), rows});
  });
}

/// n elements as the only diagonal of one matrix.
DiagonalRows OneDiagonal(int64_t n) {
  DiagonalRows rows;
  rows.batch = 1;
  rows.rows = rows.columns = rows.longest = n;
  return rows;
}
struct Diag : functors::DiagPlan {
  int32_t Run(Env& env, AnyInput x, AnyOutput y) const {
    return empty ? int32_t{WEIR_OK} : ToMatrices(env, OneDiagonal(x.size()), x, nullptr, 0, y);
  }
};
struct DiagPart : functors::DiagPartPlan {
  int32_t Run(Env& env, AnyInput x, AnyOutput y) const {
    return empty ? int32_t{WEIR_OK} : ToDiagonals(env, OneDiagonal(y.size()), x, nullptr, y);
  }
};
struct MatrixDiag : functors::MatrixDiagPlan {
  int32_t Run(Env& env, AnyInput x, AnyOutput y) const { return ToMatrices(env, diagonals, x, nullptr, 0, y); }
};
struct MatrixDiagV2 : functors::MatrixDiagV2Plan {
  int32_t Run(Env& env, AnyInput x, HostIntegers, HostIntegers, HostIntegers, AnyInput padding, AnyOutput y) const {
    return ToMatrices(env, diagonals, x, padding.data(), 0, y);
  }
};
struct MatrixDiagPart : functors::TakeDiagonalsPlan {
  int32_t Run(Env& env, AnyInput x, AnyOutput y) const { return ToDiagonals(env, diagonals, x, nullptr, y); }
};
struct MatrixDiagPartV2 : functors::MatrixDiagPartV2Plan {
  int32_t Run(Env& env, AnyInput x, HostIntegers, AnyInput padding, AnyOutput y) const {
    return ToDiagonals(env, diagonals, x, padding.data(), y);
  }
};
struct MatrixSetDiag : functors::SetDiagonalsPlan {
  int32_t Run(Env& env, AnyInput x, AnyInput d, AnyOutput y) const {
    return ToMatrices(env, diagonals, d, x.data(), 1, y);
  }
};
struct MatrixSetDiagV2 : functors::MatrixSetDiagV2Plan {
  int32_t Run(Env& env, AnyInput x, AnyInput d, HostIntegers, AnyOutput y) const {
    return ToMatrices(env, diagonals, d, x.data(), 1, y);
  }
};

template <class E>
struct BandWork {
  Ptr<const E> from;
  Ptr<E> to;
  int64_t rows, columns, lower, upper;  // negative: all
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t d = i % columns - i / columns % rows;
    E none{};
    to[i] = (lower < 0 || -d <= lower) && (upper < 0 || d <= upper) ? from[i] : none;
  }
};
/// As in TensorFlow, the numbers of diagonals lie in host memory.
struct MatrixBandPart : functors::MatrixBandPartPlan {
  int32_t Run(Env& env, AnyInput x, HostIntegers lower, HostIntegers upper, AnyOutput y) const {
    if (const int32_t code = CheckBand(env.error(), lower[0], upper[0]); code != WEIR_OK) return code;
    if (batch == 0) return WEIR_OK;
    return functors::ForBytes(sdk::SizeOf(y.dtype()), [&](auto element) {
      using E = decltype(element);
      return Launch(env, y.size(), BandWork<E>{static_cast<const E*>(x.data()), static_cast<E*>(y.data()), rows,
                                               columns, lower[0], upper[0]});
    });
  }
};

}  // namespace

void AddDiagonals(sdk::KernelTable& k) {
  const auto add = [](sdk::Kernel& kernel) { kernel.Restrict("T", functors::kPlainSet).Class(WEIR_CLASS_GATHER); };
  constexpr uint64_t kDiagSet = kFloatBits | k16BitBits | kComplexBits | kIndexBits;
  k.Add<Diag>("Diag").Restrict("T", kDiagSet).Class(WEIR_CLASS_GATHER);
  k.Add<DiagPart>("DiagPart").Restrict("T", kDiagSet).Class(WEIR_CLASS_GATHER);
  for (const char* op : {"MatrixDiag", "BatchMatrixDiag"}) add(k.Add<MatrixDiag>(op));
  for (const char* op : {"MatrixDiagPart", "BatchMatrixDiagPart"}) add(k.Add<MatrixDiagPart>(op));
  for (const char* op : {"MatrixSetDiag", "BatchMatrixSetDiag"}) add(k.Add<MatrixSetDiag>(op));
  for (const char* op : {"MatrixBandPart", "BatchMatrixBandPart"}) add(k.Add<MatrixBandPart>(op));
  for (const char* op : {"MatrixDiagV2", "MatrixDiagV3"}) add(k.Add<MatrixDiagV2>(op));
  for (const char* op : {"MatrixDiagPartV2", "MatrixDiagPartV3"}) add(k.Add<MatrixDiagPartV2>(op));
  for (const char* op : {"MatrixSetDiagV2", "MatrixSetDiagV3"}) add(k.Add<MatrixSetDiagV2>(op));
}

}  // namespace weir::gpu
