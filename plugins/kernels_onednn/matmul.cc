// MatMul and the batched products in float.
#include <algorithm>
#include <utility>

#include "plugins/functors/biased_product.h"
#include "plugins/functors/finish_rows.h"
#include "plugins/kernels_onednn/families.h"
#include "plugins/kernels_onednn/library.h"
#include "plugins/kernels_onednn/packed.h"
#include "plugins/kernels_onednn/primitive.h"
#include "sdk/cpp/cpu.h"
#include "sdk/cpp/kernel.h"
#include "sdk/cpp/products.h"

namespace weir::kernels_onednn {
namespace {

using sdk::Product;

constexpr double kTileFlops = 4e6;  // work of a tile: ten times the cost of starting it on another thread

/// oneDNN has two implementations of products. Only the shapes decide which one runs.
enum class Way {
  kGemm,    // BLAS function: packs both operands
  kMatMul,  // primitive on the unpacked b: better for transposed b (copied into blocks), narrow b and small products
  kPacked,  // primitive on a constant b that was reordered into oneDNN's layout once
};

Way WayOf(const Product& p, int64_t count, bool constant_b) {
  if (p.m == 1 || p.n == 1) return Way::kGemm;
  if (constant_b && count == 1) return Way::kPacked;
  const bool large = std::min({p.m, p.n, p.k}) > 640;
  const bool narrow = p.n <= 32 && !p.transpose_a;
  const bool small = !p.transpose_a && p.m >= 64 && p.m * p.n * p.k <= int64_t{1} << 25;
  return narrow || small || (p.transpose_b && !large) ? Way::kMatMul : Way::kGemm;
}

/// Shares of the core's peak that oneDNN's products reach on one kind of processor. Version 2.6 has blocked code for
/// AVX-512 only. Fitted to runs, like the constants of the other kernel sets, so that estimates are comparable.
struct Rates {
  double gemm, matmul, packed;
  double element_ns;       // of the BLAS function, to pack an element of an operand
  double b_ns;             // of the primitive, to copy one of b
  double even_rows_share;  // of these, where rows of an operand are a multiple of 2 KiB
  double call_ns;          // of the BLAS function
  double primitive_ns;     // of a call of the primitive
  double vector;           // bytes per ns of products with one row or column, and of a packed b
};
constexpr Rates kRates[] = {
    {0.60, 0.50, 0.50, 0.10, 0.1, 0.9, 750, 1000, 11},   // baseline
    {0.62, 0.58, 0.40, 0.10, 0.1, 0.85, 750, 1000, 11},  // amd-avx2
    {0.97, 0.95, 0.985, 0.01, 0.1, 1, 750, 1000, 11},    // amd-avx512
    {0.95, 0.93, 0.985, 0.03, 0.065, 1, 200, 280, 80},   // amd-zen5
    {0.75, 0.70, 0.50, 0.10, 0.1, 0.85, 750, 1000, 11},  // intel-avx2
    {0.85, 0.85, 0.87, 0.06, 0.1, 1, 750, 1000, 11},     // intel-avx512
};

/// oneDNN's time for one product, in ns, on a core with this peak.
double ProductNs(const Product& p, Way way, double peak) {
  const Rates& rates = kRates[static_cast<size_t>(sdk::ThisCpuClass())];
  const double m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
  const double flops = 2 * m * n * k / (p.n % 512 == 0 ? rates.even_rows_share * peak : peak);
  if (p.m == 1 || p.n == 1) return rates.primitive_ns / 2 + (m * k + k * n) * 4 / rates.vector;
  if (way == Way::kPacked) {
    return rates.primitive_ns + std::max(flops / rates.packed, k * n * 4 / rates.vector);
  }
  if (way == Way::kMatMul) return rates.primitive_ns + flops / rates.matmul + rates.b_ns * k * n;
  return rates.call_ns + flops / rates.gemm + rates.element_ns * (m * k + k * n);
}

template <int32_t (sdk::Products::*kPlan)(const sdk::Prep&)>
struct MatMul {
  sdk::Products products;
  Way way = Way::kGemm;
  Primitive primitive;
  PackedArray packed;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = (products.*kPlan)(prep); code != WEIR_OK) return code;
    const Product& p = products.one();
    if (p.k == 0 || products.c_size() == 0) return WEIR_OK;
    const weir_tensor* b = prep.input(1).value;
    const bool constant_b = b != nullptr && b->buf.host != nullptr;
    way = WayOf(p, products.count(), constant_b);
    if (const int32_t code = LoadOneDnn(prep.error()); code != WEIR_OK) return code;
    const OneThread one;
    if (way != Way::kGemm) {
      if (const int32_t code = MakePrimitive(prep, constant_b ? b->buf.host : nullptr); code != WEIR_OK) return code;
    }
    if (way == Way::kGemm || products.count() > 1) products.Tile(prep, kTileFlops);
    return WEIR_OK;
  }

