// Lu, and what follows from it: inverses, determinants, solutions of linear systems.
#include <Eigen/LU>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/matrices.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Env;
using sdk::View;

template <class T>
using LuFactors = Eigen::PartialPivLU<Matrix<T>>;

/// True if all pivots are numbers other than 0.
template <class T>
bool IsInvertible(const LuFactors<T>& lu) {
  const auto pivots = lu.matrixLU().diagonal();
  for (Eigen::Index i = 0; i < pivots.size(); ++i) {
    if (!(std::abs(pivots[i]) > 0)) return false;
  }
  return true;
}

template <class T>
T SignOf(T x) {
  return x > 0 ? T(1) : x < 0 ? T(-1) : x;
}
template <class R>
std::complex<R> SignOf(std::complex<R> x) {
  const R size = std::abs(x);
  return size == 0 ? std::complex<R>() : x / size;
}

/// A determinant as its sign (of complex ones, its direction) and the logarithm of its magnitude.
template <class T>
struct SignedLog {
  T sign = T(1);
  decltype(std::abs(T())) log = 0;

  explicit SignedLog(const Eigen::Map<const Matrix<T>>& matrix) {
    if (matrix.size() == 0) return;
    const LuFactors<T> lu(matrix);
    const auto pivots = lu.matrixLU().diagonal();
    sign = T(static_cast<float>(lu.permutationP().determinant()));
    for (Eigen::Index i = 0; i < pivots.size(); ++i) {
      sign *= SignOf(T(pivots[i]));
      log += std::log(std::abs(pivots[i]));
    }
  }
};

struct Lu {
  MatrixBatch batch;

  int32_t Prepare(sdk::Prep& prep) {
    if (prep.shape(0).rank < 2) {
      return prep.error().InvalidArgument("Input tensor must have rank >= 2, got ", prep.shape(0).rank);
    }
    return batch.PlanSquare(prep);
  }
  template <class T, class I>
  int32_t Run(const Env& env, View<const T> input, View<T> lu, View<I> p) const {
    const auto [begin, end] = env.Range(batch.count);
    for (int64_t i = begin; i < end; ++i) {
      const LuFactors<T> factors(batch.Read(input.data() + i * batch.size()));
      if (!IsInvertible<T>(factors)) return env.error().InvalidArgument("Input is not invertible.");
      Write(factors.matrixLU(), lu.data() + i * batch.size());
      const auto& places = factors.permutationP().indices();
      for (int64_t row = 0; row < batch.rows; ++row) {
        p[i * batch.rows + static_cast<int64_t>(places[row])] = static_cast<I>(row);
      }
    }
    return WEIR_OK;
  }
};

struct MatrixInverse {
  MatrixBatch batch;
  bool adjoint = false;

  int32_t Prepare(sdk::Prep& prep) {
    adjoint = prep.node().Bool("adjoint");
    return batch.PlanSquare(prep);
  }
  template <class T>
  int32_t Run(const Env& env, View<const T> input, View<T> output) const {
    using C = sdk::Compute<T>;
    const auto [begin, end] = env.Range(batch.count);
    for (int64_t i = begin; i < end; ++i) {
      Matrix<C> given = batch.Read(input.data() + i * batch.size());
      if (adjoint) given.adjointInPlace();
      const LuFactors<C> lu(given);
      if (!IsInvertible<C>(lu)) return env.error().InvalidArgument("Input is not invertible.");
      Write(lu.inverse(), output.data() + i * batch.size());
    }
    return WEIR_OK;
  }
};

struct MatrixDeterminant {
  MatrixBatch batch;

  int32_t Prepare(sdk::Prep& prep) { return batch.PlanSquare(prep); }
  template <class T>
  void Run(const Env& env, View<const T> input, View<T> output) const {
    const auto [begin, end] = env.Range(batch.count);
    for (int64_t i = begin; i < end; ++i) {
      const SignedLog<T> determinant(batch.Read(input.data() + i * batch.size()));
      output[i] = determinant.sign * std::exp(determinant.log);
    }
  }
};

