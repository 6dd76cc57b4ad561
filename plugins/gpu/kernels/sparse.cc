// Sparse matrices beside dense arrays, rows changed in a copy, and whole arrays. Entries of one place are sorted, so
// that their order is the CPU's. As in TensorFlow's kernels for GPUs, entries out of range do nothing.
#include "plugins/functors/arithmetic.h"
#include "plugins/functors/inplace_plans.h"
#include "plugins/functors/sparse_checks.h"
#include "plugins/gpu/kernels/changed_rows.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/moves.h"
#include "plugins/gpu/kernels/sorting.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Buffer;
using sdk::Context;
using sdk::Env;
using sdk::Prep;

/// Integers of any width in the memory of a dynamic kernel.
struct EntryIndices {
  Ptr<const char> data;
  Integer storage;
  explicit EntryIndices(const Buffer<const void>& x)
      : data(static_cast<const char*>(AddressOf(x))), storage{x.dtype()} {}
  WEIR_GPU_FN int64_t operator[](int64_t i) const { return storage.Load(data.get(), i); }
};

/// The row of an entry [row, column]; entries out of range belong nowhere.
struct EntryRowKey {
  EntryIndices indices;
  int64_t row_at, rows, inner;  // row_at: 0 or 1
  WEIR_GPU_FN uint64_t operator()(int64_t i) const {
    const int64_t row = indices[2 * i + row_at], k = indices[2 * i + 1 - row_at];
    const bool inside = row >= 0 && row < rows && k >= 0 && k < inner;
    return inside ? static_cast<uint64_t>(row) : kNowhere;
  }
};

template <class S>
struct SparseProductWork {
  using C = typename S::C;
  Ptr<const KeyedPlace> order;
  EntryIndices indices;
  Ptr<const char> values, b;
  Ptr<char> to;
  int64_t count, columns, inner;
  bool adjoint_a, adjoint_b;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t row = i / columns, j = i % columns;
    C sum{};
    const auto key = static_cast<uint64_t>(row);
    for (int64_t e = LowerBound(order.get(), count, key); e < count && order[e].key == key; ++e) {
      const int64_t place = order[e].place, k = indices[2 * place + (adjoint_a ? 0 : 1)];
      C x = storage.Load(values.get(), place), y = storage.Load(b.get(), adjoint_b ? j * inner + k : k * columns + j);
      if (adjoint_a) x = functors::Conjugated(x);
      if (adjoint_b) y = functors::Conjugated(y);
      sum = functors::Sum(sum, functors::Product(x, y));
    }
    storage.Store(to.get(), i, sum);
  }
};

struct SparseTensorDenseMatMul {
  bool adjoint_a = false, adjoint_b = false;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    adjoint_a = node.Bool("adjoint_a");
    adjoint_b = node.Bool("adjoint_b");
    return WEIR_OK;
  }
  int32_t Compute(Context& ctx) {
    Buffer<const void> indices, values, b;
    sdk::View<const int64_t> shape;
    int32_t code = ctx.Input(0, &indices);
    if (code == WEIR_OK) code = ctx.Input(1, &values);
    if (code == WEIR_OK) code = ctx.Input(2, &shape);
    if (code == WEIR_OK) code = ctx.Input(3, &b);
    if (code != WEIR_OK) return code;
    code = functors::CheckSparseProduct(ctx.error(), indices.shape(), values.shape(), shape, b.shape(), adjoint_a,
                                        adjoint_b);
    if (code != WEIR_OK) return code;
    const int64_t rows = shape[adjoint_a ? 1 : 0], inner = shape[adjoint_a ? 0 : 1];
    const int64_t columns = b.shape().dims[adjoint_b ? 0 : 1], count = values.size();
    const int64_t dims[] = {rows, columns};
    Buffer<void> product;
    if (code = ctx.Output(0, weir_shape{2, 0, dims}, &product); code != WEIR_OK) return code;
    if (functors::HasNoElements(product.shape())) return WEIR_OK;
    weir_buf order{};
    if (code = ctx.Temp(std::max<uint64_t>(SortBytes(count), 64), WEIR_SPACE_DEVICE, &order); code != WEIR_OK) {
      return code;
    }
    auto* const pairs = reinterpret_cast<KeyedPlace*>(order.handle + order.offset);
    const EntryRowKey key{EntryIndices(indices), adjoint_a ? 1 : 0, rows, inner};
    if (code = SortPlaces(StreamOf(ctx), count, pairs, key, ctx.error()); code != WEIR_OK) return code;
    Outcome launched;
    const auto bytes = [](const Buffer<const void>& x) {
      return Ptr<const char>(static_cast<const char*>(AddressOf(x)));
    };
    WithStorage<kFloats | kIntegers | kComplexes>(values.dtype(), [&](auto storage) {
      launched = Launch(StreamOf(ctx), product.size(),
                        SparseProductWork<decltype(storage)>{
                            Ptr<const KeyedPlace>(pairs), EntryIndices(indices), bytes(values), bytes(b),
                            Ptr<char>(static_cast<char*>(AddressOf(product))), count, columns, inner, adjoint_a,
                            adjoint_b, storage});
    });
    return launched.Tell(ctx.error(), "launch");
  }
};

