#include "plugins/kernels_eigen/kernels/panels.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

#include "plugins/kernels_eigen/kernels/lanes.h"

namespace weir::kernels_eigen {
namespace {

#if defined(__AVX512F__)
constexpr int kRows = 12;  // of c at once: 24 sums, two vectors of b and one of a fill the registers
#else
constexpr int kRows = 6;
#endif
constexpr int64_t kPanelColumns = 2 * kLanes;
// Elements between copied rows of a: not a multiple of 2 KiB, so that the rows of a block lie in different cache sets.
constexpr int64_t LeftStep(int64_t depth) {
  const int64_t lines = (depth + 15) / 16 * 16;
  return lines % 512 == 0 ? lines + 16 : lines;
}
constexpr int64_t kMostRows = 11 * 12;  // of a that are multiplied at once: they stay in the second cache
constexpr int64_t kMostColumns = 256;   // of b that MultiplyMatrices packs at once

int64_t Panels(int64_t n) { return (n + kPanelColumns - 1) / kPanelColumns; }

struct Block {
  const float* a;
  int64_t a_step;          // between rows of a
  const int64_t* offsets;  // of rows from `a` instead, if kAnywhere
  const float* b;          // a panel's rows
  int64_t panel;           // distance of the next panel
  int64_t runs;            // of a row of a
  int64_t run_step;
  int64_t length;  // of a run
  float* c;
  int64_t c_step;
  int64_t columns;      // at most those of the vectors
  const float* addend;  // null or a matrix of c's shape, perhaps c, to which the product is added
  int64_t addend_step;
  uintptr_t ahead;       // address of memory that is read soon: the next panel
  uintptr_t ahead_step;  // its bytes that each row of b prefetches
};

/// Addresses of kCount rows. Neighbours have the same distance: an address is that of each third row plus a multiple
/// of it.
template <int kCount, bool kAnywhere>
struct RowAddresses {
  static constexpr int kBases = (kCount + 2) / 3;

  explicit RowAddresses(const Block& block) : step(block.a_step) {
#pragma GCC unroll 4
    for (int i = 0; i < kBases; ++i) bases[i] = block.a + 3 * i * step;
  }
  [[gnu::always_inline]] const float* Of(int i) const { return bases[i / 3] + (i % 3) * step; }
  [[gnu::always_inline]] void Advance(int64_t elements) {
#pragma GCC unroll 4
    for (int i = 0; i < kBases; ++i) bases[i] += elements;
  }

  const float* bases[kBases];
  int64_t step;
};
/// Rows lie anywhere: each address is that of the row plus the same distance.
template <int kCount>
struct RowAddresses<kCount, true> {
  explicit RowAddresses(const Block& block) {
#pragma GCC unroll 12
    for (int i = 0; i < kCount; ++i) bases[i] = block.a + block.offsets[i];
  }
  [[gnu::always_inline]] const float* Of(int i) const { return bases[i] + at; }
  [[gnu::always_inline]] void Advance(int64_t elements) { at += elements; }

