// MatMul and the batched products through CBLAS.
#include <algorithm>
#include <complex>
#include <limits>

#include "plugins/functors/biased_product.h"
#include "plugins/functors/finish_rows.h"
#include "plugins/kernels_openblas/families.h"
#include "plugins/kernels_openblas/library.h"
#include "sdk/cpp/cpu.h"
#include "sdk/cpp/kernel.h"
#include "sdk/cpp/products.h"

namespace weir::kernels_openblas {
namespace {

using sdk::Product;

constexpr double kTileFlops = 4e6;  // work of a tile: ten times the cost of starting it on another thread

CBLAS_TRANSPOSE Transposed(bool transpose, bool conjugate) {
  return !transpose ? CblasNoTrans : conjugate ? CblasConjTrans : CblasTrans;
}

blasint Int(int64_t n) { return static_cast<blasint>(n); }

/// c = alpha op(a) op(b) + beta c, row-major; `a`, `b` and `c` are the arguments of each function below.
#define WEIR_GEMM_ARGUMENTS(alpha, beta)                                                                        \
  CblasRowMajor, Transposed(p.transpose_a, p.conjugate_a), Transposed(p.transpose_b, p.conjugate_b), Int(rows), \
      Int(p.n), Int(p.k), alpha, a, Int(p.lda()), b, Int(p.ldb()), beta, c, Int(p.n)
void Gemm(const Product& p, int64_t rows, const float* a, const float* b, float* c, float alpha = 1, float beta = 0) {
  OpenBlas().cblas_sgemm(WEIR_GEMM_ARGUMENTS(alpha, beta));
}
void Gemm(const Product& p, int64_t rows, const double* a, const double* b, double* c, double alpha = 1,
          double beta = 0) {
  OpenBlas().cblas_dgemm(WEIR_GEMM_ARGUMENTS(alpha, beta));
}
#if !defined(WEIR_KERNEL_DTYPES_SHORT)
void Gemm(const Product& p, int64_t rows, const std::complex<float>* a, const std::complex<float>* b,
          std::complex<float>* c) {
  const std::complex<float> one(1), zero(0);
  OpenBlas().cblas_cgemm(WEIR_GEMM_ARGUMENTS(&one, &zero));
}
void Gemm(const Product& p, int64_t rows, const std::complex<double>* a, const std::complex<double>* b,
          std::complex<double>* c) {
  const std::complex<double> one(1), zero(0);
  OpenBlas().cblas_zgemm(WEIR_GEMM_ARGUMENTS(&one, &zero));
}
#endif
#undef WEIR_GEMM_ARGUMENTS

/// y += alpha op(matrix) x for a row-major [rows, columns] matrix.
void Gemv(CBLAS_TRANSPOSE op, int64_t rows, int64_t columns, float alpha, const float* matrix, const float* x,
          float* y) {
  OpenBlas().cblas_sgemv(CblasRowMajor, op, Int(rows), Int(columns), alpha, matrix, Int(columns), x, 1, 1, y, 1);
}
void Gemv(CBLAS_TRANSPOSE op, int64_t rows, int64_t columns, double alpha, const double* matrix, const double* x,
          double* y) {
  OpenBlas().cblas_dgemv(CblasRowMajor, op, Int(rows), Int(columns), alpha, matrix, Int(columns), x, 1, 1, y, 1);
}

/// c += alpha op(a) op(b) if one operand is a vector; returns false if neither is.
template <class T>
bool AddVectorProduct(const Product& p, int64_t rows, T alpha, const T* a, const T* b, T* c) {
  if (p.m == 1) {
    p.transpose_b ? Gemv(CblasNoTrans, p.n, p.k, alpha, b, a, c) : Gemv(CblasTrans, p.k, p.n, alpha, b, a, c);
  } else if (p.n == 1 && rows == p.m) {
    p.transpose_a ? Gemv(CblasTrans, p.k, p.m, alpha, a, b, c) : Gemv(CblasNoTrans, p.m, p.k, alpha, a, b, c);
  } else {
    return false;
  }
  return true;
}

template <class T>
void Multiply(const Product& p, int64_t rows, const T* a, const T* b, T* c) {
  if (p.k == 0) {
    std::fill(c, c + rows * p.n, T(0));
    return;
  }
  // Clears c and adds: with beta = 0 it depends on the version of OpenBLAS whether a NaN in c is ignored.
  if constexpr (std::is_floating_point_v<T>) {
    if (p.m == 1 || (p.n == 1 && rows == p.m)) {
      std::fill(c, c + rows * p.n, T(0));
      (void)AddVectorProduct(p, rows, T(1), a, b, c);
      return;
    }
  }
  Gemm(p, rows, a, b, c);
}

/// Shares of the core's peak, and times, of OpenBLAS's products on one kind of processor. Fitted to runs, like the
/// constants of the other kernel sets, so that estimates are comparable.
struct Rates {
  double small;     // share, of products that its kernels without packing make
  double large;     // share
  double byte_ns;   // to pack a byte of an operand
  double far_ns;    // more per byte of b if it is beyond the second cache
  double small_ns;  // of a call, without packing
  double large_ns;  // and with it
  double vector;    // bytes per ns of products with one row or column
  bool has_small;   // kernels without packing, for float and an untransposed b
  int64_t columns;  // and for a transposed b of so many
};
constexpr Rates kRates[] = {
    {0.70, 0.60, 0.10, 0, 100, 1000, 11, false, 0},     // baseline
    {0.80, 0.92, 0.06, 0.06, 100, 1000, 11, false, 0},  // amd-avx2
    {0.92, 0.80, 0.07, 0.08, 100, 1000, 11, true, 0},   // amd-avx512
    {0.96, 0.84, 0.02, 0.03, 50, 90, 110, true, 16},    // amd-zen5
    {0.70, 0.70, 0.06, 0.02, 100, 1000, 11, false, 0},  // intel-avx2
    {0.85, 0.66, 0.06, 0, 100, 1000, 11, true, 0},      // intel-avx512
};
constexpr double kSecondCacheBytes = 1 << 20;
constexpr double kSumNs = 0.2;  // of the lanes of an element, where b is transposed

/// OpenBLAS's time for one product, in ns, on a core with this peak. Up to a million multiply-adds it has kernels
/// without packing on some processors; otherwise it packs both operands.
double ProductNs(const Product& p, double peak, uint32_t dtype) {
  const Rates& rates = kRates[static_cast<size_t>(sdk::ThisCpuClass())];
  const double m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
  const double bytes = sdk::SizeOf(dtype);
  const double flops = 2 * m * n * k * (dtype == WEIR_COMPLEX64 || dtype == WEIR_COMPLEX128 ? 4 : 1);
  if (p.m == 1 || p.n == 1) return 1.2 * rates.small_ns + (m * k + k * n) * bytes / rates.vector;
  if (rates.has_small && dtype == WEIR_FLOAT32 && m * n * k <= 1e6 && (!p.transpose_b || p.n <= rates.columns)) {
    return rates.small_ns + flops / (rates.small * peak) + (p.transpose_b ? kSumNs * m * n : 0);
  }
  const double far = bytes * k * n > kSecondCacheBytes ? rates.far_ns * bytes * k * n : 0;
  return rates.large_ns + flops / (rates.large * peak) + rates.byte_ns * bytes * (m * k + k * n) + far;
}

/// Also loads OpenBLAS.
int32_t CutIntoTiles(sdk::Products& products, sdk::Prep& prep) {
  const Product& p = products.one();
  if (std::max({p.m, p.n, p.k}) > std::numeric_limits<blasint>::max()) {
    return prep.error().Unimplemented("OpenBLAS counts rows and columns in 32 bits");
  }
  products.Tile(prep, kTileFlops);
  return LoadOpenBlas(prep.error());
}

template <int32_t (sdk::Products::*kPlan)(const sdk::Prep&)>
struct MatMul {
  sdk::Products products;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = (products.*kPlan)(prep); code != WEIR_OK) return code;
    return CutIntoTiles(products, prep);
  }