/// The place of an entry in a dense array.
struct EntryPlaceKey {
  static constexpr uint32_t kMostAxes = 16;
  EntryIndices indices;
  uint32_t rank;
  int64_t dims[kMostAxes];
  WEIR_GPU_FN uint64_t operator()(int64_t i) const {
    int64_t at = 0;
    for (uint32_t d = 0; d < rank; ++d) {
      const int64_t index = indices[i * rank + d];
      if (index < 0 || index >= dims[d]) return kNowhere;
      at = at * dims[d] + index;
    }
    return static_cast<uint64_t>(at);
  }
};
template <class E>
struct FillAllWork {
  Ptr<const E> value;
  Ptr<E> to;
  WEIR_GPU_FN void operator()(int64_t i) const { to[i] = value[0]; }
};
/// The last of equal places is stored.
template <class E>
struct StoreLastWork {
  Ptr<const KeyedPlace> order;
  Ptr<const E> values;
  Ptr<E> to;
  int64_t count, step;  // 0: one value for all
  WEIR_GPU_FN void operator()(int64_t k) const {
    const uint64_t key = order[k].key;
    if (key == kNowhere || (k + 1 < count && order[k + 1].key == key)) return;
    to[static_cast<int64_t>(key)] = values[order[k].place * step];
  }
};
struct SparseToDense {
  int32_t Compute(Context& ctx) {
    Buffer<const void> indices, values, otherwise;
    sdk::Integers shape;
    int32_t code = ctx.Input(0, &indices);
    if (code == WEIR_OK) code = ctx.Input(1, &shape);
    if (code == WEIR_OK) code = ctx.Input(2, &values);
    if (code == WEIR_OK) code = ctx.Input(3, &otherwise);
    if (code != WEIR_OK) return code;
    const sdk::Error& error = ctx.error();
    code = functors::CheckSparseToDense(error, indices.shape(), shape, values.shape(), otherwise.rank());
    if (code != WEIR_OK) return code;
    const int64_t count = indices.rank() > 0 ? indices.shape().dims[0] : 1;
    std::vector<int64_t> dims;
    for (int64_t d = 0; d < shape.size(); ++d) dims.push_back(shape[d]);
    if (dims.size() > EntryPlaceKey::kMostAxes) {
      return error.Unimplemented("arrays with more than ", EntryPlaceKey::kMostAxes, " axes");
    }
    Buffer<void> dense;
    if (code = ctx.Output(0, functors::ShapeOf(dims), &dense); code != WEIR_OK) return code;
    if (functors::HasNoElements(dense.shape())) return WEIR_OK;
    weir_buf order{};
    code = ctx.Temp(std::max<uint64_t>(SortBytes(count), 64), WEIR_SPACE_DEVICE, &order);
    if (code != WEIR_OK) return code;
    auto* const pairs = reinterpret_cast<KeyedPlace*>(order.handle + order.offset);
    EntryPlaceKey key{EntryIndices(indices), static_cast<uint32_t>(dims.size()), {}};
    std::copy(dims.begin(), dims.end(), key.dims);
    if (code = SortPlaces(StreamOf(ctx), count, pairs, key, error); code != WEIR_OK) return code;
    return functors::ForBytes(sdk::SizeOf(dense.dtype()), [&](auto element) {
      using E = decltype(element);
      const Ptr<E> to(static_cast<E*>(AddressOf(dense)));
      const Ptr<const E> from(static_cast<const E*>(AddressOf(values)));
      const Outcome filled =
          Launch(StreamOf(ctx), dense.size(),
                 FillAllWork<E>{Ptr<const E>(static_cast<const E*>(AddressOf(otherwise))), to});
      if (!filled.ok()) return filled.Tell(error, "launch");
      const int64_t step = values.rank() == 0 ? 0 : 1;
      return Launch(StreamOf(ctx), count, StoreLastWork<E>{Ptr<const KeyedPlace>(pairs), from, to, count, step})
          .Tell(error, "launch");
    });
  }
};

