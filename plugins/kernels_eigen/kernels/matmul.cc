// MatMul and the batched products.
#include <algorithm>
#include <complex>
#include <memory>

#include "plugins/functors/biased_product.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/gemm.h"
#include "plugins/kernels_eigen/kernels/packed_product.h"
#include "plugins/kernels_eigen/kernels/panels.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/cpu.h"
#include "sdk/cpp/kernel.h"
#include "sdk/cpp/products.h"

namespace weir::kernels_eigen {
namespace {

using sdk::View;

constexpr double kSmall = 4096;       // number of multiplications below which packing does not pay
constexpr int64_t kTurned = 1024;     // elements of b that a small product transposes first
constexpr int64_t kWorthTurning = 4;  // rows of a for which that pays

template <class T>
constexpr bool kIsComplex = false;
template <class R>
constexpr bool kIsComplex<std::complex<R>> = true;
template <class T>
constexpr bool kHasGemm = std::is_floating_point_v<T> || kIsComplex<T>;

template <class T>
T Dot(const T* a, const T* b, int64_t n) {
  constexpr int kLanes = 16;
  T lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) lanes[j] = Sum(lanes[j], Product(a[i + j], b[i + j]));
  }
  T sum(0);
  for (; i < n; ++i) sum = Sum(sum, Product(a[i], b[i]));
  for (const T lane : lanes) sum = Sum(sum, lane);
  return sum;
}

/// Adds to c the linear combination of `k` rows of n elements; the factors are `step` apart.
template <class T>
void AddRows(const T* factors, int64_t step, const T* rows, int64_t k, int64_t n, T* c) {
  int64_t p = 0;
  for (; p + 4 <= k; p += 4, rows += 4 * n) {
    const T f0 = factors[p * step], f1 = factors[(p + 1) * step], f2 = factors[(p + 2) * step],
            f3 = factors[(p + 3) * step];
    const T *r0 = rows, *r1 = rows + n, *r2 = r1 + n, *r3 = r2 + n;
    for (int64_t j = 0; j < n; ++j) {
      c[j] = Sum(c[j], Sum(Sum(Product(f0, r0[j]), Product(f1, r1[j])), Sum(Product(f2, r2[j]), Product(f3, r3[j]))));
    }
  }
  for (; p < k; ++p, rows += n) {
    const T f = factors[p * step];
    for (int64_t j = 0; j < n; ++j) c[j] = Sum(c[j], Product(f, rows[j]));
  }
}

/// A product with a small transposed b: rows of b as it is without that are added, instead of short dot products taken.
template <class T>
void TurnedProduct(const sdk::Product& p, const T* a, const T* b, T* c) {
  T turned[kTurned];
  for (int64_t j = 0; j < p.n; ++j) {
    for (int64_t q = 0; q < p.k; ++q) turned[q * p.n + j] = b[j * p.k + q];
  }
  std::fill(c, c + p.m * p.n, T(0));
  for (int64_t i = 0; i < p.m; ++i) {
    AddRows(p.transpose_a ? a + i : a + i * p.k, p.transpose_a ? p.m : 1, turned, p.k, p.n, c + i * p.n);
  }
}

/// Plain loops, for integers, vectors and small products.
template <class T>
void SimpleProduct(const sdk::Product& p, const T* a, const T* b, T* c) {
  if (p.n == 1 && p.transpose_a) {
    std::fill(c, c + p.m, T(0));
    AddRows(b, 1, a, p.k, p.m, c);
    return;
  }
  if (p.transpose_b && p.n > 1 && p.m >= kWorthTurning && p.k * p.n <= kTurned) return TurnedProduct(p, a, b, c);
  for (int64_t i = 0; i < p.m; ++i) {
    T* row = c + i * p.n;
    const T* from = p.transpose_a ? a + i : a + i * p.k;
    const int64_t step = p.transpose_a ? p.m : 1;
    if (!p.transpose_b && p.n > 1) {
      std::fill(row, row + p.n, T(0));
      AddRows(from, step, b, p.k, p.n, row);
    } else if (step == 1) {
      for (int64_t j = 0; j < p.n; ++j) row[j] = Dot(from, b + j * p.k, p.k);
    } else {
      for (int64_t j = 0; j < p.n; ++j) {
        T sum(0);
        for (int64_t q = 0; q < p.k; ++q) sum = Sum(sum, Product(from[q * step], b[j * p.k + q]));
        row[j] = sum;
      }
    }
  }
}

/// One product shape in one element type: the algorithm and its memory.
struct Multiplier {
  sdk::Product product;
  GemmBlocks blocks;
  bool simple = true;

