// Sums, exponentials and their sums over rows, in plain C++ that compilers turn into vector code. Sums run in lanes, so
// their last bits depend on the instruction set.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_EXPONENTIALS_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_EXPONENTIALS_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "plugins/functors/exponential.h"

namespace weir::kernels_eigen {

using functors::ExpOfNegative;

inline constexpr float kNoLogit = -std::numeric_limits<float>::infinity();

/// A row's last elements, fewer than a vector has lanes: the other lanes are -inf, whose exponential is 0.
struct RowTail {
  static constexpr int64_t kLanes = 16;

  RowTail(const float* x, int64_t count) {
    for (float& lane : lanes) lane = kNoLogit;
    for (int64_t i = 0; i < count; ++i) lanes[i] = x[i];
  }
  float Largest() const {
    float largest = kNoLogit;
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < kLanes; ++i) largest = lanes[i] > largest ? lanes[i] : largest;
    return largest;
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

/// The largest element of x [n], n > 0; NaN counts as smaller than everything. Four streams hide the latency of a
/// comparison.
inline float LargestOf(const float* x, int64_t n) {
  const int64_t quarter = n / (4 * RowTail::kLanes) * RowTail::kLanes;
  const float *b = x + quarter, *c = b + quarter, *d = c + quarter;
  float m0 = kNoLogit, m1 = kNoLogit, m2 = kNoLogit, m3 = kNoLogit;
#pragma omp simd reduction(max : m0, m1, m2, m3)
  for (int64_t i = 0; i < quarter; ++i) {
    m0 = x[i] > m0 ? x[i] : m0;
    m1 = b[i] > m1 ? b[i] : m1;
    m2 = c[i] > m2 ? c[i] : m2;
    m3 = d[i] > m3 ? d[i] : m3;
  }
  for (int64_t i = 4 * quarter; i < n; i += RowTail::kLanes) {
    m0 = std::max(m0, RowTail(x + i, std::min(n - i, RowTail::kLanes)).Largest());
  }
  return std::max(std::max(m0, m1), std::max(m2, m3));
}

/// Elements that are summed in float; sums of such blocks are added in double.
inline constexpr int64_t kSumBlock = 4096;

/// y[i] = e^(x[i] - largest), where `largest` is not below any element; returns the sum. `y` may be `x`.
inline double ExpSum(const float* x, float largest, float* y, int64_t n) {
  double total = 0;
  const int64_t whole = n - n % RowTail::kLanes;
  for (int64_t begin = 0; begin < whole; begin += kSumBlock) {
    const int64_t end = std::min(whole, begin + kSumBlock);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; ++i) {
      const float e = ExpOfNegative(x[i] - largest);
      y[i] = e;
      sum += e;
    }
    total += static_cast<double>(sum);
  }
  if (whole == n) return total;
  RowTail tail(x + whole, n - whole);
  total += static_cast<double>(tail.ExpSum(largest));
  std::copy_n(tail.lanes, n - whole, y + whole);
  return total;
}

/// The same sum without the exponentials.
inline double ExpSum(const float* x, float largest, int64_t n) {
  double total = 0;
  const int64_t whole = n - n % RowTail::kLanes;
  for (int64_t begin = 0; begin < whole; begin += kSumBlock) {
    const int64_t end = std::min(whole, begin + kSumBlock);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; ++i) sum += ExpOfNegative(x[i] - largest);
    total += static_cast<double>(sum);
  }
  return whole == n ? total : total + static_cast<double>(RowTail(x + whole, n - whole).ExpSum(largest));
}

/// The sum of f(x[i]) for i < n, in four streams.
template <class T, class F>
[[gnu::always_inline]] inline double SumOf(const T* x, int64_t n, F&& f) {
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kSumBlock) {
    const int64_t count = std::min(n - begin, kSumBlock), quarter = count / 4;
    const T *a = x + begin, *b = a + quarter, *c = b + quarter, *d = c + quarter;
    T s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (int64_t i = 0; i < quarter; ++i) {
      s0 += f(a[i]);
      s1 += f(b[i]);
      s2 += f(c[i]);
      s3 += f(d[i]);
    }
    for (int64_t i = 4 * quarter; i < count; ++i) s0 += f(a[i]);
    total += static_cast<double>(s0) + static_cast<double>(s1) + static_cast<double>(s2) + static_cast<double>(s3);
  }
  return total;
}

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_EXPONENTIALS_H_
