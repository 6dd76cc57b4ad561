// What kernels of recurrent blocks share: checks of operands, products, and scratch memory in parts.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_RECURRENT_PLAN_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_RECURRENT_PLAN_H_

#include <algorithm>
#include <string_view>

#include "plugins/kernels_eigen/kernels/gemm.h"
#include "plugins/kernels_eigen/operands.h"

namespace weir::kernels_eigen {

/// Checks with TensorFlow's texts; the first failure is kept.
class OperandCheck {
 public:
  explicit OperandCheck(const sdk::Prep& prep) : prep_(prep) {}
  int32_t code() const { return code_; }
  bool ok() const { return code_ == WEIR_OK; }

  void Rank(uint32_t i, std::string_view name, uint32_t rank) {
    const weir_shape& shape = prep_.shape(i);
    if (!ok() || shape.rank == rank) return;
    code_ = prep_.error().InvalidArgument(name, " must be ", rank, "D, got shape ", shape);
  }
  /// "cs_prev.dims(0) != batch_size: 3 vs. 2"; `what` is the part before the colon.
  void Extent(uint32_t i, uint32_t axis, std::string_view what, int64_t wanted) {
    if (!ok() || prep_.shape(i).dims[axis] == wanted) return;
    code_ = prep_.error().InvalidArgument(what, ": ", prep_.shape(i).dims[axis], " vs. ", wanted);
  }
  void Same(uint32_t i, std::string_view name, std::initializer_list<int64_t> dims) {
    const weir_shape wanted{static_cast<uint32_t>(dims.size()), 0, dims.begin()};
    if (!ok() || sdk::SameShape(prep_.shape(i), wanted)) return;
    code_ = prep_.error().InvalidArgument(name, " must have shape ", wanted, ", got ", prep_.shape(i));
  }
  void Output(uint32_t i, std::initializer_list<int64_t> dims) {
    if (ok()) code_ = ExpectOutput(prep_, i, std::vector<int64_t>(dims));
  }

 private:
  const sdk::Prep& prep_;
  int32_t code_ = WEIR_OK;
};

/// Parts of one block of scratch memory, each at a multiple of 64 bytes.
class FloatParts {
 public:
  /// Place of a part of n floats.
  int64_t Take(int64_t n) {
    const int64_t at = size_;
    size_ += (n + 15) / 16 * 16;
    return at;
  }
  /// The same of m * n floats; none if either is 0.
  int64_t Take(int64_t m, int64_t n) { return Take(m == 0 || n == 0 ? 0 : m * n); }
  uint64_t bytes() const { return static_cast<uint64_t>(size_) * sizeof(float); }

 private:
  int64_t size_ = 0;
};

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
