// Eigenvalues and eigenvectors of symmetric and Hermitian matrices, given by their lower triangles.
#include <Eigen/Eigenvalues>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/matrices.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Env;
using sdk::View;

constexpr const char* kNoEigenvalues =
    "Self-adjoint eigen decomposition was not successful. The input might not be valid.";

template <class T>
using SelfAdjointSolver = Eigen::SelfAdjointEigenSolver<Matrix<T>>;

/// False if there are no eigenvalues: the solver does not converge, or a number that it reads is not finite.
template <class T>
bool SolveSelfAdjoint(const Eigen::Map<const Matrix<T>>& matrix, bool vectors, SelfAdjointSolver<T>* solver) {
  const Matrix<T> lower = matrix.template triangularView<Eigen::Lower>();
  if (lower.rows() > 1 && !lower.allFinite()) return false;
  solver->compute(lower, vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  return solver->info() == Eigen::Success;
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
      SelfAdjointSolver<T> solver;
      if (!SolveSelfAdjoint<T>(batch.Read(input.data() + i * batch.size()), vectors, &solver)) {
        return env.error().InvalidArgument(kNoEigenvalues);
      }
      Write(solver.eigenvalues().template cast<T>(), e.data() + i * batch.rows);
      if (vectors) Write(solver.eigenvectors(), v.data() + i * batch.size());
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
      SelfAdjointSolver<T> solver;
      if (!SolveSelfAdjoint<T>(batch.Read(input.data() + i * batch.size()), true, &solver)) {
        return env.error().InvalidArgument(kNoEigenvalues);
      }
      T* const to = output.data() + i * (batch.size() + batch.rows);
      Write(solver.eigenvalues(), to);
      Write(solver.eigenvectors(), to + batch.rows);
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
