// Einsum: each operand becomes a batch of matrices with the summed axes of its own gone, and their products are taken.
#include <algorithm>

#include "plugins/functors/einsum_plan.h"
#include "plugins/kernels_eigen/array_families.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/kernels/gemm.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using functors::EinsumTerm;
using functors::Volume;
using sdk::Prep;

/// Calls body(from, to, n, from_step, to_step) for each innermost row of a box.
template <class Body>
void ForRows(const std::vector<int64_t>& dims, const std::vector<int64_t>& from_steps,
             const std::vector<int64_t>& to_steps, Body&& body) {
  if (Volume(dims) == 0) return;
  const size_t rank = dims.size();
  if (rank == 0) return body(int64_t{0}, int64_t{0}, int64_t{1}, int64_t{0}, int64_t{0});
  std::vector<int64_t> index(rank, 0);
  int64_t from = 0, to = 0;
  while (true) {
    body(from, to, dims[rank - 1], from_steps[rank - 1], to_steps[rank - 1]);
    size_t i = rank - 1;
    for (; i-- > 0;) {
      from += from_steps[i];
      to += to_steps[i];
      if (++index[i] < dims[i]) break;
      from -= dims[i] * from_steps[i];
      to -= dims[i] * to_steps[i];
      index[i] = 0;
    }
    if (i == static_cast<size_t>(-1)) return;
  }
}

/// Packs the elements of an operand, summed over the axes that only it has.
template <class T, class C>
void GatherTerm(const EinsumTerm& term, const T* x, C* packed) {
  using Wide = std::conditional_t<std::is_same_v<C, float>, double, C>;
  const std::vector<int64_t> none(term.summed_dims.size(), 0);
  ForRows(term.dims, term.from, StepsOf(term.dims),
          [&](int64_t at, int64_t to, int64_t n, int64_t step, int64_t to_step) {
            for (int64_t i = 0; i < n; ++i) {
              if (term.summed_dims.empty()) {
                packed[to + i * to_step] = static_cast<C>(x[at + i * step]);
                continue;
              }
              Wide sum(0);
              ForRows(term.summed_dims, term.summed_from, none,
                      [&](int64_t first, int64_t, int64_t m, int64_t inner, int64_t) {
                        const T* const row = x + at + i * step + first;
                        for (int64_t k = 0; k < m; ++k)
                          sum = Sum(sum, static_cast<Wide>(static_cast<C>(row[k * inner])));
                      });
              packed[to + i * to_step] = static_cast<C>(sum);
            }
          });
}

template <class T>
constexpr bool kEinsumGemm =
    std::is_floating_point_v<T> || std::is_same_v<T, sdk::complex64> || std::is_same_v<T, sdk::complex128>;
constexpr double kWorthPacking = 32 * 32 * 32;

/// c = op(a) op(b) by plain loops.
template <class T>
void PlainProduct(const sdk::Product& p, const T* a, const T* b, T* c) {
  std::fill_n(c, p.m * p.n, T(0));
  for (int64_t i = 0; i < p.m; ++i) {
    T* const row = c + i * p.n;
    for (int64_t q = 0; q < p.k; ++q) {
      const T factor = a[p.transpose_a ? q * p.m + i : i * p.k + q];
      const T* const right = p.transpose_b ? b + q : b + q * p.n;
      const int64_t step = p.transpose_b ? p.k : 1;
      for (int64_t j = 0; j < p.n; ++j) row[j] = Sum(row[j], Product(factor, right[j * step]));
    }
  }
}

struct Einsum : functors::EinsumPlan {
  GemmBlocks blocks;
  int64_t packed[2] = {}, result = 0, packing = 0;  // elements of scratch memory

  int32_t Prepare(Prep& prep) {
    if (const int32_t code = Plan(prep); code != WEIR_OK || empty) return code;
    const uint32_t dtype = prep.input(0).dtype;
    const bool widened = dtype == WEIR_FLOAT16 || dtype == WEIR_BFLOAT16;
    for (size_t i = 0; i < terms.size(); ++i) packed[i] = terms[i].direct && !widened ? 0 : Volume(terms[i].dims);
    result = terms.size() == 1 || (result_direct && !widened) ? 0 : Volume(result_dims);
    const uint64_t bytes = widened ? 4 : sdk::SizeOf(dtype);
    if (terms.size() == 2) PlanPacking(dtype);
    prep.Scratch((Aligned(packed[0]) + Aligned(packed[1]) + Aligned(result) + Aligned(packing)) * bytes);
    return WEIR_OK;
  }

