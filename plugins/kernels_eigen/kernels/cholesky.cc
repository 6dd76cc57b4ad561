// Cholesky and CholeskyGrad.
#include <limits>

#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/kernels/matrices.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Env;
using sdk::View;

/// The lower triangle, with the diagonal times `scale`; zeros above.
template <class T>
void KeepLowerTriangle(Dense<T>* x, T scale) {
  for (int64_t i = 0; i < x->rows; ++i) {
    (*x)(i, i) *= scale;
    std::fill(x->row(i) + i + 1, x->row(i) + x->columns, T(0));
  }
}

struct Cholesky {
  MatrixBatch batch;

  int32_t Prepare(sdk::Prep& prep) { return batch.PlanSquare(prep); }
  template <class T>
  void Run(const Env& env, View<const T> input, View<T> output) const {
    const auto [begin, end] = env.Range(batch.count);
    for (int64_t i = begin; i < end; ++i) {
      Dense<T> factor = batch.Read(input.data(), i);
      if (!FactorCholesky(&factor)) {
        std::fill(factor.data.begin(), factor.data.end(), T(std::numeric_limits<float>::quiet_NaN()));
        KeepLowerTriangle(&factor, T(1));
      }
      factor.Store(output.data() + i * batch.size());
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
      Dense<T> factor = batch.Read(l.data(), i), slope = batch.Read(grad.data(), i);
      KeepLowerTriangle(&factor, T(1));
      KeepLowerTriangle(&slope, T(1));
      const Dense<T> turned = factor.Adjoint();
      Dense<T> middle = turned * slope;
      KeepLowerTriangle(&middle, T(0.5));
      SolveTriangle(turned, false, &middle);
      Dense<T> result = middle.Adjoint();
      SolveTriangle(turned, false, &result);
      const Dense<T> mirrored = result.Adjoint();
      T* const to = output.data() + i * batch.size();
      for (size_t k = 0; k < result.data.size(); ++k) to[k] = T(0.5) * (result.data[k] + mirrored.data[k]);
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