  int32_t MakePrimitive(sdk::Prep& prep, const void* constant_b) {
    const Product& p = products.one();
    const dnnl_dims_t a_dims = {p.m, p.k}, b_dims = {p.k, p.n}, c_dims = {p.m, p.n};
    const dnnl_dims_t a_steps = {p.transpose_a ? 1 : p.k, p.transpose_a ? p.m : 1};
    const dnnl_dims_t b_steps = {p.transpose_b ? 1 : p.n, p.transpose_b ? p.k : 1};
    const dnnl_dims_t c_steps = {p.n, 1};
    dnnl_memory_desc_t a, b, b_open, c;
    dnnl_matmul_desc_t desc;
    const bool made =
        OneDnn().dnnl_memory_desc_init_by_strides(&a, 2, a_dims, dnnl_f32, a_steps) == dnnl_success &&
        OneDnn().dnnl_memory_desc_init_by_strides(&b, 2, b_dims, dnnl_f32, b_steps) == dnnl_success &&
        OneDnn().dnnl_memory_desc_init_by_tag(&b_open, 2, b_dims, dnnl_f32, dnnl_format_tag_any) == dnnl_success &&
        OneDnn().dnnl_memory_desc_init_by_strides(&c, 2, c_dims, dnnl_f32, c_steps) == dnnl_success &&
        OneDnn().dnnl_matmul_desc_init(&desc, &a, way == Way::kPacked ? &b_open : &b, nullptr, &c) == dnnl_success;
    if (!made) return prep.error().Unimplemented("oneDNN takes no product of this shape");
    if (const int32_t code = primitive.Make(&desc, {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}, prep.error());
        code != WEIR_OK) {
      return code;
    }
    if (primitive.scratch_bytes() != 0) prep.Scratch(primitive.scratch_bytes());
    if (way != Way::kPacked) return WEIR_OK;
    return Pack(b, constant_b, p.k * p.n, primitive.desc(1), prep.error(), &packed);
  }

  int32_t Run(sdk::Env& env, sdk::View<const float> x, sdk::View<const float> y, sdk::View<float> out,
              sdk::Scratch<char> scratch) const {
    return MultiplyAll(env, x, y, out, scratch, [](float*, int64_t) {});
  }

  /// Calls finish(c, rows) for each part of the result when it is made.
  template <class Finish>
  int32_t MultiplyAll(sdk::Env& env, sdk::View<const float> x, sdk::View<const float> y, sdk::View<float> out,
                      sdk::Scratch<char> scratch, Finish&& finish) const {
    const Product& p = products.one();
    if (products.c_size() == 0) return WEIR_OK;
    if (p.k == 0) {
      std::fill(out.data(), out.data() + products.count() * products.c_size(), 0.0f);
      finish(out.data(), products.count() * p.m);
      return WEIR_OK;
    }
    const OneThread one;
    int32_t code = WEIR_OK;
    products.ForTiles(env, x.data(), y.data(), out.data(), [&](const float* a, const float* b, float* c, int64_t rows) {
      const int32_t step = Multiply(env, rows, a, b, c, scratch.data());
      if (code == WEIR_OK) code = step;
      finish(c, rows);
    });
    return code;
  }

