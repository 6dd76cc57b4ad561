// Exponentials and their sums over rows. Sums run in lanes, so their last bits depend on the instruction set.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_EXPONENTIALS_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_EXPONENTIALS_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "plugins/functors/exponential.h"
#include "plugins/kernels_eigen/kernels/lanes.h"

namespace weir::kernels_eigen {

using functors::ExpOfNegative;
using functors::kLeastExponent;

inline constexpr float kNoLogit = -std::numeric_limits<float>::infinity();

/// A row's last elements, fewer than a vector has lanes: the other lanes are -inf, whose exponential is 0.
struct RowTail {
  static constexpr int64_t kLanes = 16;

  RowTail(const float* x, int64_t count) {
    for (float& lane : lanes) lane = kNoLogit;
    for (int64_t i = 0; i < count; ++i) lanes[i] = x[i];
  }
  /// Each lane becomes e^(lane - largest); returns their sum.
  float ExpSum(float largest) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < kLanes; ++i) {
      lanes[i] = ExpOfNegative(lanes[i] - largest);
      sum += lanes[i];
    }
    return sum;
  }

  alignas(64) float lanes[kLanes];
};

using VectorBits = int32_t __attribute__((vector_size(kVectorBytes)));
/// Folds the lanes pairwise: those of the upper half with those of the lower half, and so on.
template <class Fold>
[[gnu::always_inline]] inline float FoldLanesOf(Vector vector, Fold&& fold) {
#if defined(__AVX512F__)
  const auto all = reinterpret_cast<__m512>(vector);
  const __m256 low = _mm512_castps512_ps256(all), high = _mm512_extractf32x8_ps(all, 1);
  const __m256 eight = fold(low, high);
#elif defined(__AVX__)
  const auto eight = reinterpret_cast<__m256>(vector);
#endif
#if defined(__AVX__)
  __m128 four = fold(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = fold(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(fold(four, _mm_movehdup_ps(four)));
#else
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) vector[i] = fold(float{vector[i]}, float{vector[i + half]});
  }
  return vector[0];
#endif
}
inline float SumOfLanes(Vector lanes) {
  return FoldLanesOf(lanes, [](auto x, auto y) { return x + y; });
}
/// Of lanes that are not NaN.
inline float LargestOfLanes(Vector lanes) {
  return FoldLanesOf(lanes, [](auto x, auto y) { return x > y ? x : y; });
}

/// Entries of the table: as many as one permutation reads.
inline constexpr int kTableBits = kLanes == 16 ? 4 : 3;
/// A sum with it is rounded to a whole number of 1 / kLanes: 1.5 * 2^(23 - kTableBits).
inline constexpr float kToParts = static_cast<float>(uint32_t{3} << (22 - kTableBits));

/// The largest r of ExpOfLogits, and its square.
inline constexpr double kMostRest = 0.34657359027997265 / static_cast<double>(kLanes);
inline constexpr double kMostRest2 = kMostRest * kMostRest;

/// 2^(i / kLanes), times the constant term of the polynomial of ExpOfLogits.
struct PowersOfTwo {
  alignas(kVectorBytes) float at[kLanes];
};
inline constexpr PowersOfTwo kPowersOfTwo = [] {
  constexpr double kSixteenth = 1.0442737824274138403;  // 2^(1 / 16)
  constexpr double kStep = kLanes == 16 ? kSixteenth : kSixteenth * kSixteenth;
  PowersOfTwo powers{};
  double power = 1 - kMostRest2 * kMostRest2 / 192;
  for (float& at : powers.at) {
    at = static_cast<float>(power);
    power *= kStep;
  }
  return powers;
}();