  template <class T>
  int32_t Run(sdk::Env& env, sdk::View<const T> x, sdk::View<const T> y, sdk::View<T> out) const {
    return MultiplyAll(env, x, y, out, [](T*, int64_t) {});
  }

  /// Calls finish(c, rows) for each part of the result when it is made.
  template <class T, class Finish>
  int32_t MultiplyAll(sdk::Env& env, sdk::View<const T> x, sdk::View<const T> y, sdk::View<T> out,
                      Finish&& finish) const {
    if (products.c_size() == 0) return WEIR_OK;
    if (!OpenBlas().have_work_space())
      return env.error().Fail(WEIR_RESOURCE_EXHAUSTED, "no address space for OpenBLAS's work space");
    products.ForTiles(env, x.data(), y.data(), out.data(), [&](const T* a, const T* b, T* c, int64_t rows) {
      Multiply(products.one(), rows, a, b, c);
      finish(c, rows);
    });
    return WEIR_OK;
  }

  static sdk::Cost Estimate(const sdk::Prep& prep, const weir_profile* profile) {
    return sdk::EstimateProducts(kPlan, prep, [&](const sdk::Products& products) {
      const uint32_t dtype = prep.input(0).dtype;
      return static_cast<double>(products.count()) * ProductNs(products.one(), sdk::PeakFlops(profile, dtype), dtype);
    });
  }
};

