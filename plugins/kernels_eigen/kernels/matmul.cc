// MatMul and the batched products.
#include <algorithm>
#include <complex>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/gemm.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/broadcast.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::View;

constexpr double kSmall = 4096;  // multiplications below which packing costs more than it saves

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

/// c += the combination of `k` rows of n elements with factors `step` apart.
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

/// Plain loops, for integers, vectors and small products.
template <class T>
void SimpleProduct(const Product2D& p, const T* a, const T* b, T* c) {
  if (p.n == 1 && p.transpose_a) {
    std::fill(c, c + p.m, T(0));
    AddRows(b, 1, a, p.k, p.m, c);
    return;
  }
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

/// One product shape in one element type: which way it is computed, and the memory that takes.
struct Multiplier {
  Product2D product;
  GemmBlocks blocks;
  bool simple = true;
  bool conjugate_a = false, conjugate_b = false;

  /// Returns bytes of scratch memory for compute type T.
  template <class T>
  uint64_t Plan() {
    const Product2D& p = product;
    simple = !kHasGemm<T> || p.m == 1 || p.n == 1 || p.k == 0 ||
             static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) <= kSmall;
    uint64_t elements = 0;
    if constexpr (kHasGemm<T>) {
      if (!simple) {
        blocks = PlanGemm<T>(p);
        elements += Aligned(blocks.Elements());
      }
    }
    if (conjugate_a) elements += Aligned(p.m * p.k);
    if (conjugate_b) elements += Aligned(p.k * p.n);
    return elements * sizeof(T);
  }

  template <class T>
  void Run(const T* a, const T* b, T* c, T* scratch) const {
    const Product2D& p = product;
    T* packing = scratch;
    if constexpr (kIsComplex<T>) {
      T* free = scratch + (simple ? 0 : Aligned(blocks.Elements()));
      if (conjugate_a) {
        a = Conjugate(a, p.m * p.k, free);
        free += Aligned(p.m * p.k);
      }
      if (conjugate_b) b = Conjugate(b, p.k * p.n, free);
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

/// op(x) op(y) over the last two dimensions, the others broadcast against each other.
struct Products {
  Multiplier multiplier;
  sdk::Broadcast<2> batches;
  int64_t x_size = 0, y_size = 0, out_size = 0;  // elements of one matrix

  int32_t Plan(sdk::Prep& prep, bool adjoint_x, bool adjoint_y, bool transpose_x, bool transpose_y) {
    const weir_shape &x = prep.shape(0), &y = prep.shape(1), &out = prep.output(0).shape;
    if (x.rank < 2) return prep.error().InvalidArgument("In[0] ndims must be >= 2: ", x.rank);
    if (y.rank < 2) return prep.error().InvalidArgument("In[1] ndims must be >= 2: ", y.rank);
    const int64_t* xd = x.dims + x.rank - 2;
    const int64_t* yd = y.dims + y.rank - 2;
    Product2D& p = multiplier.product;
    p.transpose_a = adjoint_x || transpose_x;
    p.transpose_b = adjoint_y || transpose_y;
    p.m = xd[p.transpose_a ? 1 : 0];
    p.k = xd[p.transpose_a ? 0 : 1];
    p.n = yd[p.transpose_b ? 0 : 1];
    if (yd[p.transpose_b ? 1 : 0] != p.k) {
      return prep.error().InvalidArgument("Matrix size-incompatible: In[0]: ", x, ", In[1]: ", y);
    }
    const weir_shape xb{x.rank - 2, 0, x.dims}, yb{y.rank - 2, 0, y.dims};
    if (out.rank < 2 || out.dims[out.rank - 2] != p.m || out.dims[out.rank - 1] != p.n ||
        !batches.Plan({xb, yb}, {out.rank - 2, 0, out.dims})) {
      return prep.error().InvalidArgument("In[0] and In[1] must have compatible batch dimensions: ", x, " vs. ", y);
    }
    const bool complex = prep.input(0).dtype == WEIR_COMPLEX64 || prep.input(0).dtype == WEIR_COMPLEX128;
    multiplier.conjugate_a = adjoint_x && complex;
    multiplier.conjugate_b = adjoint_y && complex;
    // Matrices that share y are one taller matrix.
    if (!p.transpose_a && sdk::SizeOf(yb) == 1) {
      p.m *= sdk::SizeOf(xb);
      (void)batches.Plan({weir_shape{}, weir_shape{}}, weir_shape{});
    }
    x_size = p.m * p.k;
    y_size = p.k * p.n;
    out_size = p.m * p.n;
    prep.Scratch(ScratchBytes(prep.input(0).dtype));
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
    return Multiplier::Aligned(x_size) + Multiplier::Aligned(y_size) + Multiplier::Aligned(out_size);
  }

  template <class T>
  void Run(View<const T> x, View<const T> y, View<T> out, sdk::Scratch<char> scratch) const {
    using C = sdk::Compute<T>;
    C* memory = reinterpret_cast<C*>(scratch.data());
    if (out_size == 0) return;
    T* to = out.data();
    batches.ForRuns(0, batches.runs, [&](const std::array<int64_t, 2>& at) {
      for (int64_t i = 0; i < batches.run; ++i, to += out_size) {
        const T* a = x.data() + (at[0] + (batches.advances[0] ? i : 0)) * x_size;
        const T* b = y.data() + (at[1] + (batches.advances[1] ? i : 0)) * y_size;
        if constexpr (std::is_same_v<C, T>) {
          multiplier.Run(a, b, to, memory);
        } else {
          C* wide_a = memory;
          C* wide_b = wide_a + Multiplier::Aligned(x_size);
          C* wide_c = wide_b + Multiplier::Aligned(y_size);
          sdk::Widen(a, wide_a, x_size);
          sdk::Widen(b, wide_b, y_size);
          multiplier.Run(wide_a, wide_b, wide_c, wide_c + Multiplier::Aligned(out_size));
          sdk::Narrow(wide_c, to, out_size);
        }
      }
      return true;
    });
  }

  static sdk::Cost Estimate(const sdk::Prep& prep) {
    const weir_shape& x = prep.shape(0);
    const double n = static_cast<double>(sdk::SizeOf(prep.output(0).shape));
    const double rows = x.rank >= 2 && prep.output(0).shape.rank >= 2
                            ? static_cast<double>(prep.output(0).shape.dims[prep.output(0).shape.rank - 2])
                            : 1;
    const double matrix =
        x.rank >= 2 ? static_cast<double>(x.dims[x.rank - 1]) * static_cast<double>(x.dims[x.rank - 2]) : 1;
    const double k = rows > 0 ? matrix / rows : 0;
    const double elements = n + static_cast<double>(prep.size(0)) + static_cast<double>(prep.size(1));
    return {.flops = 2 * n * k, .bytes = elements * sdk::SizeOf(prep.input(0).dtype)};
  }
};

struct MatMul : Products {
  int32_t Prepare(sdk::Prep& prep) {
    for (const uint32_t i : {0u, 1u}) {
      if (prep.shape(i).rank == 2) continue;
      return prep.error().InvalidArgument("In[", i, "] is not a matrix. Instead it has shape ", prep.shape(i));
    }
    return Plan(prep, false, false, prep.node().Bool("transpose_a"), prep.node().Bool("transpose_b"));
  }
};

struct BatchMatMul : Products {
  int32_t Prepare(sdk::Prep& prep) {
    return Plan(prep, prep.node().Bool("adj_x"), prep.node().Bool("adj_y"), false, false);
  }
};

}  // namespace

void AddMatMul(sdk::KernelTable& k) {
#if defined(WEIR_KERNEL_DTYPES_SHORT)
  constexpr sdk::Types<> kNarrow;
#else
  constexpr sdk::Types<int16_t> kNarrow;
#endif
  constexpr auto kTypes = kFloatingOrComplex + kIndex;
  k.Add<MatMul>("MatMul", kTypes).Class(WEIR_CLASS_GEMM);
  k.Add<BatchMatMul>("BatchMatMul", kTypes).Class(WEIR_CLASS_GEMM);
  k.Add<BatchMatMul>("BatchMatMulV2", kTypes + kNarrow).Class(WEIR_CLASS_GEMM);
}

}  // namespace weir::kernels_eigen
