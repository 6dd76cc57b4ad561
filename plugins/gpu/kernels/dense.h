// Dense linear algebra by one block of threads: the algorithms of plugins/kernels_eigen/kernels/dense.h, whose inner
// loops are spread over the threads. C: float, double or a complex type. Matrices are row-major.
#ifndef WEIR_PLUGINS_GPU_KERNELS_DENSE_H_
#define WEIR_PLUGINS_GPU_KERNELS_DENSE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "plugins/functors/arithmetic.h"
#include "plugins/gpu/platform/platform.h"

namespace weir::gpu {

template <class C>
struct RealType {
  using Type = C;
};
template <class R>
struct RealType<functors::Complex<R>> {
  using Type = R;
};
template <class C>
using RealOf = typename RealType<C>::Type;

template <class C>
WEIR_HD RealOf<C> RealPart(C x) {
  if constexpr (functors::kIsDeviceComplex<C>) {
    return x.re;
  } else {
    return x;
  }
}
template <class C>
WEIR_HD RealOf<C> ImaginaryPart(C x) {
  if constexpr (functors::kIsDeviceComplex<C>) {
    return x.im;
  } else {
    return C(0);
  }
}
template <class C>
WEIR_HD RealOf<C> Magnitude(C x) {
  if constexpr (functors::kIsDeviceComplex<C>) {
    return std::hypot(x.re, x.im);
  } else {
    return std::fabs(x);
  }
}
template <class C>
WEIR_HD RealOf<C> SquaredMagnitude(C x) {
  if constexpr (functors::kIsDeviceComplex<C>) {
    return x.re * x.re + x.im * x.im;
  } else {
    return x * x;
  }
}
/// x times, and x by, a real number.
template <class C>
WEIR_HD C Scaled(C x, RealOf<C> factor) {
  if constexpr (functors::kIsDeviceComplex<C>) {
    return C(x.re * factor, x.im * factor);
  } else {
    return x * factor;
  }
}
template <class C>
WEIR_HD C Divided(C x, RealOf<C> divisor) {
  if constexpr (functors::kIsDeviceComplex<C>) {
    return C(x.re / divisor, x.im / divisor);
  } else {
    return x / divisor;
  }
}

/// Threads of a block that works on n x m matrices.
inline int MatrixThreads(int64_t n, int64_t m) {
  const int64_t elements = n <= 0 || m <= 0 ? 1 : (n > 64 || m > 64 ? 256 : n * m);
  return elements > 128 ? 256 : elements > 32 ? 128 : 32;
}
/// Shared memory that the functions below use, from its begin on.
inline constexpr uint32_t kDenseSharedBytes = 256 * 16 + 64;

/// An element of a matrix of which the adjoint may be meant.
template <class C>
struct MaybeAdjoint {
  const C* data;
  int64_t n;  // columns in memory
  bool adjoint;
  WEIR_GPU_FN C operator()(int64_t i, int64_t k) const {
    return adjoint ? functors::Conjugated(data[k * n + i]) : data[i * n + k];
  }
};

/// Replaces an n x n matrix by its factors with row pivots: L below the diagonal, with ones on its own, and U. Row i is
/// row order[i] of the matrix; `sign` is that of the permutation.
template <class C, class Block>
WEIR_GPU_FN void FactorLu(Block& block, C* lu, int64_t n, int64_t* order, int64_t* sign) {
  struct Candidate {
    RealOf<C> size;
    int64_t row;
  };
  Candidate* const best = block.template Shared<Candidate>(0);
  block.ForEachThread([&](int t) {
    for (int64_t i = t; i < n; i += block.threads()) order[i] = i;
    if (t == 0) *sign = 1;
  });
  for (int64_t k = 0; k < n; ++k) {
    // The first of the largest elements; one that is not a number in row k stays there.
    block.ForEachThread([&](int t) {
      Candidate own{Magnitude(lu[k * n + k]), k};
      for (int64_t i = k + 1 + t; i < n; i += block.threads()) {
        const RealOf<C> size = Magnitude(lu[i * n + k]);
        if (size > own.size) own = {size, i};
      }
      best[t] = own;
    });
    block.ForEachThread([&](int t) {
      if (t != 0) return;
      Candidate top = best[0];
      for (int j = 1; j < block.threads(); ++j) {
        const Candidate& other = best[j];
        if (other.size > top.size || (other.size == top.size && other.row < top.row)) top = other;
      }
      best[0] = top;
      if (top.row == k) return;
      *sign = -*sign;
      const int64_t moved = order[k];
      order[k] = order[top.row];
      order[top.row] = moved;
    });
    block.ForEachThread([&](int t) {
      const int64_t pivot = best[0].row;
      for (int64_t j = t; pivot != k && j < n; j += block.threads()) {
        const C moved = lu[k * n + j];
        lu[k * n + j] = lu[pivot * n + j];
        lu[pivot * n + j] = moved;
      }
    });
    block.ForEachThread([&](int t) {
      const C pivot = lu[k * n + k];
      for (int64_t i = k + 1 + t; pivot != C(0) && i < n; i += block.threads()) lu[i * n + k] = lu[i * n + k] / pivot;
    });
    block.ForEachThread([&](int t) {
      const int64_t rest = n - k - 1;
      if (lu[k * n + k] == C(0)) return;
      for (int64_t e = t; e < rest * rest; e += block.threads()) {
        const int64_t i = k + 1 + e / rest, j = k + 1 + e % rest;
        lu[i * n + j] = lu[i * n + j] - lu[i * n + k] * lu[k * n + j];
      }
    });
  }
}

/// True if all pivots are numbers other than 0.
template <class C>
WEIR_GPU_FN bool IsInvertible(const C* lu, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (!(Magnitude(lu[i * n + i]) > 0)) return false;
  }
  return true;
}

