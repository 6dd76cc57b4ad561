// Products of operands of two types: BatchMatMulV3 of 8-bit integers and bfloat16, SparseMatMul.
#include <algorithm>
#include <type_traits>

#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/kernel.h"
#include "sdk/cpp/products.h"

namespace weir::kernels_eigen {
namespace {

using sdk::View;

/// Both operands converted to int32 or float, in scratch memory, and multiplied there. Zeros in a are skipped if it is
/// declared to have many.
template <int32_t (sdk::Products::*kPlan)(const sdk::Prep&)>
struct MixedProduct {
  sdk::Products products;
  int64_t sizes[3] = {};
  bool skips_zeros = false;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = (products.*kPlan)(prep); code != WEIR_OK) return code;
    skips_zeros = prep.node().Bool("a_is_sparse");
    if (HasNoElements(prep.output(0).shape)) return WEIR_OK;
    sizes[0] = HasNoElements(prep.shape(0)) ? 0 : prep.size(0);
    sizes[1] = HasNoElements(prep.shape(1)) ? 0 : prep.size(1);
    sizes[2] = sdk::SizeOf(prep.output(0).shape);
    prep.Scratch(static_cast<uint64_t>(sizes[0] + sizes[1] + sizes[2]) * 4);
    return WEIR_OK;
  }

  template <class A, class B, class O>
  void Run(sdk::Env& env, View<const A> x, View<const B> y, View<O> out, sdk::Scratch<char> scratch) const {
    using C = std::conditional_t<std::is_same_v<O, int32_t>, int32_t, float>;
    if (sizes[2] == 0) return;
    C* const a = reinterpret_cast<C*>(scratch.data());
    C* const b = a + sizes[0];
    C* const c = b + sizes[1];
    for (int64_t i = 0; i < sizes[0]; ++i) a[i] = static_cast<C>(x[i]);
    for (int64_t i = 0; i < sizes[1]; ++i) b[i] = static_cast<C>(y[i]);
    std::fill_n(c, sizes[2], C(0));
    products.ForTiles(env, static_cast<const C*>(a), static_cast<const C*>(b), c,
                      [&](const C* left, const C* right, C* to, int64_t) { Multiply(left, right, to); });
    for (int64_t i = 0; i < sizes[2]; ++i) out[i] = static_cast<O>(c[i]);
  }

 private:
  template <class C>
  void Multiply(const C* a, const C* b, C* c) const {
    const sdk::Product& p = products.one();
    for (int64_t i = 0; i < p.m; ++i) {
      C* const row = c + i * p.n;
      for (int64_t q = 0; q < p.k; ++q) {
        const C factor = a[p.transpose_a ? q * p.m + i : i * p.k + q];
        if (skips_zeros && factor == C(0)) continue;
        const C* const from = p.transpose_b ? b + q : b + q * p.n;
        const int64_t step = p.transpose_b ? p.k : 1;
        for (int64_t j = 0; j < p.n; ++j) row[j] = Sum(row[j], Product(factor, from[j * step]));
      }
    }
  }
};

using MixedMatMul = MixedProduct<&sdk::Products::PlanMatMul>;
using MixedBatchMatMul = MixedProduct<&sdk::Products::PlanBatchMatMul>;

}  // namespace

void AddMixedMatMul(sdk::KernelTable& k) {
#if defined(WEIR_KERNEL_DTYPES_SHORT)
  k.Add<MixedMatMul>("SparseMatMul", sdk::Attr("Ta", sdk::Types<float>()), sdk::Attr("Tb", sdk::Types<float>()),
                     sdk::Attr("", sdk::Types<float>()))
      .Class(WEIR_CLASS_GEMM);
#else
  constexpr auto kBytes = sdk::Types<int8_t, uint8_t>();
  constexpr auto kHalfFloat = sdk::Types<sdk::bfloat16>();
  constexpr auto kSides = sdk::Types<float, sdk::bfloat16>();
  k.Add<MixedMatMul>("SparseMatMul", sdk::Attr("Ta", kSides), sdk::Attr("Tb", kSides),
                     sdk::Attr("", sdk::Types<float>()))
      .Class(WEIR_CLASS_GEMM);
  const auto add = [&](auto left, auto right, auto out) {
    k.Add<MixedBatchMatMul>("BatchMatMulV3", sdk::Attr("Ta", left), sdk::Attr("Tb", right), sdk::Attr("Tout", out))
        .Class(WEIR_CLASS_GEMM);
  };
  add(kBytes, kBytes, sdk::Types<int32_t>());
  add(kBytes, kHalfFloat, kHalfFloat);
  add(kHalfFloat, kBytes, kHalfFloat);
#endif
}

}  // namespace weir::kernels_eigen
