// Vectors of floats for the innermost loops of products: the widest of the instruction set, and those of eight lanes.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_LANES_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_LANES_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__) || defined(__FMA__)
#include <immintrin.h>
#endif

namespace weir::kernels_eigen {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#else
constexpr int kVectorBytes = 32;
#endif
using Vector = float __attribute__((vector_size(kVectorBytes)));
using EightLanes = float __attribute__((vector_size(32)));
constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(float));

/// Vectors at any address.
template <class V = Vector>
[[gnu::always_inline]] inline V LoadLoose(const float* x) {
  V lanes;
  std::memcpy(&lanes, x, sizeof(V));
  return lanes;
}
template <class V>
[[gnu::always_inline]] inline void StoreLoose(V lanes, float* x) {
  std::memcpy(x, &lanes, sizeof(V));
}

#if defined(__AVX512F__)
inline Vector MultiplyAdd(Vector x, Vector y, Vector z) {
  return reinterpret_cast<Vector>(
      _mm512_fmadd_ps(reinterpret_cast<__m512>(x), reinterpret_cast<__m512>(y), reinterpret_cast<__m512>(z)));
}
#endif

inline EightLanes MultiplyAdd(EightLanes x, EightLanes y, EightLanes z) {
#if defined(__FMA__)
  return reinterpret_cast<EightLanes>(
      _mm256_fmadd_ps(reinterpret_cast<__m256>(x), reinterpret_cast<__m256>(y), reinterpret_cast<__m256>(z)));
#else
  return x * y + z;
#endif
}

template <class V>
V Broadcast(const float* x) {
#if defined(__AVX512F__)
  if constexpr (sizeof(V) == 64) return reinterpret_cast<V>(_mm512_set1_ps(*x));
#endif
#if defined(__FMA__)
  if constexpr (sizeof(V) == 32) return reinterpret_cast<V>(_mm256_broadcast_ss(x));
#endif
  return V{} + *x;
}

/// to[j] = from[j] + sums[j], or sums[j] if `from` is null, for j < columns that the sums have.
template <class V, int kVectors>
[[gnu::always_inline]] inline void StorePart(const V (&sums)[kVectors], const float* from, int64_t columns, float* to) {
  constexpr auto kWidth = static_cast<int64_t>(sizeof(V) / sizeof(float));
#if defined(__AVX512F__)
#pragma GCC unroll 4
  for (int j = 0; j < kVectors; ++j, columns -= kWidth, to += kWidth) {
    if (columns <= 0) return;
    const auto mask = static_cast<uint32_t>((uint64_t{1} << std::min(columns, kWidth)) - 1);
    if constexpr (kWidth == 16) {
      const auto lanes = static_cast<__mmask16>(mask);
      auto sum = reinterpret_cast<__m512>(sums[j]);
      if (from != nullptr) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, from + j * kWidth), sum);
      _mm512_mask_storeu_ps(to, lanes, sum);
    } else {
      const auto lanes = static_cast<__mmask8>(mask);
      auto sum = reinterpret_cast<__m256>(sums[j]);
      if (from != nullptr) sum = _mm256_add_ps(_mm256_maskz_loadu_ps(lanes, from + j * kWidth), sum);
      _mm256_mask_storeu_ps(to, lanes, sum);
    }
  }
#else
  alignas(64) float row[kVectors * kWidth];
#pragma GCC unroll 4
  for (int j = 0; j < kVectors; ++j) reinterpret_cast<V*>(row)[j] = sums[j];
  const int64_t count = std::min(columns, kVectors * kWidth);
  for (int64_t j = 0; j < count; ++j) to[j] = from != nullptr ? from[j] + row[j] : row[j];
#endif
}

/// The first `columns` lanes from x; the others are zeros, and not read.
template <class V>
[[gnu::always_inline]] inline V LoadPart(const float* x, int64_t columns) {
  constexpr auto kWidth = static_cast<int64_t>(sizeof(V) / sizeof(float));
#if defined(__AVX512F__)
  const auto mask = static_cast<uint32_t>((uint64_t{1} << std::min(columns, kWidth)) - 1);
  if constexpr (kWidth == 16) return reinterpret_cast<V>(_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), x));
  if constexpr (kWidth == 8) return reinterpret_cast<V>(_mm256_maskz_loadu_ps(static_cast<__mmask8>(mask), x));
#elif defined(__AVX2__)
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(std::min(columns, kWidth))), lane);
  return reinterpret_cast<V>(_mm256_maskload_ps(x, mask));
#else
  V lanes{};
  for (int64_t i = 0; i < std::min(columns, kWidth); ++i) lanes[i] = x[i];
  return lanes;
#endif
}

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_LANES_H_
