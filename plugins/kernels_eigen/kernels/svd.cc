// Svd of batches of matrices.
#include "plugins/kernels_eigen/kernels/svd.h"

#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/kernels/matrices.h"

namespace weir::kernels_eigen {
namespace {

using sdk::View;

struct Svd {
  MatrixBatch batch;
  bool vectors = true, full = false;

  int32_t Prepare(sdk::Prep& prep) {
    vectors = prep.node().Bool("compute_uv", true);
    full = prep.node().Bool("full_matrices");
    if (const int32_t code = batch.Plan(prep); code != WEIR_OK) return code;
    batch.Split(prep);
    return WEIR_OK;
  }

  template <class T>
  void Run(const sdk::Env& env, View<const T> input, View<T> s, View<T> u, View<T> v) const {
    const int64_t inner = batch.inner();
    const auto [begin, end] = env.Range(batch.count);
    for (int64_t i = begin; i < end; ++i) {
      const auto svd = Decompose(Dense<WideOf<T>>(batch.rows, batch.columns, input.data() + i * batch.size()), full);
      for (int64_t k = 0; k < inner; ++k) s[i * inner + k] = static_cast<T>(svd.s[static_cast<size_t>(k)]);
      if (!vectors) continue;
      svd.u.Store(u.data() + i * svd.u.rows * svd.u.columns);
      svd.v.Store(v.data() + i * svd.v.rows * svd.v.columns);
    }
  }
};

}  // namespace

void AddSvd(sdk::KernelTable& k) {
  k.Add<Svd>("Svd", kFloat + kComplex).Class(WEIR_CLASS_GEMM, 30);
  k.Add<Svd>("BatchSvd", kFloat + kComplex).Class(WEIR_CLASS_GEMM, 30);
}

}  // namespace weir::kernels_eigen
