// Matrix products on the caller's thread, with packing memory from the caller.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_GEMM_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_GEMM_H_

#include <complex>
#include <cstdint>

#include "sdk/cpp/products.h"

namespace weir::kernels_eigen {

/// Eigen's block sizes for a product, and the elements of packing memory that they need. Products of float have the
/// memory of panels.h only.
struct GemmBlocks {
  int64_t kc = 0, mc = 0, nc = 0;
  int64_t packing = 0;
  int64_t Elements() const { return packing; }
};

/// T: float, double, std::complex<float>, std::complex<double>. `c` is overwritten and overlaps nothing; `packing` has
/// blocks.Elements() elements, 64-byte aligned.
template <class T>
GemmBlocks PlanGemm(const sdk::Product& product);
template <class T>
void Gemm(const sdk::Product& product, const GemmBlocks& blocks, const T* a, const T* b, T* c, T* packing);
/// The same, added to `c`. The product may have fewer rows or a smaller k than the planned one.
template <class T>
void AddGemm(const sdk::Product& product, const GemmBlocks& blocks, const T* a, const T* b, T* c, T* packing);

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_GEMM_H_
