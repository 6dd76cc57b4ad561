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
};

/// dw += the products of kCount elements of kRuns runs of a window with a vector of dy, over all outputs.
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
      StorePart(one, to, s.channels, to);
    }
  }
}

constexpr int RunsTogether(int count) { return std::min(kMostRuns, kMostRunElements / count); }

using AddRunsFn = void (*)(const FilterSums& sums);
template <class V, size_t... kIndex>
constexpr std::array<AddRunsFn, sizeof...(kIndex)> OfOneRun(std::index_sequence<kIndex...>) {
  return {AddRuns<1, static_cast<int>(kIndex) + 1, V>...};
}
template <class V, size_t... kIndex>
constexpr std::array<AddRunsFn, sizeof...(kIndex)> OfRunsTogether(std::index_sequence<kIndex...>) {
  return {AddRuns<RunsTogether(static_cast<int>(kIndex) + 1), static_cast<int>(kIndex) + 1, V>...};
}

/// All elements of all runs of a window with the channels of a vector.
template <class V>
void AddChannels(FilterSums sums, int64_t runs, int64_t length) {
  static constexpr auto kOne = OfOneRun<V>(std::make_index_sequence<kMostRunElements>());
  static constexpr auto kTogether = OfRunsTogether<V>(std::make_index_sequence<kMostRunElements>());
  const float* const x = sums.x;
  float* const dw = sums.dw;
  // Parts of nearly equal length.
  const int64_t parts = (length + kMostRunElements - 1) / kMostRunElements;
  for (int64_t part = 0, first = 0; part < parts; ++part) {
    const int64_t count = (length - first) / (parts - part);
    const auto at = static_cast<size_t>(count - 1);
    const int64_t together = RunsTogether(static_cast<int>(count));
    for (int64_t run = 0; run < runs;) {
      sums.x = x + run * sums.x_run + first;
      sums.dw = dw + run * sums.dw_run + first * sums.n;
      const bool several = run + together <= runs;
      (several ? kTogether : kOne)[at](sums);
      run += several ? together : 1;
    }
    first += count;
  }
}

}  // namespace

void AddFilterGradient(const RunMatrix& x, int64_t x_row, const float* dy, int64_t rows, int64_t columns, int64_t n,
                       float* dw) {
  FilterSums sums{x.elements, x.row_step, x_row, x.run_step, dy, n, rows, columns, dw, x.length * n, 0};
  for (int64_t first = 0; first < n;) {
    sums.dy = dy + first;
    sums.dw = dw + first;
    sums.channels = n - first;
    if (sums.channels <= 8) {
      AddChannels<EightLanes>(sums, x.runs, x.length);
      break;
    }
    AddChannels<Vector>(sums, x.runs, x.length);
    first += kLanes;
  }
}

}  // namespace weir::kernels_eigen
