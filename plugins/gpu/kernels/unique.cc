// Distinct elements and slices: Unique, UniqueV2, UniqueWithCounts, UniqueWithCountsV2. The host reads their number
// back before it allocates the result.
#include <algorithm>
#include <vector>

#include "plugins/functors/operands.h"
#include "plugins/functors/unique_axis.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/prefix_sums.h"
#include "plugins/gpu/kernels/sorting.h"
#include "plugins/gpu/kernels/storage.h"
#include "plugins/gpu/kernels/temporary.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using sdk::Buffer;
using sdk::Context;

/// Bits that are equal for equal elements. As in TensorFlow, -0 equals 0; kNowhere stands for a NaN, which equals
/// nothing, and an integer with these bits is told apart by `Groups::floats`.
template <class S>
struct ElementKey {
  Ptr<const char> data;
  S storage;
  WEIR_GPU_FN uint64_t operator()(int64_t i) const {
    const auto x = storage.Load(data.get(), i);
    if constexpr (std::is_floating_point_v<typename S::C>) {
      const double wide = static_cast<double>(x) + 0.0;
      return wide == wide ? std::bit_cast<uint64_t>(wide) : kNowhere;
    } else {
      return static_cast<uint64_t>(x);
    }
  }
};

/// The n slices of an array [outer, n, inner].
struct SliceExtents {
  int64_t outer = 1, n = 0, inner = 1;
  WEIR_HD int64_t size() const { return outer * inner; }
  /// Element k of a slice.
  WEIR_HD int64_t At(int64_t slice, int64_t k) const { return (k / inner * n + slice) * inner + k % inner; }
};

/// The key of an element, or a hash of those of a slice, which depends on `salt`. A slice with a NaN equals nothing.
template <class S>
struct SliceKey {
  ElementKey<S> element;
  SliceExtents extents;
  uint64_t salt;
  WEIR_GPU_FN uint64_t operator()(int64_t slice) const {
    if (extents.size() == 1) return element(slice);
    uint64_t hash = salt;
    for (int64_t k = 0; k < extents.size(); ++k) {
      const uint64_t key = element(extents.At(slice, k));
      if (std::is_floating_point_v<typename S::C> && key == kNowhere) return kNowhere;
      hash = (hash ^ key) * 0x9fb21c651e98df25u;
      hash = (hash ^ (hash >> 29)) * 0xd6e8feb86659fd93u;
      hash ^= hash >> 32;
    }
    return hash == kNowhere ? 0 : hash;
  }
};

/// Groups of equal slices in the order of the sort.
struct Groups {
  Ptr<const KeyedPlace> sorted;
  int64_t n;
  bool floats;  // kNowhere stands for NaNs
  WEIR_GPU_FN bool Alone(int64_t k) const { return floats && sorted[k].key == kNowhere; }
  /// Where the group of place k of the order begins.
  WEIR_GPU_FN int64_t Begin(int64_t k) const { return Alone(k) ? k : LowerBound(sorted.get(), n, sorted[k].key); }
  WEIR_GPU_FN int64_t Size(int64_t k) const {
    if (Alone(k)) return 1;
    const uint64_t key = sorted[k].key;
    return (key == kNowhere ? n : LowerBound(sorted.get(), n, key + 1)) - Begin(k);
  }
};

/// Marks the first slice of each group, and whether any slice of equal hash differs from it.
template <class S>
struct MarkFirstWork {
  Groups groups;
  SliceKey<S> keys;
  Ptr<int64_t> marks, differs;
  WEIR_GPU_FN void operator()(int64_t k) const {
    const int64_t begin = groups.Begin(k), place = groups.sorted[k].place, first = groups.sorted[begin].place;
    marks[place] = begin == k ? 1 : 0;
    if (begin == k || keys.extents.size() == 1) return;
    for (int64_t e = 0; e < keys.extents.size(); ++e) {
      if (keys.element(keys.extents.At(place, e)) == keys.element(keys.extents.At(first, e))) continue;
      AtomicMax(differs.get(), int64_t{1});
      return;
    }
  }
};

struct WriteUniqueWork {
  Groups groups;
  Ptr<const int64_t> rank;  // by slice: first ones in front of it
  Ptr<int64_t> source;      // by distinct one: its first slice
  Ptr<char> idx, count;
  Integer indices;
  WEIR_GPU_FN void operator()(int64_t k) const {
    const int64_t begin = groups.Begin(k), at = rank[groups.sorted[begin].place];
    indices.Store(idx.get(), groups.sorted[k].place, at);
    if (begin != k) return;
    source[at] = groups.sorted[k].place;
    if (count) indices.Store(count.get(), at, groups.Size(k));
  }
};
template <class E>
struct CopySlicesWork {
  Ptr<const E> x;
  Ptr<E> y;
  Ptr<const int64_t> source;
  int64_t n, distinct, inner;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t slice = i / inner % distinct, outer = i / inner / distinct;
    y[i] = x[(outer * n + source[slice]) * inner + i % inner];
  }
};

