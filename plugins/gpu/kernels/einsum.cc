// Einsum: the operands are packed where their order in memory is another one, products are taken in shared memory or by
// the vendor's library, and the result is spread over the output.
#include "plugins/functors/einsum_plan.h"

#include <algorithm>
#include <memory>

#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/library_products.h"
#include "plugins/gpu/kernels/moves.h"
#include "plugins/gpu/kernels/tiled.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::EinsumTerm;
using functors::StepsOf;
using functors::Volume;
using sdk::AnyOutput;
using sdk::Env;
using sdk::Prep;

/// A box over axes in row-major order.
Box BoxOf(const std::vector<int64_t>& dims, const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  Box box;
  box.divider = Divider::For(Volume(dims));
  for (size_t d = dims.size(); d-- > 0;) box.axes[box.count++] = {dims[d], from[d], to[d]};
  return box;
}

/// What is added up: floats in double precision, as on the CPU.
template <class C>
using TotalOf = std::conditional_t<std::is_same_v<C, float>, double, C>;

/// The elements of an operand in packed order, summed over the axes that only it has.
template <class S>
struct PackTermWork {
  using C = typename S::C;
  Ptr<const char> from;
  Ptr<C> to;
  Box box, summed;
  int64_t terms;  // of a sum; -1: there are no such axes
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    int64_t at, place;
    box.At(i, &at, &place);
    if (terms < 0) {
      to[place] = storage.Load(from.get(), at);
      return;
    }
    TotalOf<C> total{};
    for (int64_t k = 0; k < terms; ++k) {
      int64_t offset, none;
      summed.At(k, &offset, &none);
      total = functors::Sum(total, static_cast<TotalOf<C>>(storage.Load(from.get(), at + offset)));
    }
    to[place] = static_cast<C>(total);
  }
};

template <class S>
struct SpreadTermWork {
  Ptr<const typename S::C> from;
  Ptr<char> to;
  Box box;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    int64_t at, place;
    box.At(i, &at, &place);
    storage.Store(to.get(), place, from[at]);
  }
};

/// The matrices of one operand; those of a batch lie as `batches` says, in matrices.
template <class C, int kSide>
struct PackedMatrix {
  static constexpr bool kRowsContiguous = false, kColumnsContiguous = true;
  Ptr<const C> data;
  int64_t size, row_step, column_step;
  Box batches;
  WEIR_GPU_FN C operator()(int64_t batch, int64_t i, int64_t j) const {
    int64_t at[2];
    batches.At(batch, &at[0], &at[1]);
    return data[at[kSide] * size + i * row_step + j * column_step];
  }
};
template <class C>
struct PackedResult {
  Ptr<C> data;
  int64_t m, n;
  WEIR_GPU_FN void operator()(int64_t batch, int64_t i, int64_t j, C x) const { data[(batch * m + i) * n + j] = x; }
};

struct Einsum : functors::EinsumPlan {
  int64_t packed[2] = {}, result = 0;          // elements of scratch memory
  std::shared_ptr<const LibraryPlan> library;  // null: tiles

  int32_t Prepare(Prep& prep) {
    if (const int32_t code = Plan(prep); code != WEIR_OK || empty) return code;
    for (const EinsumTerm& term : terms) {
      if (std::max(term.dims.size(), term.summed_dims.size()) > Box::kMostAxes) {
        return prep.error().Unimplemented("operands with more than ", Box::kMostAxes, " axes");
      }
    }
    if (std::max(result_dims.size(), batch_dims.size()) > Box::kMostAxes) {
      return prep.error().Unimplemented("results with more than ", Box::kMostAxes, " axes");
    }
    const uint32_t dtype = prep.input(0).dtype;
    const bool widened = (k16BitBits & WEIR_DTYPE_BIT(dtype)) != 0;
    for (size_t i = 0; i < terms.size(); ++i) packed[i] = terms[i].direct && !widened ? 0 : Volume(terms[i].dims);
    result = terms.size() == 1 || (result_direct && !widened) ? 0 : Volume(result_dims);
    const uint64_t bytes = widened ? 4 : sdk::SizeOf(dtype);
    uint64_t scratch = (Aligned(packed[0]) + Aligned(packed[1]) + Aligned(result)) * bytes;
    if constexpr (kHasProductLibrary) AskLibrary(prep, widened ? uint32_t{WEIR_FLOAT32} : dtype);
    if (library != nullptr) scratch += library->workspace_bytes();
    if (scratch > 0) prep.Scratch(scratch, 256);
    return WEIR_OK;
  }