  /// Returns bytes of scratch memory for compute type T.
  template <class T>
  uint64_t Plan() {
    const sdk::Product& p = product;
    simple = !kHasGemm<T> || p.m == 1 || p.n == 1 || p.k == 0 ||
             static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) <= kSmall;
    uint64_t elements = 0;
    if constexpr (kHasGemm<T>) {
      if (!simple) {
        blocks = PlanGemm<T>(p);
        elements += Aligned(blocks.Elements());
      }
    }
    if (p.conjugate_a) elements += Aligned(p.m * p.k);
    if (p.conjugate_b) elements += Aligned(p.k * p.n);
    return elements * sizeof(T);
  }

  /// A float product with a general algorithm may be made in parts: `rows` rows of c from the addresses given.
  template <class T>
  void Run(const T* a, const T* b, T* c, int64_t rows, T* scratch) const {
    const sdk::Product& p = product;
    T* packing = scratch;
    if constexpr (std::is_same_v<T, float>) {
      if (!simple) {
        return MultiplyMatrices({a, p.transpose_a ? 1 : p.k, p.transpose_a ? p.m : 1},
                                {b, p.transpose_b ? 1 : p.n, p.transpose_b ? p.k : 1}, rows, p.k, p.n, c, nullptr,
                                packing);
      }
    }
    if constexpr (kIsComplex<T>) {
      T* free = scratch + (simple ? 0 : Aligned(blocks.Elements()));
      if (p.conjugate_a) {
        a = Conjugate(a, p.m * p.k, free);
        free += Aligned(p.m * p.k);
      }
      if (p.conjugate_b) b = Conjugate(b, p.k * p.n, free);
    }
    if constexpr (kHasGemm<T>) {
      if (!simple) return Gemm(p, blocks, a, b, c, packing);
    }
    SimpleProduct(p, a, b, c);
  }

  static int64_t Aligned(int64_t elements) { return (elements + 63) / 64 * 64; }

 private:
  template <class T>
  static const T* Conjugate(const T* from, int64_t n, T* to) {
    for (int64_t i = 0; i < n; ++i) to[i] = std::conj(from[i]);
    return to;
  }
};

/// Shares of the core's peak, and times, of products on one kind of processor. Fitted to runs, like the constants of
/// the other kernel sets, so that estimates are comparable.
struct Rates {
  double eigen;    // share, of types other than float
  double panels;   // share, with a packed b
  double dense;    // share, if b is packed by each call
  double simple;   // share, without packing
  double vector;   // share, of products with one row or column
  double a_ns;     // to read an element of a
  double even_ns;  // the same in rows that lie in one cache set, which are copied
  double b_ns;     // to pack one of b
  double far_ns;   // more per element of b if it is beyond the second cache
  double dot_ns;   // of a sum of the product of a row with a transposed b
  double call_ns;  // of a product that packs, and with a packed matrix
  double read;     // bytes per ns, of a packed matrix
};
constexpr Rates kRates[] = {
    {0.60, 0.85, 0.82, 0.12, 0.12, 0.03, 1.0, 0.15, 0.1, 0, 150, 18},         // baseline
    {0.80, 0.95, 0.94, 0.12, 0.12, 0.03, 1.0, 0.14, 0.3, 0, 150, 18},         // amd-avx2
    {0.85, 0.97, 0.95, 0.12, 0.12, 0.03, 1.0, 0.12, 0.3, 0, 150, 18},         // amd-avx512
    {0.80, 0.95, 0.88, 0.14, 0.25, 0.02, 0.055, 0.085, 0.017, 1.7, 60, 110},  // amd-zen5
    {0.60, 0.85, 0.82, 0.12, 0.12, 0.03, 1.0, 0.15, 0.1, 0, 150, 18},         // intel-avx2
    {0.55, 0.88, 0.85, 0.12, 0.12, 0.03, 1.0, 0.12, 0.1, 0, 150, 18},         // intel-avx512
};
const Rates& RatesHere() { return kRates[static_cast<size_t>(sdk::ThisCpuClass())]; }

/// Time to read or copy an element of a.
double LeftNs(const sdk::Product& p) {
  return !p.transpose_a && p.k % 1024 == 0 ? RatesHere().even_ns : RatesHere().a_ns;
}

constexpr double kSecondCacheBytes = 1 << 20;

bool IsNarrow(uint32_t dtype) { return dtype == WEIR_FLOAT16 || dtype == WEIR_BFLOAT16; }

