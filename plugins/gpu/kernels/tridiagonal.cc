// Matrices with three diagonals: TridiagonalMatMul, TridiagonalSolve. A thread eliminates in a matrix, then one solves
// for each right-hand side.
#include "plugins/functors/tridiagonal.h"

#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;

constexpr unsigned kTridiagonals = kFloats | kWide | kComplexes;

template <class T>
Ptr<const T> Typed(const AnyInput& view) {
  return Ptr<const T>(static_cast<const T*>(view.data()));
}
template <class T>
Ptr<T> Typed(const AnyOutput& view) {
  return Ptr<T>(static_cast<T*>(view.data()));
}

template <class T>
struct TridiagonalMatMulWork {
  Ptr<const T> upper, middle, lower, x;
  Ptr<T> y;
  int64_t n, columns;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t c = i % columns, row = i / columns, first = row / n * n;
    y[i] = functors::TridiagonalRow(upper.get() + first, middle.get() + first, lower.get() + first,
                                    x.get() + first * columns, n, columns, row - first, c);
  }
};
struct TridiagonalMatMul : functors::TridiagonalMatMulPlan {
  int32_t Run(Env& env, AnyInput upper, AnyInput middle, AnyInput lower, AnyInput rhs, AnyOutput y) const {
    if (y.size() == 0) return WEIR_OK;
    const weir_shape& shape = rhs.shape();
    int32_t code = WEIR_OK;
    WithStorage<kTridiagonals>(y.dtype(), [&](auto storage) {
      using T = typename decltype(storage)::C;
      code = Launch(env, y.size(),
                    TridiagonalMatMulWork<T>{Typed<T>(upper), Typed<T>(middle), Typed<T>(lower), Typed<T>(rhs),
                                             Typed<T>(y), shape.dims[shape.rank - 2], shape.dims[shape.rank - 1]});
    });
    return code;
  }
};

/// The factors of all matrices, and behind their exchanges whether a matrix has them.
template <class T>
struct FactorsOfAll {
  Ptr<T> numbers;      // [matrices, 4, n]
  Ptr<uint8_t> swaps;  // [matrices, n + 1]
  int64_t n;
  WEIR_GPU_FN functors::TridiagonalFactors<T> Of(int64_t matrix) const {
    T* const at = numbers.get() + matrix * 4 * n;
    return {n, at, at + n, at + 2 * n, at + 3 * n, swaps.get() + matrix * (n + 1)};
  }
};
template <class T>
struct EliminateWork {
  FactorsOfAll<T> factors;
  Ptr<const T> diagonals;
  bool pivoting, perturb;
  WEIR_GPU_FN void operator()(int64_t matrix) const {
    const functors::TridiagonalFactors<T> own = factors.Of(matrix);
    own.swaps[own.n] = own.Make(diagonals.get() + matrix * 3 * own.n, pivoting, perturb) ? 1 : 0;
  }
};
template <class T>
struct SubstituteWork {
  FactorsOfAll<T> factors;
  Ptr<T> y;
  int64_t columns;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const functors::TridiagonalFactors<T> own = factors.Of(i / columns);
    T* const column = y.get() + i / columns * own.n * columns + i % columns;
    if (own.swaps[own.n] != 0) {
      own.Solve(column, columns, 1);
      return;
    }
    const T nan(std::numeric_limits<typename functors::RealOf<T>::Type>::quiet_NaN());
    for (int64_t k = 0; k < own.n; ++k) column[k * columns] = nan;
  }
};
struct TridiagonalSolve : functors::TridiagonalSolvePlan {
  int64_t matrices = 0, n = 0, columns = 0;

  int32_t Prepare(sdk::Prep& prep) {
    const int32_t code = TridiagonalSolvePlan::Prepare(prep);
    const weir_shape& rhs = prep.shape(1);
    if (code != WEIR_OK || prep.size(1) == 0) return code;
    n = rhs.dims[rhs.rank - 2];
    columns = rhs.dims[rhs.rank - 1];
    matrices = prep.size(1) / (n * columns);
    const int64_t bytes = 4 * n * int64_t{sdk::SizeOf(prep.input(0).dtype)} + n + 1;  // of a matrix
    prep.Scratch(static_cast<uint64_t>(matrices * bytes));
    return WEIR_OK;
  }
  int32_t Run(Env& env, AnyInput diagonals, AnyInput rhs, AnyOutput y, sdk::Scratch<char> scratch) const {
    if (y.size() == 0) return WEIR_OK;
    const uint64_t bytes = static_cast<uint64_t>(y.size()) * sdk::SizeOf(y.dtype());
    int32_t code = Copy(env, y.data(), rhs.data(), bytes);
    if (code != WEIR_OK) return code;
    WithStorage<kTridiagonals>(y.dtype(), [&](auto storage) {
      using T = typename decltype(storage)::C;
      auto* const numbers = reinterpret_cast<T*>(scratch.data());
      const FactorsOfAll<T> factors{numbers, reinterpret_cast<uint8_t*>(numbers + matrices * 4 * n), n};
      code = Launch(env, matrices, EliminateWork<T>{factors, Typed<T>(diagonals), pivoting, perturb});
      if (code == WEIR_OK) code = Launch(env, matrices * columns, SubstituteWork<T>{factors, Typed<T>(y), columns});
    });
    return code;
  }
};

}  // namespace

void AddTridiagonal(sdk::KernelTable& k) {
  k.Add<TridiagonalMatMul>("TridiagonalMatMul").Restrict("T", BitsOf(kTridiagonals)).Class(WEIR_CLASS_GATHER, 5);
  k.Add<TridiagonalSolve>("TridiagonalSolve").Restrict("T", BitsOf(kTridiagonals)).Class(WEIR_CLASS_SORT, 10);
}

}  // namespace weir::gpu
