#include "plugins/kernels_eigen/kernels/filter_gradient.h"

#include <array>
#include <utility>

#include "plugins/kernels_eigen/kernels/lanes.h"

namespace weir::kernels_eigen {
namespace {

constexpr int kMostRunElements = 12;  // of a run of x at once: as many sums hide the latency of each
constexpr int kMostRuns = 4;          // of as many elements together

struct FilterSums {
  const float* x;
  int64_t x_place, x_row, x_run;  // steps to the next output's window, row of outputs, and run of a window
  const float* dy;
  int64_t n;              // channels of dy
  int64_t rows, columns;  // of outputs
  float* dw;
  int64_t dw_run;
  int64_t channels;  // of dy that are summed, at most those of a vector
  bool adds;         // to dw
};

/// The products of kCount elements of kRuns runs of a window with a vector of dy, over all outputs, in dw.
template <int kRuns, int kCount, class V>
void AddRuns(const FilterSums& s) {
  V sums[kRuns][kCount];
#pragma GCC unroll 4
  for (int r = 0; r < kRuns; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kCount; ++i) sums[r][i] = V{};
  }
  const float* dy = s.dy;
  for (int64_t row = 0; row < s.rows; ++row) {
    const float* x[kRuns];
#pragma GCC unroll 4
    for (int r = 0; r < kRuns; ++r) x[r] = s.x + row * s.x_row + r * s.x_run;
    for (int64_t column = 0; column < s.columns; ++column, dy += s.n) {
      const V right = LoadPart<V>(dy, s.channels);
#pragma GCC unroll 4
      for (int r = 0; r < kRuns; ++r) {
#pragma GCC unroll 12
        for (int i = 0; i < kCount; ++i) sums[r][i] = MultiplyAdd(Broadcast<V>(x[r] + i), right, sums[r][i]);
        x[r] += s.x_place;
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRuns; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kCount; ++i) {
      float* const to = s.dw + r * s.dw_run + i * s.n;
      const V one[1] = {sums[r][i]};
      StorePart(one, s.adds ? to : nullptr, s.channels, to);
    }
  }
}

constexpr int RunsTogether(int count) { return std::min(kMostRuns, kMostRunElements / count); }

using AddRunsFn = void (*)(const FilterSums& sums);
/// For kRuns runs, or as many as there are sums for.
template <class V, int kRuns, size_t... kIndex>
constexpr std::array<AddRunsFn, sizeof...(kIndex)> OfRuns(std::index_sequence<kIndex...>) {
  return {AddRuns<std::min(kRuns, RunsTogether(static_cast<int>(kIndex) + 1)), static_cast<int>(kIndex) + 1, V>...};
}

/// Pieces of nearly equal length that a run is cut into.
int64_t PiecesOf(int64_t length) { return (length + kMostRunElements - 1) / kMostRunElements; }

/// Elements of all runs of a window with the channels of a vector: the parts that follow `part` and are in the range.
/// Each part has a piece of one run, or of several.
template <class V>
void AddChannels(FilterSums sums, int64_t runs, int64_t length, int64_t part, const PartRange& parts) {
  using Counts = std::make_index_sequence<kMostRunElements>;
  static constexpr std::array<AddRunsFn, kMostRunElements> kOfRuns[kMostRuns] = {
      OfRuns<V, 1>(Counts()), OfRuns<V, 2>(Counts()), OfRuns<V, 3>(Counts()), OfRuns<V, 4>(Counts())};
  const float* const x = sums.x;
  float* const dw = sums.dw;
  const int64_t pieces = PiecesOf(length);
  for (int64_t piece = 0, first = 0; piece < pieces; ++piece) {
    const int64_t count = (length - first) / (pieces - piece);
    const auto at = static_cast<size_t>(count - 1);
    const int64_t together = RunsTogether(static_cast<int>(count));
    for (int64_t run = 0; run < runs; run += together, ++part) {
      if (part < parts.begin || part >= parts.end) continue;
      sums.x = x + run * sums.x_run + first;
      sums.dw = dw + run * sums.dw_run + first * sums.n;
      kOfRuns[std::min(together, runs - run) - 1][at](sums);
    }
    first += count;
  }
}

/// Parts with the channels of one vector.
int64_t PartsOfVector(int64_t runs, int64_t length) {
  const int64_t pieces = PiecesOf(length);
  int64_t parts = 0;
  for (int64_t piece = 0, first = 0; piece < pieces; ++piece) {
    const int64_t count = (length - first) / (pieces - piece), together = RunsTogether(static_cast<int>(count));
    parts += (runs + together - 1) / together;
    first += count;
  }
  return parts;
}

}  // namespace

int64_t FilterGradientParts(int64_t runs, int64_t length, int64_t n) {
  return (n + kLanes - 1) / kLanes * PartsOfVector(runs, length);
}

void FilterGradient(const WindowRows& from, int64_t n, const PartRange& parts, float* dw, bool adds) {
  const RunMatrix& x = from.x;
  FilterSums sums{x.elements, x.row_step,   from.x_row, x.run_step,   from.dy, n,
                  from.rows,  from.columns, dw,         x.length * n, 0,       adds};
  const int64_t of_vector = PartsOfVector(x.runs, x.length);
  for (int64_t first = 0, part = 0; first < n; first += kLanes, part += of_vector) {
    if (part + of_vector <= parts.begin || part >= parts.end) continue;
    sums.dy = from.dy + first;
    sums.dw = dw + first;
    sums.channels = n - first;
    const bool narrow = sums.channels <= 8;
    narrow ? AddChannels<EightLanes>(sums, x.runs, x.length, part, parts)
           : AddChannels<Vector>(sums, x.runs, x.length, part, parts);
  }
}

}  // namespace weir::kernels_eigen
