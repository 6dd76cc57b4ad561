// Rows of sparse tensors without entries, which get one, and the gradient of that.
#include <algorithm>

#include "plugins/functors/arithmetic.h"
#include "plugins/functors/sparse_checks.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/prefix_sums.h"
#include "plugins/gpu/kernels/sparse_parts.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::ForBytes;
using sdk::Buffer;
using sdk::Context;

/// The row of an entry.
struct FilledRowKey {
  Ptr<const int64_t> indices;
  int64_t rank, rows;
  WEIR_GPU_FN uint64_t operator()(int64_t i) const {
    const int64_t row = indices[i * rank];
    return row >= 0 && row < rows ? static_cast<uint64_t>(row) : kNowhere;
  }
};
struct RowLengthsWork {
  Ptr<const KeyedPlace> sorted;
  Ptr<int64_t> lengths;
  Ptr<char> empty;
  int64_t count;
  WEIR_GPU_FN void operator()(int64_t row) const {
    const auto key = static_cast<uint64_t>(row);
    const int64_t own = LowerBound(sorted.get(), count, key + 1) - LowerBound(sorted.get(), count, key);
    empty[row] = own == 0 ? 1 : 0;
    lengths[row] = own > 0 ? own : 1;
  }
};
/// The first i of the call: a row without entries; behind those, an entry.
template <class E>
struct FillRowsWork {
  Ptr<const KeyedPlace> sorted;
  Ptr<const int64_t> starts, indices;
  Ptr<const char> empty;
  Ptr<const E> values, otherwise;
  Ptr<int64_t> to_indices, places;
  Ptr<E> to_values;
  int64_t rows, count, rank;
  WEIR_GPU_FN void operator()(int64_t i) const {
    if (i < rows) {
      if (empty[i] == 0) return;
      const int64_t at = starts[i];
      for (int64_t d = 0; d < rank; ++d) to_indices[at * rank + d] = d == 0 ? i : 0;
      to_values[at] = otherwise[0];
      return;
    }
    const int64_t k = i - rows, from = sorted[k].place;
    const uint64_t row = sorted[k].key;
    const int64_t at = starts[static_cast<int64_t>(row)] + (k - LowerBound(sorted.get(), count, row));
    for (int64_t d = 0; d < rank; ++d) to_indices[at * rank + d] = indices[from * rank + d];
    to_values[at] = values[from];
    places[from] = at;
  }
};
struct SparseFillEmptyRows {
  int32_t Compute(Context& ctx) {
    SparseParts x;
    Buffer<const void> otherwise;
    int32_t code = x.Read(ctx, 0);
    if (code == WEIR_OK) code = ctx.Input(3, &otherwise);
    if (code == WEIR_OK) {
      code = functors::CheckFillEmptyRows(ctx.error(), x.indices.shape(), x.values.shape(), x.shape, otherwise.shape());
    }
    if (code != WEIR_OK) return code;
    const int64_t rows = x.shape[0], rank = x.rank(), count = x.count();
    const NativeStream stream = StreamOf(ctx);
    KeyedPlace* sorted = nullptr;
    int64_t *starts = nullptr, filled = 0;
    if (code = SortRows(ctx, x, &sorted); code != WEIR_OK) return code;
    Buffer<void> empty;
    if (code = ctx.Output(2, weir_shape{1, 0, &rows}, &empty); code != WEIR_OK) return code;
    auto* const flags = static_cast<char*>(AddressOf(empty));
    if (rows > 0) {
      code = Take(ctx, rows + 1, &starts);
      if (code == WEIR_OK) {
        code = Launch(stream, rows, RowLengthsWork{sorted, starts, flags, count}).Tell(ctx.error(), "launch");
      }
      if (code == WEIR_OK) code = SumBefore(stream, rows, starts, ctx.error());
      if (code == WEIR_OK) code = ReadBack(stream, &filled, starts + rows, sizeof filled).Tell(ctx.error(), "read");
      if (code != WEIR_OK) return code;
    }
    const int64_t matrix[] = {filled, rank};
    Buffer<int64_t> indices, places;
    Buffer<void> values;
    code = ctx.Output(0, weir_shape{2, 0, matrix}, &indices);
    if (code == WEIR_OK) code = ctx.Output(1, weir_shape{1, 0, matrix}, &values);
    if (code == WEIR_OK) code = ctx.Output(3, weir_shape{1, 0, &count}, &places);
    if (code != WEIR_OK) return code;
    return ForBytes(sdk::SizeOf(values.dtype()), [&](auto element) {
      using E = decltype(element);
      return Launch(stream, rows + count,
                    FillRowsWork<E>{sorted, starts, AddressOf(x.indices), flags,
                                    static_cast<const E*>(AddressOf(x.values)),
                                    static_cast<const E*>(AddressOf(otherwise)), AddressOf(indices), AddressOf(places),
                                    static_cast<E*>(AddressOf(values)), rows, count, rank})
          .Tell(ctx.error(), "launch");
    });
  }

