// Matrix products on the caller's thread, in memory that the caller brings.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_GEMM_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_GEMM_H_

#include <complex>
#include <cstdint>

namespace weir::kernels_eigen {

/// c = op(a) op(b), all row-major: op(a) is [m, k], op(b) is [k, n]; a transposed operand is stored the other way
/// round.
struct Product2D {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
};

/// How Eigen cuts a product, and how many elements of packing memory that takes.
struct GemmBlocks {
  int64_t kc = 0, mc = 0, nc = 0;
  int64_t Elements() const { return kc * mc + kc * nc + 64; }
};

/// T: float, double, std::complex<float>, std::complex<double>. `c` is overwritten and overlaps nothing; `packing` has
/// blocks.Elements() elements, 64-byte aligned.
template <class T>
GemmBlocks PlanGemm(const Product2D& product);
template <class T>
void Gemm(const Product2D& product, const GemmBlocks& blocks, const T* a, const T* b, T* c, T* packing);

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_GEMM_H_