/// The row that an index names, which is never out of range.
struct InplaceKey {
  Indices indices;
  functors::InplacePlan plan;
  WEIR_GPU_FN uint64_t operator()(int64_t i) const { return static_cast<uint64_t>(plan.At(indices[i]) * plan.row); }
};
struct ReplaceRow {
  template <class C>
  WEIR_HD C operator()(C, C x) const {
    return x;
  }
};
template <class Change, unsigned kKinds>
struct Inplace : functors::InplacePlan {
  int32_t Prepare(Prep& prep) {
    const int32_t code = InplacePlan::Prepare(prep);
    if (code == WEIR_OK && !empty && prep.size(1) > 0) prep.Scratch(SortBytes(prep.size(1)));
    return code;
  }
  int32_t Run(Env& env, AnyInput x, AnyInput indices, AnyInput v, AnyOutput y, sdk::Scratch<char> scratch) const {
    if (empty) return WEIR_OK;
    int32_t code = WEIR_OK;
    const int64_t n = indices.size();
    if (y.data() != x.data()) {
      code = Copy(env, y.data(), x.data(), static_cast<uint64_t>(y.size()) * sdk::SizeOf(y.dtype()));
    }
    if (code != WEIR_OK || n == 0) return code;
    code = SortPlaces(StreamOf(env), n, scratch.data(), InplaceKey{Indices(indices), *this}, env.error());
    if (code != WEIR_OK) return code;
    const Ptr<const KeyedPlace> order(static_cast<const KeyedPlace*>(static_cast<const void*>(scratch.data())));
    WithStorage<kKinds>(y.dtype(), [&](auto storage) {
      using Element = ElementChange<Change, decltype(storage)>;
      const Element change{From(v), To(y), 1, storage};
      code = Launch(env, n * row, ChangedRowsWork<Element>{order, n, row, change});
    });
    return code;
  }
};

struct Empty : functors::EmptyPlan {
  int32_t Run(Env& env, sdk::HostIntegers, AnyOutput y) const {
    if (functors::HasNoElements(y.shape())) return WEIR_OK;
    return Fill(env, y.data(), 0, static_cast<uint64_t>(y.size()) * sdk::SizeOf(y.dtype()));
  }
};
struct ParallelConcat : functors::ParallelConcatPlan {
  int32_t Run(Env& env, sdk::AnyInputs values, AnyOutput y) const {
    if (functors::HasNoElements(y.shape())) return WEIR_OK;
    const uint64_t bytes = static_cast<uint64_t>(y.size()) * sdk::SizeOf(y.dtype()) / values.size();
    for (uint32_t i = 0; i < values.size(); ++i) {
      const int32_t code = Copy(env, static_cast<char*>(y.data()) + i * bytes, values[i].data(), bytes);
      if (code != WEIR_OK) return code;
    }
    return WEIR_OK;
  }
};

}  // namespace

void AddSparse(sdk::KernelTable& k) {
  constexpr unsigned kNumbers = kFloats | kIntegers | kComplexes;
  const uint64_t products = kFloatingBits | kComplexBits | DTypes({WEIR_INT32});
  sdk::Kernel& product = k.Add<SparseTensorDenseMatMul>("SparseTensorDenseMatMul");
  product.Restrict("T", products).Flags(WEIR_KERNEL_STREAM).Class(WEIR_CLASS_GATHER, 2).record.host_inputs = 4;
  sdk::Kernel& dense = k.Add<SparseToDense>("SparseToDense");
  dense.Restrict("T", functors::kPlainSet).Flags(WEIR_KERNEL_STREAM).Class(WEIR_CLASS_GATHER).record.host_inputs = 2;
  k.Add<Inplace<ReplaceRow, kNumbers | kBools>>("InplaceUpdate")
      .Restrict("T", kNumberBits | kBoolBits)
      .Class(WEIR_CLASS_GATHER);
  k.Add<Inplace<functors::Add, kNumbers>>("InplaceAdd").Restrict("T", kNumberBits).Class(WEIR_CLASS_GATHER);
  k.Add<Inplace<functors::Sub, kNumbers>>("InplaceSub").Restrict("T", kNumberBits).Class(WEIR_CLASS_GATHER);
  k.Add<Empty>("Empty").Restrict("dtype", functors::kPlainSet).Class(WEIR_CLASS_GATHER);
  k.Add<ParallelConcat>("ParallelConcat").Restrict("T", functors::kPlainSet).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::gpu
