// MatrixSolveLs: by normal equations, or by a complete orthogonal decomposition.
#include <Eigen/Cholesky>
#include <Eigen/QR>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/matrices.h"

namespace weir::kernels_eigen {
namespace {

using sdk::View;

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
      const auto a = batch.Read(matrix.data() + i * batch.size());
      const Eigen::Map<const Matrix<T>> b(rhs.data() + i * batch.rows * right_columns, batch.rows, right_columns);
      if (!fast) {
        Write(Matrix<T>(a.completeOrthogonalDecomposition().solve(b)), to);
        continue;
      }
      const bool tall = batch.rows >= batch.columns;
      const int64_t n = batch.inner();
      Matrix<T> gramian = Matrix<T>::Zero(n, n);
      gramian.diagonal().setConstant(T(weight));
      if (tall) {
        gramian += a.adjoint() * a;
      } else {
        gramian += a * a.adjoint();
      }
      const Eigen::LLT<Matrix<T>> factor(gramian);
      if (factor.info() != Eigen::Success) {
        return env.error().InvalidArgument(
            "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a larger "
            "l2_regularizer > 0.");
      }
      if (tall) {
        Write(factor.solve(Matrix<T>(a.adjoint() * b)), to);
      } else {
        Write(a.adjoint() * Matrix<T>(factor.solve(b)), to);
      }
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