/// Time of Eigen's products and ours, in ns, on a core with this peak.
double ProductNs(const sdk::Product& p, double peak, uint32_t dtype) {
  const double m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
  const double widened = IsNarrow(dtype) ? 0.3 * (m * k + k * n + m * n) : 0;
  const double wide_peak = IsNarrow(dtype) ? 4 * peak : peak;  // the profile counts the conversions
  const bool integer = dtype == WEIR_INT16 || dtype == WEIR_INT32 || dtype == WEIR_INT64;
  const Rates& rates = RatesHere();
  if (integer || p.m == 1 || p.n == 1 || m * n * k <= kSmall) {
    const double strided = p.transpose_b && p.transpose_a ? 10 : 1;
    const double share = p.m == 1 || p.n == 1 ? rates.vector : rates.simple;
    const double dots = p.m == 1 && p.transpose_b ? rates.dot_ns * n : 0;
    return 40 + widened + dots + 2 * m * n * k * strided / (share * wide_peak);
  }
  constexpr double kEigenNs = 0.3;  // to pack an element
  const double far = 4 * k * n > kSecondCacheBytes ? rates.far_ns * k * n : 0;
  if (dtype != WEIR_FLOAT32 && !IsNarrow(dtype)) {
    return 300 + 2 * m * n * k / (rates.eigen * wide_peak) + kEigenNs * (m * k + k * n) + far;
  }
  return rates.call_ns + widened + 2 * m * n * k / (rates.dense * wide_peak) + LeftNs(p) * m * k + rates.b_ns * k * n +
         far;
}

/// The same for a product with a packed matrix, whose last panel is filled up.
double PackedNs(const sdk::Product& p, double peak) {
  const Rates& rates = RatesHere();
  const double m = static_cast<double>(p.m), k = static_cast<double>(p.k);
  const double bytes = static_cast<double>(PackedMatrix::Bytes(p.k, p.n));
  return rates.call_ns + LeftNs(p) * m * k + std::max(m * bytes / (2 * rates.panels * peak), bytes / rates.read);
}

/// The constant right operand of a product that is worth packing, or null.
const float* ConstantToPack(const sdk::Products& products, const sdk::Prep& prep) {
  const sdk::Product& p = products.one();
  const weir_operand& b = prep.input(1);
  const bool worth =
      b.dtype == WEIR_FLOAT32 && products.count() == 1 && p.n > 1 && p.Flops() > 2 * kSmall && b.value != nullptr;
  return worth ? static_cast<const float*>(b.value->buf.host) : nullptr;
}

constexpr double kTileFlops = 4e6;  // work of a tile: ten times the cost of starting it on another thread

template <int32_t (sdk::Products::*kPlan)(const sdk::Prep&)>
struct MatMul {
  sdk::Products products;
  Multiplier multiplier;
  std::shared_ptr<const PackedMatrix> packed;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = (products.*kPlan)(prep); code != WEIR_OK) return code;
    const sdk::Product& p = products.one();
    if (const float* b = ConstantToPack(products, prep); b != nullptr && products.c_size() != 0) {
      packed = PackedMatrix::Of(b, p.transpose_b, p.k, p.n);
      if (packed == nullptr) {
        return prep.error().Fail(WEIR_RESOURCE_EXHAUSTED, "no memory for ", PackedMatrix::Bytes(p.k, p.n), " bytes");
      }
      prep.Scratch(PackedMatrix::ScratchBytes(p.k, p.m));
      products.Tile(prep, kTileFlops);
      return WEIR_OK;
    }
    multiplier.product = p;
    const uint32_t dtype = prep.input(0).dtype;
    prep.Scratch(ScratchBytes(dtype));
    if (dtype == WEIR_FLOAT32 && !multiplier.simple) products.Tile(prep, kTileFlops);
    return WEIR_OK;
  }

  uint64_t ScratchBytes(uint32_t dtype) {
    switch (dtype) {
      case WEIR_FLOAT32:
        return multiplier.Plan<float>();
      case WEIR_FLOAT64:
        return multiplier.Plan<double>();
#if !defined(WEIR_KERNEL_DTYPES_SHORT)
      case WEIR_COMPLEX64:
        return multiplier.Plan<sdk::complex64>();
      case WEIR_COMPLEX128:
        return multiplier.Plan<sdk::complex128>();
      case WEIR_FLOAT16:
      case WEIR_BFLOAT16:
        return multiplier.Plan<float>() + WideElements() * sizeof(float);
#endif
      default:
        return multiplier.Plan<int64_t>();
    }
  }
  /// Elements of the operands and the result in float, for 16-bit storage.
  int64_t WideElements() const {
    return Multiplier::Aligned(products.a_size()) + Multiplier::Aligned(products.b_size()) +
           Multiplier::Aligned(products.c_size());
  }

  template <class T>
  void Run(sdk::Env& env, View<const T> x, View<const T> y, View<T> out, sdk::Scratch<char> scratch) const {
    Multiply(env, x, y, out, scratch, [](T*, int64_t) {});
  }

  /// Calls finish(c, rows) for each part of the result when it is made.
  template <class T, class Finish>
  void Multiply(sdk::Env& env, View<const T> x, View<const T> y, View<T> out, sdk::Scratch<char> scratch,
                Finish&& finish) const {
    using C = sdk::Compute<T>;
    C* memory = reinterpret_cast<C*>(scratch.data());
    if (products.c_size() == 0) return;
    if constexpr (std::is_same_v<T, float>) {
      if (packed != nullptr) {
        const sdk::Product& p = products.one();
        const int64_t row_step = p.transpose_a ? 1 : p.k, depth_step = p.transpose_a ? p.m : 1;
        return products.ForTiles(env, x.data(), y.data(), out.data(),
                                 [&](const float* a, const float*, float* c, int64_t rows) {
                                   packed->Multiply(a, row_step, depth_step, rows, c, memory);
                                   finish(c, rows);
                                 });
      }
    }
    products.ForTiles(env, x.data(), y.data(), out.data(), [&](const T* a, const T* b, T* c, int64_t rows) {
      if constexpr (std::is_same_v<C, T>) {
        multiplier.Run(a, b, c, rows, memory);
      } else {
        C* wide_a = memory;
        C* wide_b = wide_a + Multiplier::Aligned(products.a_size());
        C* wide_c = wide_b + Multiplier::Aligned(products.b_size());
        sdk::Widen(a, wide_a, products.a_size());
        sdk::Widen(b, wide_b, products.b_size());
        multiplier.Run(wide_a, wide_b, wide_c, rows, wide_c + Multiplier::Aligned(products.c_size()));
        sdk::Narrow(wide_c, c, products.c_size());
      }
      finish(c, rows);
    });
  }

  static sdk::Cost Estimate(const sdk::Prep& prep, const weir_profile* profile) {
    return sdk::EstimateProducts(kPlan, prep, [&](const sdk::Products& products) {
      const uint32_t dtype = prep.input(0).dtype;
      const double peak = sdk::PeakFlops(profile, dtype);
      if (ConstantToPack(products, prep) != nullptr) return PackedNs(products.one(), peak);
      return static_cast<double>(products.count()) * ProductNs(products.one(), peak, dtype);
    });
  }
};