 private:
  /// The entries by rows; one with a row out of range is an error.
  static int32_t SortRows(const Context& ctx, const SparseParts& x, KeyedPlace** sorted) {
    const int64_t count = x.count(), rows = x.shape[0];
    if (count == 0) return WEIR_OK;
    const NativeStream stream = StreamOf(ctx);
    const FilledRowKey key{AddressOf(x.indices), x.rank(), rows};
    int64_t* found = nullptr;
    int64_t inside = 0;
    int32_t code = TakeSorted(ctx, count, sorted);
    if (code == WEIR_OK) code = Take(ctx, 1, &found);
    if (code == WEIR_OK) code = SortPlaces(stream, count, *sorted, key, ctx.error());
    if (code == WEIR_OK) {
      code = Launch(stream, 1, PartBoundsWork{*sorted, found, count, 0}).Tell(ctx.error(), "launch");
    }
    if (code == WEIR_OK) code = ReadBack(stream, &inside, found, sizeof inside).Tell(ctx.error(), "read");
    if (code != WEIR_OK || inside == count) return code;
    KeyedPlace first{};
    int64_t row = 0;
    code = ReadBack(stream, &first, *sorted + inside, sizeof first).Tell(ctx.error(), "read");
    if (code != WEIR_OK) return code;
    const int64_t* const at = AddressOf(x.indices) + first.place * x.rank();
    code = ReadBack(stream, &row, at, sizeof row).Tell(ctx.error(), "read");
    return code != WEIR_OK ? code : functors::CheckFilledRow(ctx.error(), first.place, row, rows);
  }
};

constexpr int kRestThreads = 256;