  const float* bases[kCount];
  int64_t at = 0;
};

/// kCount rows of c by the columns of one panel or two, of which the first kVectors vectors are made.
template <int kCount, int kVectors, class V, bool kAnywhere>
void Inner(const Block& block) {
  constexpr auto kWidth = static_cast<int64_t>(sizeof(V) / sizeof(float));
  const float* const after = block.addend != nullptr ? block.addend : block.c;  // used last, and then at once
  const int64_t after_step = block.addend != nullptr ? block.addend_step : block.c_step;
#pragma GCC unroll 12
  for (int i = 0; i < kCount; ++i) {
    __builtin_prefetch(after + i * after_step);
    if constexpr (kVectors * kWidth > 16) __builtin_prefetch(after + i * after_step + 16);
  }
  V sums[kCount][kVectors];
#pragma GCC unroll 12
  for (int i = 0; i < kCount; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) sums[i][j] = V{};
  }
  const float* b = block.b;
  RowAddresses<kCount, kAnywhere> rows(block);
  uintptr_t ahead = block.ahead;
  for (int64_t run = block.runs;;) {
    for (int64_t p = 0; p < block.length; ++p, b += kPanelColumns) {
      if constexpr (kVectors == 2) {
        __builtin_prefetch(reinterpret_cast<const void*>(ahead), 0, 2);
        ahead += block.ahead_step;
      }
      V right[kVectors];
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) {
        right[j] = *reinterpret_cast<const V*>(b + (j / 2) * block.panel + (j % 2) * kWidth);
      }
#pragma GCC unroll 12
      for (int i = 0; i < kCount; ++i) {
        const V factor = Broadcast<V>(rows.Of(i));
#pragma GCC unroll 4
        for (int j = 0; j < kVectors; ++j) sums[i][j] = MultiplyAdd(factor, right[j], sums[i][j]);
      }
      rows.Advance(1);
    }
    if (--run <= 0) break;
    rows.Advance(block.run_step - block.length);
  }
  if (block.columns == kVectors * kWidth) {
#pragma GCC unroll 12
    for (int i = 0; i < kCount; ++i) {
      float* const to = block.c + i * block.c_step;
      const float* const addend = block.addend + i * block.addend_step;
#pragma GCC unroll 4
      for (int64_t j = 0; j < kVectors; ++j) {
        const V sum = sums[i][j];
        StoreLoose(block.addend != nullptr ? LoadLoose<V>(addend + j * kWidth) + sum : sum, to + j * kWidth);
      }
    }
    return;
  }
#pragma GCC unroll 12
  for (int i = 0; i < kCount; ++i) {
    const float* const from = block.addend != nullptr ? block.addend + i * block.addend_step : nullptr;
    StorePart(sums[i], from, block.columns, block.c + i * block.c_step);
  }
}

using InnerFn = void (*)(const Block& block);
template <int kVectors, bool kAnywhere, class V = Vector, size_t... kIndex>
constexpr std::array<InnerFn, sizeof...(kIndex)> InnerTable(std::index_sequence<kIndex...>) {
  return {Inner<static_cast<int>(kIndex) + 1, kVectors, V, kAnywhere>...};
}
using Counts = std::make_index_sequence<kRows>;
constexpr int kFewRows = kRows / 3;  // two panels at once hide the latency of the sums, and of memory, better
/// The innermost loops for one vector, two, and fewer lanes.
template <bool kAnywhere>
constexpr std::array<InnerFn, kRows> kInner[] = {InnerTable<1, kAnywhere>(Counts()), InnerTable<2, kAnywhere>(Counts()),
                                                 InnerTable<1, kAnywhere, EightLanes>(Counts())};
constexpr int64_t kNarrowLanes = 8;
/// The index of tables like it.
size_t WidthOf(int64_t columns) { return columns <= kNarrowLanes ? 2 : columns > kLanes ? 1 : 0; }
constexpr std::array<InnerFn, kFewRows> kPairs = InnerTable<4, false>(std::make_index_sequence<kFewRows>());

/// kCount neighbouring columns of a by those of a panel, over all rows of both: `depth` of them. The sums are stored,
/// or added to c if `to.addend` is not null.
template <int kCount, int kVectors, class V>
void TurnedInner(const float* a, const int64_t* offsets, int64_t depth, const float* b, const Block& to) {
  constexpr auto kWidth = static_cast<int64_t>(sizeof(V) / sizeof(float));
  V sums[kCount][kVectors];
#pragma GCC unroll 12
  for (int i = 0; i < kCount; ++i) {
    __builtin_prefetch(to.c + i * to.c_step);
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) sums[i][j] = V{};
  }
  for (int64_t p = 0; p < depth; ++p, b += kPanelColumns) {
    const float* const row = a + offsets[p];
    V right[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) right[j] = *reinterpret_cast<const V*>(b + j * kWidth);
#pragma GCC unroll 12
    for (int i = 0; i < kCount; ++i) {
      const V factor = Broadcast<V>(row + i);
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) sums[i][j] = MultiplyAdd(factor, right[j], sums[i][j]);
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < kCount; ++i) {
    float* const c = to.c + i * to.c_step;
    if (to.columns != kVectors * kWidth) {
      StorePart(sums[i], to.addend != nullptr ? c : nullptr, to.columns, c);
      continue;
    }
#pragma GCC unroll 4
    for (int64_t j = 0; j < kVectors; ++j) {
      const V sum = sums[i][j];
      StoreLoose(to.addend != nullptr ? LoadLoose<V>(c + j * kWidth) + sum : sum, c + j * kWidth);
    }
  }
}
using TurnedFn = void (*)(const float* a, const int64_t* offsets, int64_t depth, const float* b, const Block& to);
template <int kVectors, class V = Vector, size_t... kIndex>
constexpr std::array<TurnedFn, sizeof...(kIndex)> TurnedTable(std::index_sequence<kIndex...>) {
  return {TurnedInner<static_cast<int>(kIndex) + 1, kVectors, V>...};
}
constexpr std::array<TurnedFn, kRows> kTurnedInner[] = {TurnedTable<1>(Counts()), TurnedTable<2>(Counts()),
                                                        TurnedTable<1, EightLanes>(Counts())};
