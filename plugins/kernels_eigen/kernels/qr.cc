// Qr: a decomposition by Householder reflections.
#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
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
    const int64_t rows = batch.rows, inner = full ? rows : batch.inner();
    const auto [begin, end] = env.Range(batch.count);
    for (int64_t i = begin; i < end; ++i) {
      const QrFactors<sdk::Compute<T>> factors(batch.Read(input.data(), i));
      factors.Q(inner).Store(q.data() + i * rows * inner);
      factors.R(inner).Store(r.data() + i * inner * batch.columns);
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
