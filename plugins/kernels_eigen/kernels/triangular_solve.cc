// MatrixTriangularSolve.
#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/kernels/matrices.h"
#include "sdk/cpp/broadcast.h"

namespace weir::kernels_eigen {
namespace {

using sdk::View;

struct TriangularSolve {
  int64_t n = 0, columns = 0;
  bool lower = true, adjoint = false, empty = false;
  sdk::Broadcast<2> batches;

  int32_t Prepare(sdk::Prep& prep) {
    lower = prep.node().Bool("lower", true);
    adjoint = prep.node().Bool("adjoint");
    const weir_shape &a = prep.shape(0), &b = prep.shape(1), &out = prep.output(0).shape;
    if (a.rank < 2) return prep.error().InvalidArgument("In[0] ndims must be >= 2: ", a.rank);
    if (b.rank < 2) return prep.error().InvalidArgument("In[1] ndims must be >= 2: ", b.rank);
    n = a.dims[a.rank - 2];
    columns = b.dims[b.rank - 1];
    if (n != a.dims[a.rank - 1]) {
      return prep.error().InvalidArgument("In[0] matrices in the last dimensions must be square (", a.dims[a.rank - 1],
                                          " =/= ", n, ")");
    }
    if (n != b.dims[b.rank - 2]) {
      return prep.error().InvalidArgument("In[0] mismatch In[1] shape: ", n, " vs. ", b.dims[b.rank - 2], ": ", a, " ",
                                          b, " ", lower ? 1 : 0, " ", adjoint ? 1 : 0);
    }
    empty = HasNoElements(out);
    if (empty) return WEIR_OK;
    const weir_shape a_batch{a.rank - 2, 0, a.dims}, b_batch{b.rank - 2, 0, b.dims};
    if (out.rank < 2 || !batches.Plan({a_batch, b_batch}, {out.rank - 2, 0, out.dims})) {
      return prep.error().InvalidArgument("In[0] and In[1] must have compatible batch dimensions: ", a, " vs. ", b);
    }
    return WEIR_OK;
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