struct LogMatrixDeterminant {
  MatrixBatch batch;

  int32_t Prepare(sdk::Prep& prep) { return batch.PlanSquare(prep); }
  template <class T>
  void Run(const Env& env, View<const T> input, View<T> sign, View<T> log) const {
    const auto [begin, end] = env.Range(batch.count);
    for (int64_t i = begin; i < end; ++i) {
      const SignedLog<T> determinant(batch.Read(input.data() + i * batch.size()));
      sign[i] = determinant.sign;
      log[i] = T(determinant.log);
    }
  }
};

struct MatrixSolve {
  MatrixBatch batch;
  int64_t right_columns = 0;
  bool adjoint = false;

  int32_t Prepare(sdk::Prep& prep) {
    adjoint = prep.node().Bool("adjoint");
    MatrixBatch right;
    if (const int32_t code = batch.Plan(prep, 0); code != WEIR_OK) return code;
    if (const int32_t code = right.Plan(prep, 1); code != WEIR_OK) return code;
    const weir_shape &a = prep.shape(0), &b = prep.shape(1);
    if (!sdk::SameShape({a.rank - 2, 0, a.dims}, {b.rank - 2, 0, b.dims})) {
      return prep.error().InvalidArgument("All input tensors must have the same outer dimensions.");
    }
    if (batch.rows != batch.columns) {
      return prep.error().InvalidArgument("First input (lhs) must be a square matrix.");
    }
    if (batch.rows != right.rows) return prep.error().InvalidArgument("Input matrix and rhs are incompatible.");
    right_columns = right.columns;
    batch.Split(prep);
    return WEIR_OK;
  }
  template <class T>
  int32_t Run(const Env& env, View<const T> matrix, View<const T> rhs, View<T> output) const {
    const auto [begin, end] = env.Range(batch.count);
    for (int64_t i = begin; i < end; ++i) {
      Matrix<T> given = batch.Read(matrix.data() + i * batch.size());
      if (adjoint) given.adjointInPlace();
      const LuFactors<T> lu(given);
      if (!IsInvertible<T>(lu)) return env.error().InvalidArgument("Input matrix is not invertible.");
      const int64_t at = i * batch.rows * right_columns;
      const Eigen::Map<const Matrix<T>> right(rhs.data() + at, batch.rows, right_columns);
      Write(lu.solve(right), output.data() + at);
    }
    return WEIR_OK;
  }
};

}  // namespace

void AddLu(sdk::KernelTable& k) {
#if defined(WEIR_KERNEL_DTYPES_SHORT)
  constexpr sdk::Types<> kNarrow;
#else
  constexpr sdk::Types<sdk::half> kNarrow;
#endif
  constexpr auto kTypes = kFloat + kComplex;
  k.Add<Lu>("Lu", kTypes, sdk::Attr("output_idx_type", kIndex)).Class(WEIR_CLASS_GEMM);
  k.Add<MatrixInverse>("MatrixInverse", kNarrow + kTypes).Class(WEIR_CLASS_GEMM);
  k.Add<MatrixInverse>("BatchMatrixInverse", kFloat).Class(WEIR_CLASS_GEMM);
  k.Add<MatrixDeterminant>("MatrixDeterminant", kTypes).Class(WEIR_CLASS_GEMM);
  k.Add<MatrixDeterminant>("BatchMatrixDeterminant", kTypes).Class(WEIR_CLASS_GEMM);
  k.Add<LogMatrixDeterminant>("LogMatrixDeterminant", kTypes).Class(WEIR_CLASS_GEMM);
  k.Add<MatrixSolve>("MatrixSolve", kTypes).Class(WEIR_CLASS_GEMM);
  k.Add<MatrixSolve>("BatchMatrixSolve", kFloat).Class(WEIR_CLASS_GEMM);
}

}  // namespace weir::kernels_eigen