constexpr int64_t kTurnedColumns = 96;  // of a with all panels: their lines stay in the second cache
int64_t TurnedPieces(int64_t length) { return (length + kTurnedColumns - 1) / kTurnedColumns; }

/// Blocks of rows: the rest is cut into two nearly equal ones, since few rows do not hide the latency of the sums.
int64_t RowsOfNextBlock(int64_t left) {
  return left >= 2 * kRows || left == kRows ? kRows : left > kRows ? (left + 1) / 2 : left;
}

#if defined(__AVX__)
/// to[j * to_step + i] = from[i * from_step + j] for 8 x 8 elements.
void TransposeSquare(const float* from, int64_t from_step, float* to, int64_t to_step) {
  __m256 rows[8], pairs[8], fours[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) rows[i] = _mm256_loadu_ps(from + i * from_step);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    pairs[2 * i] = _mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
    pairs[2 * i + 1] = _mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 4) {
    fours[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
    fours[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
    fours[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
    fours[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * to_step, _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * to_step, _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31));
  }
}
#endif

/// `m` rows and `depth` columns of a for the innermost loop: as they are if they lie in different cache sets, otherwise
/// copied to `memory`.
StepMatrix Left(const StepMatrix& a, int64_t m, int64_t depth, float* memory) {
  constexpr int64_t kSetsOfFirstCache = 1024;  // in elements
  if (a.column_step != 1) {
    TransposeFloats(a.elements, a.column_step, depth, m, memory, LeftStep(depth));
  } else if (a.row_step % kSetsOfFirstCache != 0) {
    return a;
  } else {
    for (int64_t i = 0; i < m; ++i) {
      std::memcpy(memory + i * LeftStep(depth), a.At(i, 0), static_cast<size_t>(depth) * sizeof(float));
    }
  }
  return {memory, LeftStep(depth), 1};
}

/// All rows by the columns of one panel, while the next one comes nearer.
template <bool kAnywhere>
void MultiplyPanel(Block block, int64_t m) {
  const auto& inner = kInner<kAnywhere>[WidthOf(block.columns)];
  const int64_t blocks = (m + kRows - 1) / kRows, depth = block.runs * block.length;
  block.ahead = reinterpret_cast<uintptr_t>(block.b) + static_cast<uintptr_t>(block.panel) * sizeof(float);
  block.ahead_step = static_cast<uintptr_t>((kPanelColumns * 4 + blocks - 1) / blocks);
  for (int64_t row = 0; row < m;) {
    const int64_t count = RowsOfNextBlock(m - row);
    inner[static_cast<size_t>(count - 1)](block);
    if constexpr (kAnywhere) block.offsets += count;
    else block.a += count * block.a_step;
    block.c += count * block.c_step;
    if (block.addend != nullptr) block.addend += count * block.addend_step;
    block.ahead += block.ahead_step * static_cast<uintptr_t>(depth);
    row += count;
  }
}

/// c [m, n] = addend + left b, without an addend if that is null, for the panels of as many rows of b as `left` has
/// columns.
void MultiplyPacked(const RunMatrix& left, const float* b, int64_t m, int64_t n, float* c, int64_t c_step,
                    const float* addend, int64_t addend_step) {
  const int64_t depth = left.runs * left.length;
  Block block{.a = left.elements,
              .a_step = left.row_step,
              .offsets = left.offsets,
              .b = b,
              .panel = depth * kPanelColumns,
              .runs = left.runs,
              .run_step = left.run_step,
              .length = left.length,
              .c = c,
              .c_step = c_step,
              .columns = 2 * kPanelColumns,
              .addend = addend,
              .addend_step = addend_step,
              .ahead = 0,
              .ahead_step = 0};
  int64_t column = 0;
  const auto next = [&](int64_t columns) {
    column += columns;
    block.b += columns * depth;
    block.c = c + column;
    if (addend != nullptr) block.addend = addend + column;
  };
  if (m <= kFewRows && left.offsets == nullptr) {
    for (; column + block.columns <= n; next(block.columns)) kPairs[static_cast<size_t>(m - 1)](block);
  }
  while (column < n) {
    block.columns = std::min(kPanelColumns, n - column);
    left.offsets != nullptr ? MultiplyPanel<true>(block, m) : MultiplyPanel<false>(block, m);
    next(kPanelColumns);
  }
}

/// The first `depth` columns of a matrix with dense rows.
RunMatrix WholeRows(const StepMatrix& a, int64_t depth) { return {a.elements, nullptr, a.row_step, 1, 0, depth}; }

}  // namespace