/// The gradients of the entries; `visited` gets a mark for each element of the gradient that one takes.
template <class E>
struct TakeFilledWork {
  Ptr<const int64_t> places;
  Ptr<const E> grad;
  Ptr<E> to;
  Ptr<char> visited;
  Ptr<int64_t> outside;  // the number of the first place out of range
  int64_t all;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t at = places[i];
    if (at < 0 || at >= all) {
      AtomicMin(outside.get(), i);
      return;
    }
    to[i] = grad[at];
    visited[at] = 1;
  }
};
struct SetWordWork {
  Ptr<int64_t> to;
  int64_t value;
  WEIR_GPU_FN void operator()(int64_t) const { to[0] = value; }
};
/// The sum of the elements without a mark.
template <class S>
struct RestWork {
  using C = typename S::C;
  Ptr<const char> grad, visited;
  Ptr<char> to;
  int64_t n;
  S storage;
  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    C* const sums = block.template Shared<C>(0);
    block.ForEachThread([&](int t) {
      C sum{};
      for (int64_t i = t; i < n; i += block.threads()) {
        if (visited[i] == 0) sum = functors::Sum(sum, storage.Load(grad.get(), i));
      }
      sums[t] = sum;
    });
    for (int half = block.threads() / 2; half > 0; half /= 2) {
      block.ForEachThread([&](int t) {
        if (t < half) sums[t] = functors::Sum(sums[t], sums[t + half]);
      });
    }
    block.ForEachThread([&](int t) {
      if (t == 0) storage.Store(to.get(), 0, sums[0]);
    });
  }
};
struct SparseFillEmptyRowsGrad {
  int32_t Compute(Context& ctx) {
    Buffer<const int64_t> places;
    Buffer<const void> grad;
    Buffer<void> values, otherwise;
    int32_t code = ctx.Input(0, &places);
    if (code == WEIR_OK) code = ctx.Input(1, &grad);
    if (code == WEIR_OK) code = functors::CheckFillEmptyRowsGrad(ctx.error(), places.shape(), grad.shape());
    if (code == WEIR_OK) code = ctx.Output(0, places.shape(), &values);
    if (code == WEIR_OK) code = ctx.Output(1, weir_shape{}, &otherwise);
    if (code != WEIR_OK) return code;
    const int64_t n = places.size(), all = grad.size();
    const NativeStream stream = StreamOf(ctx);
    char* visited = nullptr;
    if (code = Take(ctx, std::max<int64_t>(all, 1), &visited); code != WEIR_OK) return code;
    code = Fill(stream, visited, 0, static_cast<uint64_t>(all)).Tell(ctx.error(), "fill");
    if (code == WEIR_OK && n > 0) code = TakeFilled(ctx, places, grad, values, visited);
    if (code != WEIR_OK) return code;
    WithStorage<kFloats | kIntegers | kComplexes>(grad.dtype(), [&](auto storage) {
      using S = decltype(storage);
      const RestWork<S> work{static_cast<const char*>(AddressOf(grad)), visited,
                             static_cast<char*>(AddressOf(otherwise)), all, storage};
      code =
          LaunchBlocks(stream, 1, kRestThreads, kRestThreads * sizeof(typename S::C), work).Tell(ctx.error(), "launch");
    });
    return code;
  }

 private:
  static int32_t TakeFilled(const Context& ctx, const Buffer<const int64_t>& places, const Buffer<const void>& grad,
                            const Buffer<void>& values, char* visited) {
    const NativeStream stream = StreamOf(ctx);
    const int64_t n = places.size(), all = grad.size();
    int64_t *outside = nullptr, first = n, place = 0;
    int32_t code = Take(ctx, 1, &outside);
    if (code == WEIR_OK) code = Launch(stream, 1, SetWordWork{outside, n}).Tell(ctx.error(), "launch");
    if (code != WEIR_OK) return code;
    code = ForBytes(sdk::SizeOf(grad.dtype()), [&](auto element) {
      using E = decltype(element);
      return Launch(stream, n,
                    TakeFilledWork<E>{AddressOf(places), static_cast<const E*>(AddressOf(grad)),
                                      static_cast<E*>(AddressOf(values)), visited, outside, all})
          .Tell(ctx.error(), "launch");
    });
    if (code == WEIR_OK) code = ReadBack(stream, &first, outside, sizeof first).Tell(ctx.error(), "read");
    if (code != WEIR_OK || first == n) return code;
    code = ReadBack(stream, &place, AddressOf(places) + first, sizeof place).Tell(ctx.error(), "read");
    return code != WEIR_OK ? code : functors::CheckFilledPlace(ctx.error(), place, all);
  }
};

}  // namespace

void AddSparseRows(sdk::KernelTable& k) {
  sdk::Kernel& fill = k.Add<SparseFillEmptyRows>("SparseFillEmptyRows");
  fill.Restrict("T", functors::kPlainSet).Flags(WEIR_KERNEL_STREAM).Class(WEIR_CLASS_GATHER).record.host_inputs = 4;
  k.Add<SparseFillEmptyRowsGrad>("SparseFillEmptyRowsGrad")
      .Restrict("T", kNumberBits)
      .Flags(WEIR_KERNEL_STREAM)
      .Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::gpu
