// Matrices with three diagonals: checks of TridiagonalMatMul and TridiagonalSolve, and the elimination.
#ifndef WEIR_PLUGINS_FUNCTORS_TRIDIAGONAL_H_
#define WEIR_PLUGINS_FUNCTORS_TRIDIAGONAL_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "plugins/functors/scalar.h"
#include "sdk/cpp/prepare.h"

namespace weir::functors {

/// Ok if all inputs have one rank, at least 2, and the extents of input 0 before the last two.
inline int32_t CheckTridiagonalBatches(const sdk::Prep& prep) {
  const weir_shape& first = prep.shape(0);
  for (uint32_t i = 0; i < prep.inputs(); ++i) {
    const weir_shape& shape = prep.shape(i);
    if (shape.rank < 2) {
      return prep.error().InvalidArgument("Input tensor ", i, " must have rank >= 2, got ", shape.rank);
    }
    if (shape.rank != first.rank) return prep.error().InvalidArgument("All input tensors must have the same rank.");
    if (std::equal(shape.dims, shape.dims + shape.rank - 2, first.dims)) continue;
    return prep.error().InvalidArgument("All input tensors must have the same batch extents, got ", first, " and ",
                                        shape);
  }
  return WEIR_OK;
}

struct TridiagonalMatMulPlan {
  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = CheckTridiagonalBatches(prep); code != WEIR_OK) return code;
    constexpr const char* kNames[] = {"superdiagonal", "main diagonal", "subdiagonal"};
    const weir_shape& rhs = prep.shape(3);
    for (uint32_t i = 0; i < 3; ++i) {
      const int64_t* last = prep.shape(i).dims + rhs.rank - 2;
      if (last[0] != 1 || last[1] != rhs.dims[rhs.rank - 2]) {
        return prep.error().InvalidArgument("Invalid ", kNames[i], " shape.");
      }
    }
    return WEIR_OK;
  }
};

struct TridiagonalSolvePlan {
  bool pivoting = true, perturb = false;

  int32_t Prepare(sdk::Prep& prep) {
    pivoting = prep.node().Bool("partial_pivoting", true);
    perturb = prep.node().Bool("perturb_singular", false);
    if (perturb && !pivoting) {
      return prep.error().InvalidArgument("Setting perturb_singular requires also setting partial_pivoting.");
    }
    if (const int32_t code = CheckTridiagonalBatches(prep); code != WEIR_OK) return code;
    const weir_shape &diagonals = prep.shape(0), &rhs = prep.shape(1);
    const int64_t rows = diagonals.dims[diagonals.rank - 2], n = diagonals.dims[diagonals.rank - 1];
    if (rows != 3) {
      return prep.error().InvalidArgument("Expected diagonals to be provided as a matrix with 3 rows, got ", rows,
                                          " rows.");
    }
    if (n == rhs.dims[rhs.rank - 2]) return WEIR_OK;
    return prep.error().InvalidArgument("Expected the same number of left-hand sides and right-hand sides, got ", n,
                                        " and ", rhs.dims[rhs.rank - 2], ".");
  }
};

/// The real type of a number, and its size.
template <class T>
struct RealOf {
  using Type = T;
};
template <class R>
struct RealOf<std::complex<R>> {
  using Type = R;
};
template <class R>
struct RealOf<Complex<R>> {
  using Type = R;
};
template <class T>
WEIR_HD typename RealOf<T>::Type SizeOfNumber(T x) {
  if constexpr (kIsDeviceComplex<T>) {
    return std::hypot(x.re, x.im);
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::fabs(x);
  } else {
    return std::abs(x);
  }
}

/// A matrix of n rows by Gaussian elimination. An exchange of neighbouring rows fills a second diagonal above the main
/// one. The arrays have n elements each; the caller owns them.
template <class T>
struct TridiagonalFactors {
  int64_t n;
  T *main, *above, *second;
  T* factors;      // the multiple of row i that is taken from row i + 1
  uint8_t* swaps;  // row i and i + 1 change places

  /// False if a pivot is 0 and `perturb` is not set. `diagonals`: [3, n], from the upper one down.
  WEIR_HD bool Make(const T* diagonals, bool pivoting, bool perturb) const {
    const T least(std::numeric_limits<typename RealOf<T>::Type>::min());
    const T* const lower = diagonals + 2 * n;
    for (int64_t i = 0; i < n; ++i) {
      above[i] = diagonals[i];
      main[i] = diagonals[n + i];
      second[i] = T(0);
    }
    for (int64_t i = 0; i < n; ++i) {
      const bool last = i + 1 == n;
      T below = last ? T(0) : lower[i + 1];
      swaps[i] = pivoting && !last && SizeOfNumber(below) > SizeOfNumber(main[i]) ? 1 : 0;
      if (swaps[i] != 0) {
        const T pivot = below, next = main[i + 1];
        below = main[i];
        main[i] = pivot;
        main[i + 1] = above[i];
        above[i] = next;
        if (i + 2 < n) {
          second[i] = above[i + 1];
          above[i + 1] = T(0);
        }
      }
      if (main[i] == T(0)) {
        if (!perturb) return false;
        main[i] = least;
      }
      if (last) break;
      factors[i] = below / main[i];
      main[i + 1] = main[i + 1] - factors[i] * above[i];
      if (i + 2 < n) above[i + 1] = above[i + 1] - factors[i] * second[i];
    }
    return true;
  }

  /// Solves for `count` neighbouring columns of right-hand sides at y, whose rows are `step` apart, in place.
  WEIR_HD void Solve(T* y, int64_t step, int64_t count) const {
    for (int64_t i = 0; i + 1 < n; ++i) {
      T *const row = y + i * step, *const next = row + step;
      for (int64_t c = 0; c < count; ++c) {
        const T upper = swaps[i] != 0 ? next[c] : row[c], lower = swaps[i] != 0 ? row[c] : next[c];
        row[c] = upper;
        next[c] = lower - factors[i] * upper;
      }
    }
    for (int64_t i = n; i-- > 0;) {
      T* const row = y + i * step;
      for (int64_t c = 0; c < count; ++c) {
        T value = row[c];
        if (i + 1 < n) value = value - above[i] * row[step + c];
        if (i + 2 < n) value = value - second[i] * row[2 * step + c];
        row[c] = value / main[i];
      }
    }
  }
};

/// Row i of the product of a matrix and [n, columns] numbers, at column c.
template <class T>
WEIR_HD T TridiagonalRow(const T* upper, const T* middle, const T* lower, const T* x, int64_t n, int64_t columns,
                         int64_t i, int64_t c) {
  T sum = middle[i] * x[i * columns + c];
  if (i + 1 < n) sum = sum + upper[i] * x[(i + 1) * columns + c];
  if (i > 0) sum = sum + lower[i] * x[(i - 1) * columns + c];
  return sum;
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_TRIDIAGONAL_H_