/// Their bits, less what Scaled adds to the fraction of entry i: i / kLanes.
struct ShiftedPowers {
  alignas(kVectorBytes) uint32_t at[kLanes];
};
inline constexpr ShiftedPowers kShiftedPowers = [] {
  ShiftedPowers powers{};
  for (uint32_t i = 0; i < kLanes; ++i) {
    powers.at[i] = std::bit_cast<uint32_t>(kPowersOfTwo.at[i]) - (i << (23 - kTableBits));
  }
  return powers;
}();

/// table[parts mod kLanes] * 2^floor(n) * (1 + rest), 0 where `x` is below kLeastExponent; `n` is `parts` as a number.
[[gnu::always_inline]] inline Vector Scaled(Vector x, VectorBits parts, [[maybe_unused]] Vector n, Vector rest) {
#if defined(__AVX512F__)
  const __m512 power = _mm512_permutexvar_ps(reinterpret_cast<__m512i>(parts), _mm512_load_ps(kPowersOfTwo.at));
  const auto value = MultiplyAdd(reinterpret_cast<Vector>(power), rest, reinterpret_cast<Vector>(power));
  const __mmask16 normal = _mm512_cmp_ps_mask(reinterpret_cast<__m512>(x), _mm512_set1_ps(kLeastExponent), _CMP_NLT_UQ);
  return reinterpret_cast<Vector>(
      _mm512_maskz_scalef_ps(normal, reinterpret_cast<__m512>(value), reinterpret_cast<__m512>(n)));
#else
  using Words = uint32_t __attribute__((vector_size(kVectorBytes)));
#if defined(__AVX2__)
  const auto power = reinterpret_cast<Words>(_mm256_permutevar8x32_epi32(
      _mm256_load_si256(reinterpret_cast<const __m256i*>(kShiftedPowers.at)), reinterpret_cast<__m256i>(parts)));
#else
  Words power;
  for (int i = 0; i < kLanes; ++i) power[i] = kShiftedPowers.at[parts[i] & (kLanes - 1)];
#endif
  // The whole part of `parts` is added to the exponent, modulo 2^32, and the rest to the fraction.
  const auto scaled = reinterpret_cast<Vector>(power + (reinterpret_cast<Words>(parts) << (23 - kTableBits)));
  const auto value = reinterpret_cast<VectorBits>(MultiplyAdd(scaled, rest, scaled));
  return reinterpret_cast<Vector>(value & ~VectorBits(x < kLeastExponent));
#endif
}

/// e^x for x <= 0: within 2 ulp down to -10, within 4e-7 of the value where that is a normal number, else 0; NaN for
/// NaN. With n the multiple of 1 / kLanes nearest to x / ln 2 and r = x - n ln 2, e^x = 2^n e^r, and e^r is
/// 1 + r (1 + r (c + r / 6)), where r^4 / 24 is replaced by the polynomial of degree 2 that is nearest to it for
/// |r| <= kMostRest.
[[gnu::always_inline]] inline Vector ExpOfLogits(Vector x) {
  const Vector all{};
  const Vector shifted = MultiplyAdd(x, all + 1.44269504f, all + kToParts);
  const Vector n = shifted - kToParts;
  const Vector r = MultiplyAdd(n, all - 0.693147182464599609375f, x);
  constexpr auto kSquare = static_cast<float>(0.5 + kMostRest2 / 24);
  Vector q = MultiplyAdd(all + 0.16666667f, r, all + kSquare);
  q = MultiplyAdd(q, r, all + 1.0f);
  return Scaled(x, reinterpret_cast<VectorBits>(shifted), n, q * r);
}

/// x > y ? x : y, which compilers do not turn into one instruction because of NaN, but that does the same.
[[gnu::always_inline]] inline Vector LargerOf(Vector x, Vector y) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vector>(_mm512_max_ps(reinterpret_cast<__m512>(x), reinterpret_cast<__m512>(y)));
#elif defined(__AVX__)
  return reinterpret_cast<Vector>(_mm256_max_ps(reinterpret_cast<__m256>(x), reinterpret_cast<__m256>(y)));
#else
  return x > y ? x : y;
#endif
}

