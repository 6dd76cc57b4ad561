// What kernels of recurrent blocks share on the CPU: products.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_RECURRENT_PLAN_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_RECURRENT_PLAN_H_

#include <algorithm>

#include "plugins/functors/lstm_plan.h"
#include "plugins/kernels_eigen/kernels/gemm.h"
#include "plugins/kernels_eigen/operands.h"

namespace weir::kernels_eigen {

using functors::FloatParts;
using functors::GruPlan;
using functors::LstmPlan;
using functors::OperandCheck;

/// A product whose operands may have no elements.
class RecurrentProduct {
 public:
  /// `transpose_a`, `transpose_b`: the operand is stored as its transpose. The packing memory is a part of the scratch.
  void Plan(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b, FloatParts& parts) {
    product_ = {m, n, k, transpose_a, transpose_b};
    empty_ = m == 0 || n == 0 || k == 0;
    if (empty_) return;
    blocks_ = PlanGemm<float>(product_);
    packing_ = parts.Take(blocks_.Elements());
  }
  /// c = op(a) op(b).
  void Run(const float* a, const float* b, float* c, float* scratch) const { Run(product_, a, b, c, scratch); }
  /// The same of the first `m` rows of a and c; of the first `k` rows of a stored transposed and of b.
  void RunRows(int64_t m, const float* a, const float* b, float* c, float* scratch) const {
    sdk::Product product = product_;
    product.m = m;
    Run(product, a, b, c, scratch);
  }
  void RunDepth(int64_t k, const float* a, const float* b, float* c, float* scratch) const {
    sdk::Product product = product_;
    product.k = k;
    Run(product, a, b, c, scratch);
  }

 private:
  void Run(const sdk::Product& p, const float* a, const float* b, float* c, float* scratch) const {
    if (p.m == 0 || p.n == 0) return;
    if (empty_ || p.k == 0) {
      std::fill_n(c, p.m * p.n, 0.0f);
    } else {
      Gemm(p, blocks_, a, b, c, scratch + packing_);
    }
  }

  sdk::Product product_;
  GemmBlocks blocks_;
  bool empty_ = true;
  int64_t packing_ = 0;
};

/// The elements as floats: `x` itself, or a copy in `to`.
inline const float* AsFloats(const float* x, int64_t, float*) { return x; }
inline const float* AsFloats(const sdk::half* x, int64_t n, float* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(x[i]);
  return to;
}
/// Floats that such a copy needs.
template <class T>
int64_t CopySize(int64_t n) {
  return std::is_same_v<T, float> ? 0 : n;
}

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_RECURRENT_PLAN_H_