/// x = t^-1 x by substitution, of the lower or the upper triangle; x is [n, columns], t(i, k) an element. Zeros on the
/// diagonal give infinities and NaN. `unit`: the diagonal has ones.
template <class C, class Triangle, class Block>
WEIR_GPU_FN void SolveTriangle(Block& block, const Triangle& triangle, int64_t n, bool lower, bool unit, C* x,
                               int64_t columns) {
  for (int64_t step = 0; step < n; ++step) {
    const int64_t row = lower ? step : n - 1 - step;
    if (!unit) {
      block.ForEachThread([&](int t) {
        const C pivot = triangle(row, row);
        for (int64_t j = t; j < columns; j += block.threads()) x[row * columns + j] = x[row * columns + j] / pivot;
      });
    }
    block.ForEachThread([&](int t) {
      const int64_t rest = n - 1 - step, first = lower ? row + 1 : 0;
      for (int64_t e = t; e < rest * columns; e += block.threads()) {
        const int64_t i = first + e / columns, j = e % columns;
        x[i * columns + j] = x[i * columns + j] - triangle(i, row) * x[row * columns + j];
      }
    });
  }
}

/// The sum of a[i] conj(b[i]), in four partial sums as on the CPU.
template <class C>
WEIR_GPU_FN C Inner(const C* a, const C* b, int64_t n) {
  C sums[4] = {};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int64_t k = 0; k < 4; ++k) sums[k] = sums[k] + a[i + k] * functors::Conjugated(b[i + k]);
  }
  for (; i < n; ++i) sums[0] = sums[0] + a[i] * functors::Conjugated(b[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// The sum of the squared magnitudes of column k of an [rows, columns] matrix from row `first` on, in shared memory.
template <class C, class Block>
WEIR_GPU_FN RealOf<C>* ColumnSquares(Block& block, const C* x, int64_t rows, int64_t columns, int64_t k,
                                     int64_t first) {
  RealOf<C>* const sums = block.template Shared<RealOf<C>>(0);
  block.ForEachThread([&](int t) {
    RealOf<C> sum = 0;
    for (int64_t i = first + t; i < rows; i += block.threads()) sum += SquaredMagnitude(x[i * columns + k]);
    sums[t] = sum;
  });
  block.ForEachThread([&](int t) {
    if (t != 0) return;
    for (int j = 1; j < block.threads(); ++j) sums[0] += sums[j];
  });
  return sums;
}

/// A Householder reflection 1 - tau v v^H that takes (first, tail) to (beta, 0): v is 1, then the tail over `divisor`.
template <class C>
struct Reflection {
  C tau, divisor;
  RealOf<C> beta;
  /// `tail`: the sum of the squared magnitudes of the others. No reflection, with tau 0, if it is 0 and first is real.
  WEIR_GPU_FN Reflection(C first, RealOf<C> tail) : tau(0), divisor(1), beta(RealPart(first)) {
    if (tail == 0 && ImaginaryPart(first) == 0) return;
    beta = std::sqrt(SquaredMagnitude(first) + tail);
    if (RealPart(first) >= 0) beta = -beta;
    divisor = first - C(beta);
    tau = functors::Conjugated(Divided(C(beta) - first, beta));
  }
};

/// Applies the reflection whose v lies below row `row` in column k of qr, [rows, qr_columns], to the columns of x,
/// [rows, columns], from `begin` on.
template <class C, class Block>
WEIR_GPU_FN void Reflect(Block& block, const C* qr, int64_t rows, int64_t qr_columns, int64_t k, int64_t row, C tau,
                         C* x, int64_t columns, int64_t begin) {
  block.ForEachThread([&](int t) {
    if (tau == C(0)) return;
    for (int64_t j = begin + t; j < columns; j += block.threads()) {
      C sum = x[row * columns + j];
      for (int64_t i = row + 1; i < rows; ++i) {
        sum = sum + functors::Conjugated(qr[i * qr_columns + k]) * x[i * columns + j];
      }
      x[row * columns + j] = x[row * columns + j] - tau * sum;
      for (int64_t i = row + 1; i < rows; ++i) {
        x[i * columns + j] = x[i * columns + j] - tau * qr[i * qr_columns + k] * sum;
      }
    }
  });
}

}  // namespace weir::gpu

#endif  // WEIR_PLUGINS_GPU_KERNELS_DENSE_H_