  int32_t Run(Env& env, sdk::AnyInputs inputs, AnyOutput output, sdk::Scratch<char> scratch) const {
    if (empty) return WEIR_OK;
    int32_t code = WEIR_OK;
    if (diagonal)
      code = Fill(env, output.data(), 0, static_cast<uint64_t>(output.size()) * sdk::SizeOf(output.dtype()));
    if (code != WEIR_OK) return code;
    WithStorage<kFloats | kComplexes>(
        output.dtype(), [&](auto storage) { code = Enqueue(env, inputs, output, scratch.data(), storage); });
    return code;
  }

 private:
  static uint64_t Aligned(int64_t elements) { return static_cast<uint64_t>(elements + 63) / 64 * 64; }

  /// A library has strided batches only: the matrices of each operand lie behind each other, or there is one product.
  void AskLibrary(const Prep& prep, uint32_t dtype) {
    const sdk::Product& p = product;
    const int64_t count = Volume(batch_dims);
    if (terms.size() != 2 || count == 0 || std::min({p.m, p.n, p.k}) == 0) return;
    const std::vector<int64_t> dense = StepsOf(batch_dims);
    for (size_t d = 0; d < dense.size(); ++d) {
      if (batch_dims[d] != 1 && (batch_steps[0][d] != dense[d] || batch_steps[1][d] != dense[d])) return;
    }
    LibraryProduct wanted{dtype, p.m, p.n, p.k, p.transpose_a, p.transpose_b, count};
    wanted.a_step = count == 1 ? 0 : p.m * p.k;
    wanted.b_step = count == 1 ? 0 : p.k * p.n;
    for (uint32_t i = 0; i < 2; ++i) {
      if (packed[i] == 0) wanted.alignment = std::min(wanted.alignment, prep.input(i).alignment);
    }
    if (result == 0) wanted.alignment = std::min(wanted.alignment, prep.output(0).alignment);
    library = PlanInLibrary(wanted, prep.device());
  }

  template <class S>
  int32_t Enqueue(const Env& env, const sdk::AnyInputs& inputs, const AnyOutput& output, char* scratch,
                  S storage) const {
    using C = typename S::C;
    C* memory = reinterpret_cast<C*>(scratch);
    const C* sides[2] = {};
    for (uint32_t i = 0; i < terms.size(); ++i) {
      sides[i] = static_cast<const C*>(inputs[i].data());
      if (packed[i] == 0 && (terms[i].direct || Volume(terms[i].dims) == 0)) continue;
      if (const int32_t code = Pack(env, terms[i], inputs[i], memory, storage); code != WEIR_OK) return code;
      sides[i] = memory;
      memory += Aligned(packed[i]);
    }
    if (terms.size() == 1) return Spread(env, sides[0], output, storage);
    C* const products = result == 0 ? static_cast<C*>(output.data()) : memory;
    const int32_t code = Multiply(env, sides[0], sides[1], products, memory + Aligned(result));
    return code != WEIR_OK || result == 0 ? code : Spread(env, static_cast<const C*>(products), output, storage);
  }

  template <class S>
  static int32_t Pack(const Env& env, const EinsumTerm& term, const sdk::AnyInput& x, typename S::C* to, S storage) {
    const std::vector<int64_t> none(term.summed_dims.size(), 0);
    const int64_t sums = term.summed_dims.empty() ? -1 : Volume(term.summed_dims);
    return Launch(env, Volume(term.dims),
                  PackTermWork<S>{From(x), to, BoxOf(term.dims, term.from, StepsOf(term.dims)),
                                  BoxOf(term.summed_dims, term.summed_from, none), sums, storage});
  }

  template <class C>
  int32_t Multiply(const Env& env, const C* x, const C* y, C* to, C* workspace) const {
    if (library != nullptr) return library->Enqueue(env, x, y, to, workspace);
    const sdk::Product& p = product;
    const Box batches = BoxOf(batch_dims, batch_steps[0], batch_steps[1]);
    using Left = PackedMatrix<C, 0>;
    using Right = PackedMatrix<C, 1>;
    const Left left{x, p.m * p.k, p.transpose_a ? 1 : p.k, p.transpose_a ? p.m : 1, batches};
    const Right right{y, p.k * p.n, p.transpose_b ? 1 : p.n, p.transpose_b ? p.k : 1, batches};
    return TiledProduct<C, Left, Right, PackedResult<C>>(p.m, p.n, p.k, left, right, PackedResult<C>{to, p.m, p.n})
        .Enqueue(env, Volume(batch_dims));
  }

  template <class S>
  int32_t Spread(const Env& env, const typename S::C* from, const AnyOutput& output, S storage) const {
    return Launch(env, Volume(result_dims),
                  SpreadTermWork<S>{from, To(output), BoxOf(result_dims, StepsOf(result_dims), result_to), storage});
  }
};

}  // namespace

void AddEinsum(sdk::KernelTable& k) {
  k.Add<Einsum>("Einsum").Restrict("T", kFloatingBits | kComplexBits).Class(WEIR_CLASS_GEMM);
}

}  // namespace weir::gpu