  template <class T>
  void Run(sdk::Views<const T> inputs, sdk::View<T> output, sdk::Scratch<char> scratch) const {
    using C = sdk::Compute<T>;
    if (empty) return;
    C* memory = reinterpret_cast<C*>(scratch.data());
    T* const to = output.data();
    if (diagonal) std::fill_n(to, output.size(), T());
    if (terms.size() == 1) {
      C* const one = memory;
      const C* values = one;
      if constexpr (std::is_same_v<C, T>) {
        if (terms[0].direct) values = inputs[0].data();
      }
      if (values == one) GatherTerm(terms[0], inputs[0].data(), one);
      return Scatter(values, to);
    }
    const C* sides[2] = {};
    for (uint32_t i = 0; i < 2; ++i) {
      if constexpr (std::is_same_v<C, T>) {
        if (terms[i].direct) sides[i] = inputs[i].data();
      }
      if (sides[i] != nullptr) continue;
      GatherTerm(terms[i], inputs[i].data(), memory);
      sides[i] = memory;
      memory += Aligned(packed[i]);
    }
    C* products = memory;
    if constexpr (std::is_same_v<C, T>) {
      if (result_direct) products = to;
    }
    Multiply(sides[0], sides[1], products, memory + Aligned(result));
    if (static_cast<void*>(products) != static_cast<void*>(to)) Scatter(static_cast<const C*>(products), to);
  }

 private:
  static uint64_t Aligned(int64_t elements) { return static_cast<uint64_t>(elements + 63) / 64 * 64; }

  bool Packs() const { return product.m > 1 && product.n > 1 && product.k > 0 && product.Flops() / 2 > kWorthPacking; }
  void PlanPacking(uint32_t dtype) {
    if (!Packs()) return;
    switch (dtype) {
      case WEIR_FLOAT16:
      case WEIR_BFLOAT16:
      case WEIR_FLOAT32:
        blocks = PlanGemm<float>(product);
        break;
      case WEIR_FLOAT64:
        blocks = PlanGemm<double>(product);
        break;
#if !defined(WEIR_KERNEL_DTYPES_SHORT)
      case WEIR_COMPLEX64:
        blocks = PlanGemm<sdk::complex64>(product);
        break;
      case WEIR_COMPLEX128:
        blocks = PlanGemm<sdk::complex128>(product);
        break;
#endif
      default:
        return;
    }
    packing = blocks.Elements();
  }

  template <class C>
  void Multiply(const C* x, const C* y, C* products, C* memory) const {
    const sdk::Product& p = product;
    std::vector<int64_t> strides[2];
    const int64_t sizes[2] = {p.m * p.k, p.k * p.n};
    for (int i = 0; i < 2; ++i) {
      for (const int64_t step : batch_steps[i]) strides[i].push_back(step * sizes[i]);
    }
    C* to = products;
    ForRows(batch_dims, strides[0], strides[1],
            [&](int64_t a, int64_t b, int64_t count, int64_t a_step, int64_t b_step) {
              for (int64_t i = 0; i < count; ++i, to += p.m * p.n) {
                if constexpr (kEinsumGemm<C>) {
                  if (Packs()) {
                    Gemm(p, blocks, x + a + i * a_step, y + b + i * b_step, to, memory);
                    continue;
                  }
                }
                PlainProduct(p, x + a + i * a_step, y + b + i * b_step, to);
              }
            });
  }

  template <class C, class T>
  void Scatter(const C* values, T* to) const {
    ForRows(result_dims, StepsOf(result_dims), result_to,
            [&](int64_t from, int64_t at, int64_t n, int64_t step, int64_t to_step) {
              for (int64_t i = 0; i < n; ++i) to[at + i * to_step] = static_cast<T>(values[from + i * step]);
            });
  }
};

}  // namespace

void AddEinsum(sdk::KernelTable& k) { k.Add<Einsum>("Einsum", kFloatingOrComplex + kIndex).Class(WEIR_CLASS_GEMM); }

}  // namespace weir::kernels_eigen
