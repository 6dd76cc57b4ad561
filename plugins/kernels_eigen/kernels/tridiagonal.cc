// Matrices with three diagonals: TridiagonalMatMul, TridiagonalSolve.
#include <algorithm>
#include <complex>
#include <limits>
#include <utility>
#include <vector>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/function_families.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::View;

template <class T>
struct PartOf {
  using Type = T;
};
template <class R>
struct PartOf<std::complex<R>> {
  using Type = R;
};

/// Ok if all inputs have one rank, at least 2, and the extents of input 0 before the last two.
int32_t CheckBatches(const sdk::Prep& prep) {
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

struct TridiagonalMatMul {
  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = CheckBatches(prep); code != WEIR_OK) return code;
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
  template <class T>
  void Run(View<const T> upper, View<const T> middle, View<const T> lower, View<const T> rhs, View<T> output) const {
    if (output.size() == 0) return;
    const int64_t n = rhs.dim(rhs.rank() - 2), columns = rhs.dim(rhs.rank() - 1);
    for (int64_t first = 0; first < output.size() / columns; first += n) {
      const T *u = upper.data() + first, *m = middle.data() + first, *l = lower.data() + first;
      const T* x = rhs.data() + first * columns;
      T* y = output.data() + first * columns;
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t c = 0; c < columns; ++c) {
          T sum = m[i] * x[i * columns + c];
          if (i + 1 < n) sum += u[i] * x[(i + 1) * columns + c];
          if (i > 0) sum += l[i] * x[(i - 1) * columns + c];
          y[i * columns + c] = sum;
        }
      }
    }
  }
};

/// Gaussian elimination; exchanges of neighbouring rows fill a second diagonal above the main one.
struct TridiagonalSolve {
  bool pivoting = true, perturb = false;

  int32_t Prepare(sdk::Prep& prep) {
    pivoting = prep.node().Bool("partial_pivoting", true);
    perturb = prep.node().Bool("perturb_singular", false);
    if (perturb && !pivoting) {
      return prep.error().InvalidArgument("Setting perturb_singular requires also setting partial_pivoting.");
    }
    if (const int32_t code = CheckBatches(prep); code != WEIR_OK) return code;
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

  template <class T>
  void Run(View<const T> diagonals, View<const T> rhs, View<T> output) const {
    if (output.size() == 0) return;
    const int64_t n = rhs.dim(rhs.rank() - 2), columns = rhs.dim(rhs.rank() - 1);
    std::copy_n(rhs.data(), rhs.size(), output.data());
    std::vector<T> main(static_cast<size_t>(n)), above(main.size()), second(main.size());
    for (int64_t i = 0; i < output.size() / (n * columns); ++i) {
      const T* from = diagonals.data() + 3 * n * i;
      std::copy_n(from, n, above.begin());
      std::copy_n(from + n, n, main.begin());
      std::fill(second.begin(), second.end(), T(0));
      T* y = output.data() + i * n * columns;
      if (!Solve(main.data(), above.data(), second.data(), from + 2 * n, y, n, columns)) {
        std::fill_n(y, n * columns, T(std::numeric_limits<typename PartOf<T>::Type>::quiet_NaN()));
      }
    }
  }

  /// False if a pivot is 0. `lower[i]` is the element of row i left of the main diagonal.
  template <class T>
  bool Solve(T* main, T* above, T* second, const T* lower, T* y, int64_t n, int64_t columns) const {
    const T least(std::numeric_limits<typename PartOf<T>::Type>::min());
    for (int64_t i = 0; i + 1 < n; ++i) {
      T below = lower[i + 1];
      T *row = y + i * columns, *next = row + columns;
      if (pivoting && std::abs(below) > std::abs(main[i])) {
        std::swap(main[i], below);
        std::swap(above[i], main[i + 1]);
        if (i + 2 < n) std::swap(second[i], above[i + 1]);
        std::swap_ranges(row, row + columns, next);
      }
      if (main[i] == T(0)) {
        if (!perturb) return false;
        main[i] = least;
      }
      const T factor = below / main[i];
      main[i + 1] -= factor * above[i];
      if (i + 2 < n) above[i + 1] -= factor * second[i];
      for (int64_t c = 0; c < columns; ++c) next[c] -= factor * row[c];
    }
    if (main[n - 1] == T(0)) {
      if (!perturb) return false;
      main[n - 1] = least;
    }
    for (int64_t i = n; i-- > 0;) {
      T* row = y + i * columns;
      for (int64_t c = 0; c < columns; ++c) {
        T value = row[c];
        if (i + 1 < n) value -= above[i] * row[columns + c];
        if (i + 2 < n) value -= second[i] * row[2 * columns + c];
        row[c] = value / main[i];
      }
    }
    return true;
  }
};

}  // namespace

void AddTridiagonal(sdk::KernelTable& k) {
  k.Add<TridiagonalMatMul>("TridiagonalMatMul", kFloat + kComplex).Class(WEIR_CLASS_GATHER, 5);
  k.Add<TridiagonalSolve>("TridiagonalSolve", kFloat + kComplex).Class(WEIR_CLASS_SORT, 10);
}

}  // namespace weir::kernels_eigen