void TransposeFloats(const float* from, int64_t from_step, int64_t rows, int64_t columns, float* to, int64_t to_step) {
  int64_t i = 0;
#if defined(__AVX__)
  for (; i + 8 <= rows; i += 8) {
    int64_t j = 0;
    const float* const row = from + i * from_step;
    for (; j + 8 <= columns; j += 8) TransposeSquare(row + j, from_step, to + j * to_step + i, to_step);
    for (; j < columns; ++j) {
      for (int64_t k = i; k < i + 8; ++k) to[j * to_step + k] = from[k * from_step + j];
    }
  }
#endif
  for (; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to[j * to_step + i] = from[i * from_step + j];
  }
}

int64_t PackedElements(int64_t k, int64_t n) { return k * Panels(n) * kPanelColumns; }

int64_t PanelStep() { return kPanelColumns; }

void MultiplyRuns(const RunMatrix& a, const float* packed, int64_t m, int64_t n, float* c, bool adds) {
  MultiplyPacked(a, packed, m, n, c, n, adds ? c : nullptr, n);
}

int64_t TurnedParts(int64_t runs, int64_t length, int64_t n) { return runs * TurnedPieces(length) * Panels(n); }

ColumnRange ColumnsOf(const PartRange& parts, int64_t runs, int64_t length, int64_t n) {
  const int64_t pieces = runs * TurnedPieces(length);
  const int64_t first = parts.begin / pieces * kPanelColumns;
  return {first, std::min(n, (parts.end + pieces - 1) / pieces * kPanelColumns) - first};
}

void MultiplyTurnedRuns(const RunMatrix& a, const float* packed, int64_t m, int64_t n, const PartRange& parts, float* c,
                        bool adds) {
  const int64_t panel_size = m * kPanelColumns, of_run = TurnedPieces(a.length), pieces = a.runs * of_run;
  Block to{};
  to.c_step = n;
  to.addend = adds ? c : nullptr;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    // The panels whose part with these rows is among those of the call.
    const int64_t first = (parts.begin - piece + pieces - 1) / pieces;
    const int64_t last = (parts.end - piece + pieces - 1) / pieces;
    const int64_t run = piece / of_run, from = piece % of_run * kTurnedColumns;
    const int64_t end = std::min(from + kTurnedColumns, a.length);
    const float* b = packed + (first - parts.begin / pieces) * panel_size;
    for (int64_t panel = first; panel < last; ++panel, b += panel_size) {
      const int64_t column = panel * kPanelColumns;
      to.columns = std::min(kPanelColumns, n - column);
      const auto& inner = kTurnedInner[WidthOf(to.columns)];
      for (int64_t element = from; element < end;) {
        const int64_t count = RowsOfNextBlock(end - element);
        to.c = c + (run * a.length + element) * n + column;
        inner[static_cast<size_t>(count - 1)](a.elements + run * a.run_step + element, a.offsets, m, b, to);
        element += count;
      }
    }
  }
}

