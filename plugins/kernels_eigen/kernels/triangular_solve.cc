// MatrixTriangularSolve.
#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/kernels/matrices.h"
#include "sdk/cpp/broadcast.h"

namespace weir::kernels_eigen {
namespace {

using sdk::View;

struct TriangularSolve : functors::TriangularPlan {
  sdk::Broadcast<2> batches;

  int32_t Prepare(sdk::Prep& prep) {
    const int32_t code = Plan(prep);
    return code != WEIR_OK || empty ? code : PlanBatches(prep, &batches);
  }

  template <class T>
  void Run(View<const T> matrix, View<const T> rhs, View<T> output) const {
    if (empty) return;
    T* to = output.data();
    batches.ForRuns(0, batches.runs, [&](const std::array<int64_t, 2>& at) {
      for (int64_t i = 0; i < batches.run; ++i, to += n * columns) {
        const Dense<T> given(n, n, matrix.data() + (at[0] + (batches.advances[0] ? i : 0)) * n * n);
        Dense<T> x(n, columns, rhs.data() + (at[1] + (batches.advances[1] ? i : 0)) * n * columns);
        if (adjoint) {
          SolveTriangle(given.Adjoint(), !lower, &x);
        } else {
          SolveTriangle(given, lower, &x);
        }
        x.Store(to);
      }
      return true;
    });
  }
};

}  // namespace

void AddTriangularSolve(sdk::KernelTable& k) {
  k.Add<TriangularSolve>("MatrixTriangularSolve", kFloat + kComplex).Class(WEIR_CLASS_GEMM);
  k.Add<TriangularSolve>("BatchMatrixTriangularSolve", kFloat).Class(WEIR_CLASS_GEMM);
}

}  // namespace weir::kernels_eigen
