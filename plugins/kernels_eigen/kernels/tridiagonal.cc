// Matrices with three diagonals: TridiagonalMatMul, TridiagonalSolve.
#include "plugins/functors/tridiagonal.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/function_families.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::View;

struct TridiagonalMatMul : functors::TridiagonalMatMulPlan {
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
          y[i * columns + c] = functors::TridiagonalRow(u, m, l, x, n, columns, i, c);
        }
      }
    }
  }
};

struct TridiagonalSolve : functors::TridiagonalSolvePlan {
  template <class T>
  void Run(View<const T> diagonals, View<const T> rhs, View<T> output) const {
    if (output.size() == 0) return;
    const int64_t n = rhs.dim(rhs.rank() - 2), columns = rhs.dim(rhs.rank() - 1);
    std::copy_n(rhs.data(), rhs.size(), output.data());
    std::vector<T> memory(static_cast<size_t>(4 * n));
    std::vector<uint8_t> swaps(static_cast<size_t>(n));
    T* const at = memory.data();
    const functors::TridiagonalFactors<T> factors{n, at, at + n, at + 2 * n, at + 3 * n, swaps.data()};
    for (int64_t i = 0; i < output.size() / (n * columns); ++i) {
      T* const y = output.data() + i * n * columns;
      if (factors.Make(diagonals.data() + 3 * n * i, pivoting, perturb)) {
        factors.Solve(y, columns, columns);
      } else {
        std::fill_n(y, n * columns, T(std::numeric_limits<typename functors::RealOf<T>::Type>::quiet_NaN()));
      }
    }
  }
};

}  // namespace

void AddTridiagonal(sdk::KernelTable& k) {
  k.Add<TridiagonalMatMul>("TridiagonalMatMul", kFloat + kComplex).Class(WEIR_CLASS_GATHER, 5);
  k.Add<TridiagonalSolve>("TridiagonalSolve", kFloat + kComplex).Class(WEIR_CLASS_SORT, 10);
}

}  // namespace weir::kernels_eigen
