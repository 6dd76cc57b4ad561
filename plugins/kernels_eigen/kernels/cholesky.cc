// Cholesky and CholeskyGrad.
#include <Eigen/Cholesky>
#include <limits>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/matrices.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Env;
using sdk::View;

struct Cholesky {
  MatrixBatch batch;

  int32_t Prepare(sdk::Prep& prep) { return batch.PlanSquare(prep); }
  template <class T>
  void Run(const Env& env, View<const T> input, View<T> output) const {
    const auto [begin, end] = env.Range(batch.count);
    for (int64_t i = begin; i < end; ++i) {
      const Eigen::LLT<Matrix<T>> factor(batch.Read(input.data() + i * batch.size()));
      Matrix<T> lower = factor.matrixL();
      if (factor.info() != Eigen::Success) {
        lower.template triangularView<Eigen::Lower>().setConstant(T(std::numeric_limits<double>::quiet_NaN()));
      }
      Write(lower, output.data() + i * batch.size());
    }
  }
};

/// Half of the symmetric part of l^-T phi(l^T dl) l^-1, where phi takes the lower triangle with half of the diagonal.
struct CholeskyGrad {
  MatrixBatch batch;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = batch.PlanSquare(prep); code != WEIR_OK) return code;
    if (sdk::SameShape(prep.shape(0), prep.shape(1))) return WEIR_OK;
    return prep.error().InvalidArgument("Inputs (L and grad) must have the same shape.");
  }
  template <class T>
  void Run(const Env& env, View<const T> l, View<const T> grad, View<T> output) const {
    const auto [begin, end] = env.Range(batch.count);
    for (int64_t i = begin; i < end; ++i) {
      const Matrix<T> factor = batch.Read(l.data() + i * batch.size());
      const Matrix<T> slope = batch.Read(grad.data() + i * batch.size());
      const auto lower = factor.template triangularView<Eigen::Lower>();
      Matrix<T> middle = Matrix<T>(lower).transpose() * Matrix<T>(slope.template triangularView<Eigen::Lower>());
      middle.diagonal() *= T(0.5);
      middle = Matrix<T>(middle.template triangularView<Eigen::Lower>());
      if ((factor.diagonal().array() == T(0)).any()) {
        middle.setConstant(std::numeric_limits<T>::quiet_NaN());
      } else {
        lower.transpose().solveInPlace(middle);
        lower.template solveInPlace<Eigen::OnTheRight>(middle);
      }
      Write(T(0.5) * (middle + middle.transpose()), output.data() + i * batch.size());
    }
  }
};

}  // namespace

void AddCholesky(sdk::KernelTable& k) {
  k.Add<Cholesky>("Cholesky", kFloat + kComplex).Class(WEIR_CLASS_GEMM);
  k.Add<Cholesky>("BatchCholesky", kFloat).Class(WEIR_CLASS_GEMM);
  k.Add<CholeskyGrad>("CholeskyGrad", kFloat).Class(WEIR_CLASS_GEMM);
  k.Add<CholeskyGrad>("BatchCholeskyGrad", kFloat).Class(WEIR_CLASS_GEMM);
}

}  // namespace weir::kernels_eigen