/// The largest element of x [n], n > 0; NaN counts as smaller than everything. Four streams hide the latency of a
/// comparison.
inline float LargestOf(const float* x, int64_t n) {
  if (n < kLanes) {
    float largest = kNoLogit;
    for (int64_t i = 0; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
    return largest;
  }
  Vector most[4];
  for (Vector& m : most) m = Vector{} + kNoLogit;
  const auto take = [&](int stream, int64_t i) { most[stream] = LargerOf(LoadLoose(x + i), most[stream]); };
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int stream = 0; stream < 4; ++stream) take(stream, i + stream * kLanes);
  }
  for (; i + kLanes <= n; i += kLanes) take(0, i);
  take(1, n - kLanes);
  Vector all = most[0];
  for (int stream = 1; stream < 4; ++stream) all = LargerOf(most[stream], all);
  return LargestOfLanes(all);
}

/// Elements that are summed in float; sums of such blocks are added in double.
inline constexpr int64_t kSumBlock = 4096;

/// Of a row: the sum of its exponentials, and the largest element of the row after it.
struct RowSum {
  double total;
  float next_largest;
};

/// The sum of e^(x[i] - largest) for n >= kLanes; y[i] becomes that if kStores. The last vector overlaps the one
/// before. The maximum of `next` [n], taken meanwhile if kNext, costs loads that the exponentials leave free.
template <bool kStores, bool kNext>
RowSum ExpSumOfVectors(const float* x, float largest, float* y, int64_t n, [[maybe_unused]] const float* next) {
  const int64_t whole = n - n % kLanes;
  Vector last{};
  if (whole != n) last = ExpOfLogits(LoadLoose(x + n - kLanes) - largest);  // y may be x
  double total = 0;
  Vector most[2] = {Vector{} + kNoLogit, Vector{} + kNoLogit};
  for (int64_t begin = 0; begin < whole; begin += kSumBlock) {
    const int64_t end = std::min(whole, begin + kSumBlock);
    Vector sums[2] = {};
    const auto add = [&](int stream, int64_t i) {
      const Vector e = ExpOfLogits(LoadLoose(x + i) - largest);
      if constexpr (kStores) StoreLoose(e, y + i);
      sums[stream] += e;
      if constexpr (kNext) most[stream] = LargerOf(LoadLoose(next + i), most[stream]);
    };
    int64_t i = begin;
    for (; i + 2 * kLanes <= end; i += 2 * kLanes) {
      add(0, i);
      add(1, i + kLanes);
    }
    if (i < end) add(0, i);
    total += static_cast<double>(SumOfLanes(sums[0] + sums[1]));
  }
  if (whole != n) {
    if constexpr (kStores) StoreLoose(last, y + n - kLanes);
    if constexpr (kNext) most[1] = LargerOf(LoadLoose(next + n - kLanes), most[1]);
    for (int64_t lane = kLanes - (n - whole); lane < kLanes; ++lane) total += static_cast<double>(last[lane]);
  }
  return {total, kNext ? LargestOfLanes(LargerOf(most[0], most[1])) : kNoLogit};
}

/// y[i] = e^(x[i] - largest), where `largest` is not below any element; returns the sum. `y` may be `x`.
inline double ExpSum(const float* x, float largest, float* y, int64_t n) {
  if (n >= kLanes) return ExpSumOfVectors<true, false>(x, largest, y, n, nullptr).total;
  RowTail tail(x, n);
  const double total = static_cast<double>(tail.ExpSum(largest));
  std::copy_n(tail.lanes, n, y);
  return total;
}

/// The same sum without the exponentials.
inline double ExpSum(const float* x, float largest, int64_t n) {
  if (n >= kLanes) return ExpSumOfVectors<false, false>(x, largest, nullptr, n, nullptr).total;
  return static_cast<double>(RowTail(x, n).ExpSum(largest));
}

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_EXPONENTIALS_H_
