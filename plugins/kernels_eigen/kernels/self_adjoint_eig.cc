// Eigenvalues and eigenvectors of symmetric and Hermitian matrices, given by their lower triangles.
#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/kernels/matrices.h"
#include "plugins/kernels_eigen/kernels/svd.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Env;
using sdk::View;

constexpr const char* kNoEigenvalues =
    "Self-adjoint eigen decomposition was not successful. The input might not be valid.";

/// The pairs of matrix i; they do not converge if there are none.
template <class T>
EigenPairs<WideOf<T>> PairsOf(const MatrixBatch& batch, const View<const T>& input, int64_t i) {
  return SelfAdjointPairs(Dense<WideOf<T>>(batch.rows, batch.rows, input.data() + i * batch.size()));
}

struct SelfAdjointEig {
  MatrixBatch batch;
  bool vectors = true;

  int32_t Prepare(sdk::Prep& prep) {
    vectors = prep.node().Bool("compute_v", true);
    return batch.PlanSquare(prep);
  }
  template <class T>
  int32_t Run(const Env& env, View<const T> input, View<T> e, View<T> v) const {
    const auto [begin, end] = env.Range(batch.count);
    for (int64_t i = begin; i < end; ++i) {
      const auto pairs = PairsOf(batch, input, i);
      if (!pairs.converged) return env.error().InvalidArgument(kNoEigenvalues);
      for (int64_t k = 0; k < batch.rows; ++k) {
        e[i * batch.rows + k] = static_cast<T>(pairs.values[static_cast<size_t>(k)]);
      }
      if (vectors) pairs.vectors.Store(v.data() + i * batch.size());
    }
    return WEIR_OK;
  }
};

/// The eigenvalues in a row above the eigenvectors.
struct StackedEig {
  MatrixBatch batch;

  int32_t Prepare(sdk::Prep& prep) { return batch.PlanSquare(prep); }
  template <class T>
  int32_t Run(const Env& env, View<const T> input, View<T> output) const {
    const auto [begin, end] = env.Range(batch.count);
    for (int64_t i = begin; i < end; ++i) {
      const auto pairs = PairsOf(batch, input, i);
      if (!pairs.converged) return env.error().InvalidArgument(kNoEigenvalues);
      T* const to = output.data() + i * (batch.size() + batch.rows);
      for (int64_t k = 0; k < batch.rows; ++k) to[k] = static_cast<T>(pairs.values[static_cast<size_t>(k)]);
      pairs.vectors.Store(to + batch.rows);
    }
    return WEIR_OK;
  }
};

}  // namespace

void AddSelfAdjointEig(sdk::KernelTable& k) {
  k.Add<SelfAdjointEig>("SelfAdjointEigV2", kFloat + kComplex).Class(WEIR_CLASS_GEMM, 10);
  k.Add<SelfAdjointEig>("BatchSelfAdjointEigV2", kFloat).Class(WEIR_CLASS_GEMM, 10);
  k.Add<StackedEig>("SelfAdjointEig", kFloat).Class(WEIR_CLASS_GEMM, 10);
  k.Add<StackedEig>("BatchSelfAdjointEig", kFloat).Class(WEIR_CLASS_GEMM, 10);
}

}  // namespace weir::kernels_eigen
