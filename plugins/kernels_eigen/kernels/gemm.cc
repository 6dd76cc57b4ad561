#include "plugins/kernels_eigen/kernels/gemm.h"

#include <Eigen/Core>
#include <algorithm>
#include <type_traits>

#include "plugins/kernels_eigen/kernels/panels.h"

namespace weir::kernels_eigen {
namespace {

using Eigen::Index;

// Eigen's product kernel, called below the expression layer with our own packing memory, so that a step allocates
// nothing.
template <class T>
struct Blocking : Eigen::internal::level3_blocking<T, T> {
  Blocking(const GemmBlocks& blocks, T* packing) {
    this->m_mc = blocks.mc;
    this->m_nc = blocks.nc;
    this->m_kc = blocks.kc;
    this->m_blockA = packing;
    this->m_blockB = packing + (blocks.kc * blocks.mc + 31) / 32 * 32;
  }
};

// Eigen's kernel writes column-major results, so the transposed product is computed: c' = op(b)' op(a)'. A row-major
// matrix is its transpose in column-major order.
template <class T, int kOrderB, int kOrderA>
void Run(const sdk::Product& p, const GemmBlocks& blocks, const T* a, const T* b, T* c, T* packing) {
  Blocking<T> blocking(blocks, packing);
  Eigen::internal::general_matrix_matrix_product<Index, T, kOrderB, false, T, kOrderA, false, Eigen::ColMajor, 1>::run(
      p.n, p.m, p.k, b, p.ldb(), a, p.lda(), c, 1, p.n, T(1), blocking, nullptr);
}

void Multiply(const sdk::Product& p, const float* a, const float* b, float* c, const float* addend, float* packing) {
  MultiplyMatrices({a, p.transpose_a ? 1 : p.k, p.transpose_a ? p.m : 1},
                   {b, p.transpose_b ? 1 : p.n, p.transpose_b ? p.k : 1}, p.m, p.k, p.n, c, addend, packing);
}

}  // namespace

template <class T>
GemmBlocks PlanGemm(const sdk::Product& product) {
  if constexpr (std::is_same_v<T, float>) return {0, 0, 0, ProductScratch(product.m, product.k, product.n)};
  Index kc = product.k, rows = product.n, columns = product.m;
  Eigen::internal::computeProductBlockingSizes<T, T>(kc, rows, columns, Index(1));
  return {kc, rows, columns, kc * rows + kc * columns + 64};
}

template <class T>
void Gemm(const sdk::Product& p, const GemmBlocks& blocks, const T* a, const T* b, T* c, T* packing) {
  if constexpr (std::is_same_v<T, float>) {
    if (p.k > 0) return Multiply(p, a, b, c, nullptr, packing);
  }
  std::fill(c, c + p.m * p.n, T(0));
  AddGemm(p, blocks, a, b, c, packing);
}

template <class T>
void AddGemm(const sdk::Product& p, const GemmBlocks& blocks, const T* a, const T* b, T* c, T* packing) {
  if constexpr (std::is_same_v<T, float>) return Multiply(p, a, b, c, c, packing);
  constexpr int kCol = Eigen::ColMajor, kRow = Eigen::RowMajor;
  if (p.transpose_b) {
    p.transpose_a ? Run<T, kRow, kRow>(p, blocks, a, b, c, packing) : Run<T, kRow, kCol>(p, blocks, a, b, c, packing);
  } else {
    p.transpose_a ? Run<T, kCol, kRow>(p, blocks, a, b, c, packing) : Run<T, kCol, kCol>(p, blocks, a, b, c, packing);
  }
}

#define WEIR_GEMM(T)                                                                         \
  template GemmBlocks PlanGemm<T>(const sdk::Product&);                                      \
  template void Gemm<T>(const sdk::Product&, const GemmBlocks&, const T*, const T*, T*, T*); \
  template void AddGemm<T>(const sdk::Product&, const GemmBlocks&, const T*, const T*, T*, T*);
WEIR_GEMM(float)
WEIR_GEMM(double)
#if !defined(WEIR_KERNEL_DTYPES_SHORT)
WEIR_GEMM(std::complex<float>)
WEIR_GEMM(std::complex<double>)
#endif
#undef WEIR_GEMM

}  // namespace weir::kernels_eigen