template <bool kAxis, bool kCounts>
struct Unique {
  uint32_t index_type = WEIR_INT32;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    index_type = node.DType("out_idx", WEIR_INT32);
    return WEIR_OK;
  }
  int32_t Compute(Context& ctx) {
    Buffer<const void> x;
    if (const int32_t code = ctx.Input(0, &x); code != WEIR_OK) return code;
    int64_t axis = 0;
    if (const int32_t code = functors::ReadUniqueAxis(ctx, kAxis, x.rank(), &axis); code != WEIR_OK) return code;
    const std::vector<int64_t> dims = functors::DimsOf(x.shape());
    SliceExtents slices;
    slices.n = dims[static_cast<size_t>(axis)];
    if (index_type == WEIR_INT32 && slices.n > INT32_MAX) {
      return ctx.error().InvalidArgument("unique does not support input tensors larger than ", INT32_MAX, " elements");
    }
    if (functors::HasNoElements(x.shape())) slices.outer = slices.inner = 0;
    for (int64_t i = 0; slices.size() > 0 && i < static_cast<int64_t>(dims.size()); ++i) {
      if (i != axis) (i < axis ? slices.outer : slices.inner) *= dims[static_cast<size_t>(i)];
    }
    if (slices.inner == 0) slices.inner = 1;  // with no outer ones it only divides
    return Find(ctx, x, dims, static_cast<size_t>(axis), slices);
  }

 private:
  int32_t Find(Context& ctx, const Buffer<const void>& x, std::vector<int64_t> dims, size_t axis,
               const SliceExtents& slices) const {
    const int64_t n = slices.n;
    const NativeStream stream = StreamOf(ctx);
    KeyedPlace* sorted = nullptr;
    int64_t *rank = nullptr, *source = nullptr;
    int64_t found[2] = {0, 0};  // distinct slices; whether a hash was shared by others
    const bool floats = (kFloatingBits & WEIR_DTYPE_BIT(x.dtype())) != 0;
    if (n > 0) {
      int32_t code = TakeSorted(ctx, n, &sorted);
      if (code == WEIR_OK) code = Take(ctx, n + 2, &rank);
      if (code == WEIR_OK) code = Take(ctx, n, &source);
      if (code == WEIR_OK) code = Group(ctx, x, slices, sorted, rank, found);
      if (code != WEIR_OK) return code;
    }
    dims[axis] = found[0];
    const weir_shape distinct{1, 0, found}, all{1, 0, &n};
    Buffer<void> y, idx, counts;
    int32_t code = ctx.Output(0, functors::ShapeOf(dims), &y);
    if (code == WEIR_OK) code = ctx.Output(1, all, &idx);
    if (kCounts && code == WEIR_OK) code = ctx.Output(2, distinct, &counts);
    if (code != WEIR_OK || n == 0) return code;
    const WriteUniqueWork write{{sorted, n, floats},
                                rank,
                                source,
                                static_cast<char*>(AddressOf(idx)),
                                kCounts ? static_cast<char*>(AddressOf(counts)) : nullptr,
                                {index_type}};
    code = Launch(stream, n, write).Tell(ctx.error(), "launch");
    if (code != WEIR_OK || slices.size() == 0) return code;
    return functors::ForBytes(sdk::SizeOf(x.dtype()), [&](auto element) {
      using E = decltype(element);
      const CopySlicesWork<E> copy{
          static_cast<const E*>(AddressOf(x)), static_cast<E*>(AddressOf(y)), source, n, found[0], slices.inner};
      return Launch(stream, slices.size() * found[0], copy).Tell(ctx.error(), "launch");
    });
  }

  /// Sorts the slices by their keys and counts the distinct ones; again with another salt while a hash is shared by
  /// slices that differ.
  static int32_t Group(const Context& ctx, const Buffer<const void>& x, const SliceExtents& slices, KeyedPlace* sorted,
                       int64_t* rank, int64_t (&found)[2]) {
    const NativeStream stream = StreamOf(ctx);
    const Ptr<const char> data(static_cast<const char*>(AddressOf(x)));
    const int64_t n = slices.n;
    const Groups groups{sorted, n, (kFloatingBits & WEIR_DTYPE_BIT(x.dtype())) != 0};
    uint64_t salt = 0x2545f4914f6cdd1du;
    do {
      int32_t code = Fill(stream, rank + n + 1, 0, sizeof(int64_t)).Tell(ctx.error(), "fill");
      WithStorage<kFloats | kIntegers | kBools>(x.dtype(), [&](auto storage) {
        using S = decltype(storage);
        const SliceKey<S> keys{{data, storage}, slices, salt};
        if (code == WEIR_OK) code = SortPlaces(stream, n, sorted, keys, ctx.error());
        if (code != WEIR_OK) return;
        code = Launch(stream, n, MarkFirstWork<S>{groups, keys, rank, rank + n + 1}).Tell(ctx.error(), "launch");
      });
      if (code == WEIR_OK) code = SumBefore(stream, n, rank, ctx.error());
      if (code == WEIR_OK) code = ReadBack(stream, found, rank + n, sizeof found).Tell(ctx.error(), "read");
      if (code != WEIR_OK) return code;
      salt = salt * 0x5851f42d4c957f2du + 1;
    } while (found[1] != 0);
    return WEIR_OK;
  }
};

}  // namespace

void AddUnique(sdk::KernelTable& k) {
  const auto add = [](sdk::Kernel& kernel, uint64_t host_inputs) {
    kernel.Restrict("T", kRealBits | kBoolBits).Flags(WEIR_KERNEL_STREAM).Class(WEIR_CLASS_SORT);
    kernel.record.host_inputs = host_inputs;
  };
  add(k.Add<Unique<false, false>>("Unique"), 0);
  add(k.Add<Unique<false, true>>("UniqueWithCounts"), 0);
  add(k.Add<Unique<true, false>>("UniqueV2"), 2);
  add(k.Add<Unique<true, true>>("UniqueWithCountsV2"), 2);
}

}  // namespace weir::gpu