/// activation(op(a) op(b) + bias): each part of the product gets the rest while it is in a cache.
struct BiasedMatMul {
  MatMul<&sdk::Products::PlanMatMul> product;
  functors::Finish end;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = product.Prepare(prep); code != WEIR_OK) return code;
    return functors::PrepareBias(prep, product.products, &end);
  }

  template <class T>
  void Run(sdk::Env& env, View<const T> x, View<const T> y, View<const T> bias, View<T> out,
           sdk::Scratch<char> scratch) const {
    product.Multiply(env, x, y, out, scratch, [&](T* c, int64_t rows) {
      functors::FinishRows(end, c, bias.data(), nullptr, rows, product.products.one().n);
    });
  }

  static sdk::Cost Estimate(const sdk::Prep& prep, const weir_profile* profile) {
    return MatMul<&sdk::Products::PlanMatMul>::Estimate(prep, profile);
  }
};

using MatrixMatMul = MatMul<&sdk::Products::PlanMatMul>;
using BatchMatMul = MatMul<&sdk::Products::PlanBatchMatMul>;

/// BatchMatMulV3 for operands and a result of one type; mixed_matmul.cc has the others.
template <class... T>
void AddBatchMatMulV3(sdk::KernelTable& k, sdk::Types<T...>) {
  const auto add = [&](auto type, uint32_t dtype) {
    k.Add<BatchMatMul>("BatchMatMulV3", sdk::Attr("Ta", type))
        .Restrict("Tb", {dtype})
        .Restrict("Tout", {dtype})
        .Class(WEIR_CLASS_GEMM);
  };
  (add(sdk::Types<T>(), sdk::kDType<T>), ...);
}
}  // namespace

void AddMatMul(sdk::KernelTable& k) {
#if defined(WEIR_KERNEL_DTYPES_SHORT)
  constexpr sdk::Types<> kNarrow;
#else
  constexpr sdk::Types<int16_t> kNarrow;
#endif
  constexpr auto kTypes = kFloatingOrComplex + kIndex;
  k.Add<MatrixMatMul>("MatMul", kTypes).Class(WEIR_CLASS_GEMM);
  k.Add<BiasedMatMul>("_BiasedMatMul", kFloat).Class(WEIR_CLASS_GEMM);
  k.Add<BatchMatMul>("BatchMatMul", kTypes).Class(WEIR_CLASS_GEMM);
  k.Add<BatchMatMul>("BatchMatMulV2", kTypes + kNarrow).Class(WEIR_CLASS_GEMM);
  AddBatchMatMulV3(k, kTypes + kNarrow);
}

}  // namespace weir::kernels_eigen
