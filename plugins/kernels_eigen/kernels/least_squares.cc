// MatrixSolveLs: by normal equations, or by singular values.
#include <limits>

#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/kernels/matrices.h"
#include "plugins/kernels_eigen/kernels/svd.h"

namespace weir::kernels_eigen {
namespace {

using sdk::View;

/// The shortest of the x that make |a x - b| least. Singular values that rounding cannot tell from 0 count as 0.
template <class T>
Dense<T> ShortestSolution(const Dense<T>& a, const Dense<T>& b) {
  using Wide = WideOf<T>;
  const Singular<Wide> svd = Decompose(Dense<Wide>(a.rows, a.columns, a.data.data()), false);
  const double rounding = static_cast<double>(std::numeric_limits<decltype(std::abs(T()))>::epsilon());
  const double least = rounding * static_cast<double>(std::max(a.rows, a.columns)) * svd.s[0];
  Dense<Wide> x = svd.u.Adjoint() * Dense<Wide>(b.rows, b.columns, b.data.data());
  for (int64_t i = 0; i < x.rows; ++i) {
    const double s = svd.s[static_cast<size_t>(i)];
    for (int64_t j = 0; j < x.columns; ++j) x(i, j) = s > least ? x(i, j) / s : Wide(0);
  }
  x = svd.v * x;
  return {x.rows, x.columns, x.data.data()};
}

struct LeastSquares {
  MatrixBatch batch;
  int64_t right_columns = 0;
  bool fast = true;

  int32_t Prepare(sdk::Prep& prep) {
    fast = prep.node().Bool("fast", true);
    MatrixBatch right;
    if (prep.shape(2).rank != 0) {
      return prep.error().InvalidArgument("l2_regularizer must be scalar, got shape ", prep.shape(2));
    }
    if (const int32_t code = batch.Plan(prep, 0); code != WEIR_OK) return code;
    if (const int32_t code = right.Plan(prep, 1); code != WEIR_OK) return code;
    const weir_shape &a = prep.shape(0), &b = prep.shape(1);
    if (!sdk::SameShape({a.rank - 2, 0, a.dims}, {b.rank - 2, 0, b.dims})) {
      return prep.error().InvalidArgument("All input tensors must have the same outer dimensions.");
    }
    if (batch.rows != right.rows) return prep.error().InvalidArgument("Input matrix and rhs are incompatible.");
    right_columns = right.columns;
    return WEIR_OK;
  }

  template <class T>
  int32_t Run(sdk::Env& env, View<const T> matrix, View<const T> rhs, View<const double> l2_regularizer,
              View<T> output) const {
    const double weight = l2_regularizer[0];
    if (!(weight >= 0)) return env.error().InvalidArgument("l2_regularizer must be >= 0.");
    for (int64_t i = 0; i < batch.count; ++i) {
      T* const to = output.data() + i * batch.columns * right_columns;
      if (batch.size() == 0) {
        std::fill_n(to, batch.columns * right_columns, T(0));
        continue;
      }
      const Dense<T> a = batch.Read(matrix.data(), i);
      const Dense<T> b(batch.rows, right_columns, rhs.data() + i * batch.rows * right_columns);
      if (!fast) {
        ShortestSolution(a, b).Store(to);
        continue;
      }
      const bool tall = batch.rows >= batch.columns;
      const Dense<T> adjoint = a.Adjoint();
      Dense<T> gramian = tall ? adjoint * a : a * adjoint;
      for (int64_t k = 0; k < gramian.rows; ++k) gramian(k, k) += T(weight);
      if (!FactorCholesky(&gramian)) {
        return env.error().InvalidArgument(
            "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a larger "
            "l2_regularizer > 0.");
      }
      Dense<T> x = tall ? adjoint * b : b;
      SolveTriangle(gramian, true, &x);
      SolveTriangle(gramian.Adjoint(), false, &x);
      (tall ? x : adjoint * x).Store(to);
    }
    return WEIR_OK;
  }
};

}  // namespace

void AddLeastSquares(sdk::KernelTable& k) {
  k.Add<LeastSquares>("MatrixSolveLs", kFloat + kComplex).Class(WEIR_CLASS_GEMM);
  k.Add<LeastSquares>("BatchMatrixSolveLs", kFloat).Class(WEIR_CLASS_GEMM);
}

}  // namespace weir::kernels_eigen
