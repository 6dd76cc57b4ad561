// Qr: a decomposition by Householder reflections.
#include <Eigen/QR>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/matrices.h"

namespace weir::kernels_eigen {
namespace {

using sdk::View;

struct Qr {
  MatrixBatch batch;
  bool full = false;

  int32_t Prepare(sdk::Prep& prep) {
    full = prep.node().Bool("full_matrices");
    if (const int32_t code = batch.Plan(prep); code != WEIR_OK) return code;
    batch.Split(prep);
    return WEIR_OK;
  }

  template <class T>
  void Run(const sdk::Env& env, View<const T> input, View<T> q, View<T> r) const {
    using M = Matrix<sdk::Compute<T>>;
    const int64_t rows = batch.rows, inner = full ? rows : batch.inner();
    const auto [begin, end] = env.Range(batch.count);
    for (int64_t i = begin; i < end; ++i) {
      T* const q_at = q.data() + i * rows * inner;
      if (batch.size() == 0) {
        Write(M::Identity(rows, inner), q_at);
        continue;
      }
      const Eigen::HouseholderQR<M> factors(batch.Read(input.data() + i * batch.size()));
      Write(M(factors.householderQ() * M::Identity(rows, inner)), q_at);
      const M upper = factors.matrixQR().topRows(inner).template triangularView<Eigen::Upper>();
      Write(upper, r.data() + i * inner * batch.columns);
    }
  }
};

}  // namespace

void AddQr(sdk::KernelTable& k) {
#if defined(WEIR_KERNEL_DTYPES_SHORT)
  constexpr sdk::Types<> kNarrow;
#else
  constexpr sdk::Types<sdk::half> kNarrow;
#endif
  k.Add<Qr>("Qr", kNarrow + kFloat + kComplex).Class(WEIR_CLASS_GEMM);
}

}  // namespace weir::kernels_eigen