/// activation(op(a) op(b) + bias).
struct BiasedMatMul {
  MatMul<&sdk::Products::PlanMatMul> product;
  functors::Finish end;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = product.Prepare(prep); code != WEIR_OK) return code;
    return functors::PrepareBias(prep, product.products, &end);
  }

  template <class T>
  int32_t Run(sdk::Env& env, sdk::View<const T> x, sdk::View<const T> y, sdk::View<const T> bias,
              sdk::View<T> out) const {
    return product.MultiplyAll(env, x, y, out, [&](T* c, int64_t rows) {
      functors::FinishRowsHere(end, c, bias.data(), nullptr, rows, product.products.one().n);
    });
  }

  static sdk::Cost Estimate(const sdk::Prep& prep, const weir_profile* profile) {
    return MatMul<&sdk::Products::PlanMatMul>::Estimate(prep, profile);
  }
};

/// var -= alpha op(a) op(b), without storing the product.
struct DescentByProduct {
  sdk::Products products;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = products.PlanMatMulUpdate(prep); code != WEIR_OK) return code;
    return CutIntoTiles(products, prep);
  }

  template <class T>
  int32_t Run(sdk::Env& env, sdk::Variable<T> var, sdk::View<const T> alpha, sdk::View<const T> x,
              sdk::View<const T> y) const {
    if (alpha.shape().rank != 0) return env.error().InvalidArgument("alpha is not a scalar: ", alpha.shape());
    const Product& p = products.one();
    if (p.k == 0 || products.c_size() == 0) return WEIR_OK;
    if (!OpenBlas().have_work_space())
      return env.error().Fail(WEIR_RESOURCE_EXHAUSTED, "no address space for OpenBLAS's work space");
    const T rate = -alpha[0];
    products.ForTiles(env, x.data(), y.data(), var.data(), [&](const T* a, const T* b, T* c, int64_t rows) {
      if (rate == 0) return sdk::SubtractNothing(p, rows, a, b, c);
      if (!AddVectorProduct(p, rows, rate, a, b, c)) Gemm(p, rows, a, b, c, rate, T(1));
    });
    return WEIR_OK;
  }

  static sdk::Cost Estimate(const sdk::Prep& prep, const weir_profile* profile) {
    return sdk::EstimateProducts(&sdk::Products::PlanMatMulUpdate, prep, [&](const sdk::Products& products) {
      const uint32_t dtype = prep.input(0).dtype;
      return ProductNs(products.one(), sdk::PeakFlops(profile, dtype), dtype);
    });
  }
};

}  // namespace

void AddMatMul(sdk::KernelTable& k) {
  for (const char* op : {"_ApplyGradientDescentMatMul", "_ResourceApplyGradientDescentMatMul"}) {
    k.Add<DescentByProduct>(op, sdk::Types<float, double>()).Class(WEIR_CLASS_GEMM);
  }
#if defined(WEIR_KERNEL_DTYPES_SHORT)
  constexpr sdk::Types<float, double> kTypes;
#else
  constexpr sdk::Types<float, double, sdk::complex64, sdk::complex128> kTypes;
#endif
  k.Add<MatMul<&sdk::Products::PlanMatMul>>("MatMul", kTypes).Class(WEIR_CLASS_GEMM);
  k.Add<BiasedMatMul>("_BiasedMatMul", sdk::Types<float, double>()).Class(WEIR_CLASS_GEMM);
  for (const char* op : {"BatchMatMul", "BatchMatMulV2"}) {
    k.Add<MatMul<&sdk::Products::PlanBatchMatMul>>(op, kTypes).Class(WEIR_CLASS_GEMM);
  }
}

}  // namespace weir::kernels_openblas