void PackRows(const StepMatrix& b, int64_t depth, int64_t n, float* to, int64_t first, int64_t rows) {
  to += first * kPanelColumns;
  const int64_t panel_size = rows * kPanelColumns, panels = Panels(n), rest = n % kPanelColumns;
  if (b.column_step == 1) {
    const int64_t whole = n / kPanelColumns;
    for (int64_t p = 0; p < depth; ++p) {
      const float* from = b.At(p, 0);
      float* row = to + p * kPanelColumns;
      for (int64_t panel = 0; panel < whole; ++panel) {
        std::memcpy(row + panel * panel_size, from + panel * kPanelColumns, kPanelColumns * sizeof(float));
      }
      if (rest == 0) continue;
      float* last = row + whole * panel_size;
      std::copy_n(from + whole * kPanelColumns, rest, last);
      std::fill_n(last + rest, kPanelColumns - rest, 0.0f);
    }
    return;
  }
  for (int64_t panel = 0; panel < panels; ++panel, to += panel_size) {
    const int64_t column = panel * kPanelColumns, width = std::min(kPanelColumns, n - column);
    TransposeFloats(b.At(0, column), b.column_step, width, depth, to, kPanelColumns);
    if (width == kPanelColumns) continue;
    for (int64_t p = 0; p < depth; ++p) std::fill_n(to + p * kPanelColumns + width, kPanelColumns - width, 0.0f);
  }
}

void PackPanels(const StepMatrix& b, int64_t k, int64_t n, float* to) {
  for (int64_t from = 0; from < k; from += kPanelDepth) {
    const int64_t depth = std::min(kPanelDepth, k - from);
    PackRows({b.At(from, 0), b.row_step, b.column_step}, depth, n, to, 0, depth);
    to += PackedElements(depth, n);
  }
}

int64_t LeftScratch(int64_t m, int64_t k) { return std::min(m, kMostRows) * LeftStep(std::min(k, kPanelDepth)); }

void MultiplyPanels(const StepMatrix& a, const float* packed, int64_t m, int64_t k, int64_t n, float* c, int64_t c_step,
                    const float* addend, int64_t addend_step, float* scratch) {
  for (int64_t row = 0; row < m; row += kMostRows) {
    const int64_t rows = std::min(kMostRows, m - row);
    const float* b = packed;
    for (int64_t from = 0; from < k; from += kPanelDepth) {
      const int64_t depth = std::min(kPanelDepth, k - from);
      const StepMatrix left = Left({a.At(row, from), a.row_step, a.column_step}, rows, depth, scratch);
      float* const to = c + row * c_step;
      const float* const start = addend != nullptr ? addend + row * addend_step : nullptr;
      MultiplyPacked(WholeRows(left, depth), b, rows, n, to, c_step, from > 0 ? to : start,
                     from > 0 ? c_step : addend_step);
      b += PackedElements(depth, n);
    }
  }
}

int64_t ProductScratch(int64_t m, int64_t k, int64_t n) {
  return (LeftScratch(m, k) + 15) / 16 * 16 + PackedElements(std::min(k, kPanelDepth), std::min(n, kMostColumns));
}

void MultiplyMatrices(const StepMatrix& a, const StepMatrix& b, int64_t m, int64_t k, int64_t n, float* c,
                      const float* addend, float* scratch) {
  float* const panels = scratch;
  float* const memory = scratch + PackedElements(std::min(k, kPanelDepth), std::min(n, kMostColumns));
  for (int64_t column = 0; column < n; column += kMostColumns) {
    const int64_t columns = std::min(kMostColumns, n - column);
    for (int64_t from = 0; from < k; from += kPanelDepth) {
      const int64_t depth = std::min(kPanelDepth, k - from);
      PackRows({b.At(from, column), b.row_step, b.column_step}, depth, columns, panels, 0, depth);
      for (int64_t row = 0; row < m; row += kMostRows) {
        const int64_t rows = std::min(kMostRows, m - row);
        const StepMatrix left = Left({a.At(row, from), a.row_step, a.column_step}, rows, depth, memory);
        float* const to = c + row * n + column;
        const float* const start = from > 0 ? to : addend != nullptr ? addend + row * n + column : nullptr;
        MultiplyPacked(WholeRows(left, depth), panels, rows, columns, to, n, start, n);
      }
    }
  }
}

}  // namespace weir::kernels_eigen
