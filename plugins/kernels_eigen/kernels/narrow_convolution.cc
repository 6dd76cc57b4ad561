#include "plugins/kernels_eigen/kernels/narrow_convolution.h"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::kernels_eigen {
namespace {

#if defined(__AVX512F__)
constexpr int kRegisters = 32;
#else
constexpr int kRegisters = 16;
#endif
/// Vectors of places that share each element of the filter: they, their sums and that element fill the registers.
constexpr int BlocksTogether(int out) { return std::min(8, (kRegisters - 1) / (out + 1)); }

#if defined(__AVX512F__)
using Lanes = __m512;
Lanes UnpackLow(Lanes x, Lanes y) { return _mm512_unpacklo_ps(x, y); }
Lanes UnpackHigh(Lanes x, Lanes y) { return _mm512_unpackhi_ps(x, y); }
Lanes LowPairs(Lanes x, Lanes y) { return _mm512_shuffle_ps(x, y, 0x44); }
Lanes HighPairs(Lanes x, Lanes y) { return _mm512_shuffle_ps(x, y, 0xee); }
template <int kPart>
void StoreFour(Lanes x, float* to) {
  _mm_storeu_ps(to, _mm512_extractf32x4_ps(x, kPart));
}
#elif defined(__AVX__)
using Lanes = __m256;
Lanes UnpackLow(Lanes x, Lanes y) { return _mm256_unpacklo_ps(x, y); }
Lanes UnpackHigh(Lanes x, Lanes y) { return _mm256_unpackhi_ps(x, y); }
Lanes LowPairs(Lanes x, Lanes y) { return _mm256_shuffle_ps(x, y, 0x44); }
Lanes HighPairs(Lanes x, Lanes y) { return _mm256_shuffle_ps(x, y, 0xee); }
template <int kPart>
void StoreFour(Lanes x, float* to) {
  _mm_storeu_ps(to, _mm256_extractf128_ps(x, kPart));
}
#endif

#if defined(__AVX__)
/// Four channels of kLanes places: part k of fours[j] has those of place 4 k + j.
template <int kOut, int kFirst>
[[gnu::always_inline]] inline void TurnFour(const Vector (&sums)[kOut], Lanes (&fours)[4]) {
  const auto channel = [&](int i) { return kFirst + i < kOut ? reinterpret_cast<Lanes>(sums[kFirst + i]) : Lanes{}; };
  const Lanes low01 = UnpackLow(channel(0), channel(1)), high01 = UnpackHigh(channel(0), channel(1));
  const Lanes low23 = UnpackLow(channel(2), channel(3)), high23 = UnpackHigh(channel(2), channel(3));
  fours[0] = LowPairs(low01, low23);
  fours[1] = HighPairs(low01, low23);
  fours[2] = LowPairs(high01, high23);
  fours[3] = HighPairs(high01, high23);
}

template <int kOut, size_t... kPart>
[[gnu::always_inline]] inline void StoreTurned(const Lanes (&low)[4], [[maybe_unused]] const Lanes (&high)[4], float* y,
                                               std::index_sequence<kPart...>) {
  const auto store = [&]<size_t kAt>(std::integral_constant<size_t, kAt>) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      float* const place = y + (4 * kAt + static_cast<size_t>(j)) * kOut;
      StoreFour<kAt>(low[j], place);
      if constexpr (kOut > 4) StoreFour<kAt>(high[j], place + 4);
    }
  };
  (store(std::integral_constant<size_t, kPart>()), ...);
}
#endif

/// Elements behind the block that StorePlaces may overwrite.
constexpr int kSpilled = 3;

/// y [kLanes, kOut] from a vector per channel. Whole fours are written, from the first place to the last one, so up to
/// kSpilled elements after the block get any value.
template <int kOut>
[[gnu::always_inline]] inline void StorePlaces(const Vector (&sums)[kOut], float* y) {
  if constexpr (kOut == 1) return StoreLoose(sums[0], y);
#if defined(__AVX__)
  Lanes low[4], high[4];
  TurnFour<kOut, 0>(sums, low);
  if constexpr (kOut > 4) TurnFour<kOut, 4>(sums, high);
  StoreTurned<kOut>(low, high, y, std::make_index_sequence<static_cast<size_t>(kLanes / 4)>());
#else
  for (int64_t i = 0; i < kLanes; ++i) {
    for (int j = 0; j < kOut; ++j) y[i * kOut + j] = sums[j][i];
  }
#endif
}

/// kBlocks vectors of places: x[i] are the windows of their first places, y[i] their outputs.
template <int kOut, int kBlocks>
void Blocks(const NarrowRows& rows, const float* const* x, float* const* y, const float* end) {
  Vector sums[kBlocks][kOut];
#pragma GCC unroll 8
  for (int i = 0; i < kBlocks; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kOut; ++j) sums[i][j] = Vector{};
  }
  const float* filter = rows.filter;
  for (int64_t p = 0; p < rows.depth; ++p, filter += rows.filter_step) {
    const int64_t tap = rows.taps[p];
    Vector windows[kBlocks];
#pragma GCC unroll 8
    for (int i = 0; i < kBlocks; ++i) windows[i] = LoadLoose(x[i] + tap);
#pragma GCC unroll 8
    for (int j = 0; j < kOut; ++j) {
      const Vector factor = Broadcast<Vector>(filter + j);
#pragma GCC unroll 8
      for (int i = 0; i < kBlocks; ++i) sums[i][j] = MultiplyAdd(windows[i], factor, sums[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kBlocks; ++i) {
    if (y[i] + kLanes * kOut != end) {
      StorePlaces(sums[i], y[i]);
      continue;
    }
    alignas(64) float block[kLanes * kOut + kSpilled];
    StorePlaces(sums[i], block);
    std::copy_n(block, kLanes * kOut, y[i]);
  }
}

template <int kOut>
void Convolve(const NarrowRows& rows, float* y) {
  constexpr int kTogether = BlocksTogether(kOut);
  const float* const end = y + rows.images * rows.rows * rows.columns * kOut;
  const float* x[kTogether];
  float* to[kTogether];
  int waiting = 0;
  for (int64_t image = 0; image < rows.images; ++image) {
    for (int64_t row = 0; row < rows.rows; ++row, y += rows.columns * kOut) {
      const float* const windows = rows.x + image * rows.image + row * rows.line;
      for (int64_t column = 0; column < rows.columns; column += kLanes) {
        const int64_t first = std::min(column, rows.columns - kLanes);  // the last vector may overlap the one before
        x[waiting] = windows + first;
        to[waiting] = y + first * kOut;
        if (++waiting < kTogether) continue;
        Blocks<kOut, kTogether>(rows, x, to, end);
        waiting = 0;
      }
    }
  }
  for (int i = 0; i < waiting; ++i) Blocks<kOut, 1>(rows, x + i, to + i, end);
}

using ConvolveFn = void (*)(const NarrowRows& rows, float* y);
template <size_t... kIndex>
constexpr std::array<ConvolveFn, sizeof...(kIndex)> OfChannels(std::index_sequence<kIndex...>) {
  return {Convolve<static_cast<int>(kIndex) + 1>...};
}

}  // namespace

void ConvolveNarrow(const NarrowRows& rows, int64_t out, float* y) {
  static constexpr auto kOfChannels = OfChannels(std::make_index_sequence<kNarrowChannels>());
  kOfChannels[static_cast<size_t>(out - 1)](rows, y);
}

}  // namespace weir::kernels_eigen