  int32_t Multiply(sdk::Env& env, int64_t rows, const float* a, const float* b, float* c, void* scratch) const {
    const Product& p = products.one();
    const float* const right = packed != nullptr ? packed.get() : b;
    if (way != Way::kGemm) return primitive.Run({a, right, c, scratch}, env.error());
    const dnnl_status_t status = OneDnn().dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', rows, p.n,
                                                     p.k, 1, a, p.lda(), b, p.ldb(), 0, c, p.n);
    if (status == dnnl_success) return WEIR_OK;
    return env.error().Fail(WEIR_INTERNAL, "oneDNN: sgemm gave status ", static_cast<int>(status));
  }

  static sdk::Cost Estimate(const sdk::Prep& prep, const weir_profile* profile) {
    return sdk::EstimateProducts(kPlan, prep, [&](const sdk::Products& products) {
      const weir_tensor* b = prep.input(1).value;
      const Way way = WayOf(products.one(), products.count(), b != nullptr && b->buf.host != nullptr);
      return static_cast<double>(products.count()) *
             ProductNs(products.one(), way, sdk::PeakFlops(profile, WEIR_FLOAT32));
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

  int32_t Run(sdk::Env& env, sdk::View<const float> x, sdk::View<const float> y, sdk::View<const float> bias,
              sdk::View<float> out, sdk::Scratch<char> scratch) const {
    return product.MultiplyAll(env, x, y, out, scratch, [&](float* c, int64_t rows) {
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
    products.Tile(prep, kTileFlops);
    return LoadOneDnn(prep.error());
  }

  int32_t Run(sdk::Env& env, sdk::Variable<float> var, sdk::View<const float> alpha, sdk::View<const float> x,
              sdk::View<const float> y) const {
    if (alpha.shape().rank != 0) return env.error().InvalidArgument("alpha is not a scalar: ", alpha.shape());
    const Product& p = products.one();
    if (p.k == 0 || products.c_size() == 0) return WEIR_OK;
    const OneThread one;
    dnnl_status_t status = dnnl_success;
    products.ForTiles(env, x.data(), y.data(), var.data(), [&](const float* a, const float* b, float* c, int64_t rows) {
      if (alpha[0] == 0) return sdk::SubtractNothing(p, rows, a, b, c);
      const dnnl_status_t step = OneDnn().dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', rows, p.n,
                                                     p.k, -alpha[0], a, p.lda(), b, p.ldb(), 1, c, p.n);
      if (status == dnnl_success) status = step;
    });
    if (status == dnnl_success) return WEIR_OK;
    return env.error().Fail(WEIR_INTERNAL, "oneDNN: sgemm gave status ", static_cast<int>(status));
  }

  static sdk::Cost Estimate(const sdk::Prep& prep, const weir_profile* profile) {
    return sdk::EstimateProducts(&sdk::Products::PlanMatMulUpdate, prep, [&](const sdk::Products& products) {
      return ProductNs(products.one(), Way::kGemm, sdk::PeakFlops(profile, WEIR_FLOAT32));
    });
  }
};

}  // namespace

void AddMatMul(sdk::KernelTable& k) {
  for (const char* op : {"_ApplyGradientDescentMatMul", "_ResourceApplyGradientDescentMatMul"}) {
    k.Add<DescentByProduct>(op).Restrict("T", {WEIR_FLOAT32}).Class(WEIR_CLASS_GEMM);
  }
  k.Add<MatMul<&sdk::Products::PlanMatMul>>("MatMul").Restrict("T", {WEIR_FLOAT32}).Class(WEIR_CLASS_GEMM);
  k.Add<BiasedMatMul>("_BiasedMatMul").Restrict("T", {WEIR_FLOAT32}).Class(WEIR_CLASS_GEMM);
  for (const char* op : {"BatchMatMul", "BatchMatMulV2"}) {
    k.Add<MatMul<&sdk::Products::PlanBatchMatMul>>(op).Restrict("T", {WEIR_FLOAT32}).Class(WEIR_CLASS_GEMM);
  }
}

}  // namespace weir::kernels_onednn
