// Lu, and what follows from it: inverses, determinants, solutions of linear systems.
#include <cmath>

#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/kernels/matrices.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Env;
using sdk::View;

template <class T>
T DirectionOf(T x) {
  return x > 0 ? T(1) : x < 0 ? T(-1) : x;
}
template <class R>
std::complex<R> DirectionOf(std::complex<R> x) {
  const R size = std::abs(x);
  return size == 0 ? std::complex<R>() : x / size;
}

/// A determinant as its sign (of complex ones, its direction) and the logarithm of its magnitude.
template <class T>
struct SignedLog {
  T sign = T(1);
  decltype(std::abs(T())) log = 0;

  explicit SignedLog(Dense<T> matrix) {
    const LuFactors<T> factors(std::move(matrix));
    sign = T(static_cast<float>(factors.sign));
    for (int64_t i = 0; i < factors.lu.rows; ++i) {
      const T pivot = factors.lu(i, i);
      sign *= DirectionOf(pivot);
      log += std::log(std::abs(pivot));
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
      const LuFactors<T> factors(batch.Read(input.data(), i));
      if (!factors.Invertible()) return env.error().InvalidArgument("Input is not invertible.");
      factors.lu.Store(lu.data() + i * batch.size());
      for (int64_t row = 0; row < batch.rows; ++row) {
        p[i * batch.rows + row] = static_cast<I>(factors.order[static_cast<size_t>(row)]);
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
      const Dense<C> given = batch.Read(input.data(), i);
      const LuFactors<C> factors(adjoint ? given.Adjoint() : given);
      if (!factors.Invertible()) return env.error().InvalidArgument("Input is not invertible.");
      factors.Solve(Dense<C>::Identity(batch.rows, batch.rows)).Store(output.data() + i * batch.size());
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
      const SignedLog<T> determinant(batch.Read(input.data(), i));
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
      const SignedLog<T> determinant(batch.Read(input.data(), i));
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
    const int32_t code = functors::CheckSystem(prep.error(), batch, prep.shape(0), right, prep.shape(1));
    if (code != WEIR_OK) return code;
    right_columns = right.columns;
    batch.Split(prep);
    return WEIR_OK;
  }
  template <class T>
  int32_t Run(const Env& env, View<const T> matrix, View<const T> rhs, View<T> output) const {
    const auto [begin, end] = env.Range(batch.count);
    for (int64_t i = begin; i < end; ++i) {
      const Dense<T> given = batch.Read(matrix.data(), i);
      const LuFactors<T> factors(adjoint ? given.Adjoint() : given);
      if (!factors.Invertible()) return env.error().InvalidArgument("Input matrix is not invertible.");
      const int64_t at = i * batch.rows * right_columns;
      factors.Solve(Dense<T>(batch.rows, right_columns, rhs.data() + at)).Store(output.data() + at);
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
