// The structure of sparse tensors: order, shape, concatenation, slices, splits. Entries are sorted on the device; the
// shapes lie in host memory, and the host waits for the number of entries of a result.
#include "plugins/gpu/kernels/sparse_parts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "plugins/functors/arithmetic.h"
#include "plugins/functors/sparse_checks.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/prefix_sums.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::ForBytes;
using sdk::Buffer;
using sdk::Context;

/// A coordinate as a key, of the entries in an order; negative ones come first.
struct CoordinateKey {
  Ptr<const int64_t> indices, order;
  int64_t rank, axis;
  WEIR_GPU_FN uint64_t operator()(int64_t i) const {
    return static_cast<uint64_t>(indices[order[i] * rank + axis]) ^ (uint64_t{1} << 63);
  }
};
struct CountUpWork {
  Ptr<int64_t> to;
  WEIR_GPU_FN void operator()(int64_t i) const { to[i] = i; }
};
struct ReorderWork {
  Ptr<const KeyedPlace> sorted;
  Ptr<const int64_t> before;
  Ptr<int64_t> after;
  WEIR_GPU_FN void operator()(int64_t i) const { after[i] = before[sorted[i].place]; }
};

/// The entries' numbers in the order of their coordinates; equal ones keep theirs. Sorts by one axis after the other,
/// from the last to the first.
int32_t SortEntries(const Context& ctx, const int64_t* indices, int64_t count, int64_t rank, int64_t** order) {
  const NativeStream stream = StreamOf(ctx);
  const sdk::Error& error = ctx.error();
  KeyedPlace* sorted = nullptr;
  int64_t* other = nullptr;
  int32_t code = Take(ctx, count, order);
  if (code == WEIR_OK) code = Take(ctx, count, &other);
  if (code == WEIR_OK) code = TakeSorted(ctx, count, &sorted);
  if (code == WEIR_OK) code = Launch(stream, count, CountUpWork{*order}).Tell(error, "launch");
  for (int64_t axis = rank - 1; axis >= 0 && code == WEIR_OK; --axis) {
    code = SortPlaces(stream, count, sorted, CoordinateKey{indices, *order, rank, axis}, error);
    if (code == WEIR_OK) code = Launch(stream, count, ReorderWork{sorted, *order, other}).Tell(error, "launch");
    std::swap(*order, other);
  }
  return code;
}

template <class E>
struct PickEntriesWork {
  Ptr<const int64_t> order, indices;
  Ptr<const E> values;
  Ptr<int64_t> to_indices;
  Ptr<E> to_values;
  int64_t rank;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t from = order[i];
    for (int64_t d = 0; d < rank; ++d) to_indices[i * rank + d] = indices[from * rank + d];
    to_values[i] = values[from];
  }
};
/// Entries in an order, as outputs 0 and 1.
int32_t PickEntries(const Context& ctx, const int64_t* order, const int64_t* indices, const void* values, int64_t count,
                    int64_t rank) {
  const int64_t matrix[] = {count, rank};
  Buffer<int64_t> to_indices;
  Buffer<void> to_values;
  int32_t code = ctx.Output(0, weir_shape{2, 0, matrix}, &to_indices);
  if (code == WEIR_OK) code = ctx.Output(1, weir_shape{1, 0, matrix}, &to_values);
  if (code != WEIR_OK) return code;
  return ForBytes(sdk::SizeOf(to_values.dtype()), [&](auto element) {
    using E = decltype(element);
    return Launch(StreamOf(ctx), count,
                  PickEntriesWork<E>{order, indices, static_cast<const E*>(values), AddressOf(to_indices),
                                     static_cast<E*>(AddressOf(to_values)), rank})
        .Tell(ctx.error(), "launch");
  });
}

struct SparseReorder {
  int32_t Compute(Context& ctx) {
    SparseParts x;
    if (const int32_t code = x.Read(ctx, 0); code != WEIR_OK) return code;
    if (const int32_t code = x.Check(ctx); code != WEIR_OK) return code;
    int64_t* order = nullptr;
    const int32_t code = SortEntries(ctx, AddressOf(x.indices), x.count(), x.rank(), &order);
    if (code != WEIR_OK) return code;
    return PickEntries(ctx, order, AddressOf(x.indices), AddressOf(x.values), x.count(), x.rank());
  }
};

struct ReshapeEntriesWork {
  Ptr<const int64_t> from;
  Ptr<int64_t> to;
  int64_t rank, to_rank;
  AxisNumbers steps, to_steps;
  WEIR_GPU_FN void operator()(int64_t i) const {
    uint64_t place = 0;  // wraps for entries out of bounds
    for (int64_t d = 0; d < rank; ++d) {
      place += static_cast<uint64_t>(from[i * rank + d]) * static_cast<uint64_t>(steps.at[d]);
    }
    auto rest = static_cast<int64_t>(place);
    for (int64_t d = 0; d < to_rank; ++d) {
      to[i * to_rank + d] = rest / to_steps.at[d];
      rest %= to_steps.at[d];
    }
  }
};
struct SparseReshape {
  int32_t Compute(Context& ctx) {
    Buffer<const int64_t> indices;
    HostVector shape, target;
    functors::SparseReshapePlan plan;
    int32_t code = ctx.Input(0, &indices);
    if (code == WEIR_OK) code = ctx.Input(1, &shape);
    if (code == WEIR_OK) code = ctx.Input(2, &target);
    if (code == WEIR_OK) code = plan.Plan(ctx.error(), indices.shape(), shape, target);
    const auto rank = static_cast<int64_t>(plan.steps.size()), to_rank = static_cast<int64_t>(plan.dims.size());
    if (code == WEIR_OK) code = AxisNumbers::Check(ctx, std::max(rank, to_rank));
    if (code != WEIR_OK) return code;
    const int64_t count = indices.shape().dims[0], matrix[] = {count, to_rank};
    Buffer<int64_t> to;
    if (code = ctx.Output(0, weir_shape{2, 0, matrix}, &to); code != WEIR_OK) return code;
    const ReshapeEntriesWork work{AddressOf(indices),
                                  AddressOf(to),
                                  rank,
                                  to_rank,
                                  AxisNumbers::Of(plan.steps, rank),
                                  AxisNumbers::Of(plan.to_steps, to_rank)};
    code = Launch(StreamOf(ctx), count, work).Tell(ctx.error(), "launch");
    return code != WEIR_OK ? code : WriteHostVector(ctx, 1, plan.dims);
  }
};

template <class E>
struct AppendEntriesWork {
  Ptr<const int64_t> indices;
  Ptr<const E> values;
  Ptr<int64_t> to_indices;
  Ptr<E> to_values;
  int64_t rank, axis, offset;
  WEIR_GPU_FN void operator()(int64_t i) const {
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t at = indices[i * rank + d];
      to_indices[i * rank + d] = d == axis ? functors::Sum(at, offset) : at;
    }
    to_values[i] = values[i];
  }
};
struct SparseConcat {
  int64_t given_axis = 0;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    given_axis = node.Int("concat_dim");
    return WEIR_OK;
  }
  int32_t Compute(Context& ctx) {
    std::vector<SparseParts> parts;
    int64_t axis = 0;
    if (const int32_t code = ReadParts(ctx, &parts, &axis); code != WEIR_OK) return code;
    const int64_t rank = parts[0].rank();
    std::vector<int64_t> dims(parts[0].shape.data(), parts[0].shape.data() + rank), offsets;
    int64_t offset = 0, all = 0;
    for (uint32_t i = 0; i < parts.size(); ++i) {
      const int32_t code = functors::CheckConcatExtents(ctx.error(), parts[i].shape, parts[0].shape, axis, i);
      if (code != WEIR_OK) return code;
      offsets.push_back(offset);
      all += parts[i].count();
      if (__builtin_add_overflow(offset, parts[i].shape[axis], &offset)) {
        return ctx.error().InvalidArgument("Encountered overflow from large input shape.");
      }
    }
    dims[static_cast<size_t>(axis)] = offset;
    int64_t *indices = nullptr, *order = nullptr;
    char* values = nullptr;
    int32_t code = Take(ctx, all * rank, &indices);
    if (code == WEIR_OK) code = Take(ctx, all * int64_t{sdk::SizeOf(parts[0].values.dtype())}, &values);
    int64_t done = 0;
    for (size_t i = 0; i < parts.size() && code == WEIR_OK; ++i) {
      code = Append(ctx, parts[i], axis, offsets[i], indices + done * rank, values, done);
      done += parts[i].count();
    }
    if (code == WEIR_OK) code = SortEntries(ctx, indices, all, rank, &order);
    if (code == WEIR_OK) code = PickEntries(ctx, order, indices, values, all, rank);
    return code != WEIR_OK ? code : WriteHostVector(ctx, 2, dims);
  }

 private:
  int32_t ReadParts(const Context& ctx, std::vector<SparseParts>* parts, int64_t* axis) const {
    uint32_t first = 0, n = 0;
    if (const int32_t code = ctx.InputRange("indices", &first, &n); code != WEIR_OK) return code;
    parts->resize(n);
    for (uint32_t i = 0; i < n; ++i) {
      SparseParts& part = (*parts)[i];
      int32_t code = ctx.Input(i, &part.indices);
      if (code == WEIR_OK) code = ctx.Input(n + i, &part.values);
      if (code == WEIR_OK) code = ctx.Input(2 * n + i, &part.shape);
      if (code == WEIR_OK) {
        code = functors::CheckConcatPart(ctx.error(), part.indices.shape(), part.values.shape(), part.shape,
                                         (*parts)[0].shape, i);
      }
      if (code != WEIR_OK) return code;
    }
    const int64_t rank = (*parts)[0].rank();
    const int32_t code = functors::SparseAxis(ctx.error(), given_axis, rank, axis);
    return code != WEIR_OK ? code : AxisNumbers::Check(ctx, rank);
  }
  /// The entries of a part behind `done` others.
  static int32_t Append(const Context& ctx, const SparseParts& part, int64_t axis, int64_t offset, int64_t* indices,
                        char* values, int64_t done) {
    return ForBytes(sdk::SizeOf(part.values.dtype()), [&](auto element) {
      using E = decltype(element);
      return Launch(StreamOf(ctx), part.count(),
                    AppendEntriesWork<E>{AddressOf(part.indices), static_cast<const E*>(AddressOf(part.values)),
                                         indices, reinterpret_cast<E*>(values) + done, part.rank(), axis, offset})
          .Tell(ctx.error(), "launch");
    });
  }
};

/// The box [start, start + size).
struct EntryBox {
  AxisNumbers start, size;
  int64_t rank;
  WEIR_GPU_FN bool Has(const int64_t* entry) const {
    for (int64_t d = 0; d < rank; ++d) {
      if (entry[d] < start.at[d]) return false;
      // The difference is not negative, so that it fits an unsigned number.
      const uint64_t relative = static_cast<uint64_t>(entry[d]) - static_cast<uint64_t>(start.at[d]);
      if (relative >= static_cast<uint64_t>(size.at[d])) return false;
    }
    return true;
  }
};
struct MarkEntriesWork {
  Ptr<const int64_t> indices;
  Ptr<int64_t> marks;
  EntryBox box;
  WEIR_GPU_FN void operator()(int64_t i) const { marks[i] = box.Has(indices.get() + i * box.rank) ? 1 : 0; }
};
template <class E>
struct CutEntriesWork {
  Ptr<const int64_t> indices, before;
  Ptr<const E> values;
  Ptr<int64_t> to_indices;
  Ptr<E> to_values;
  EntryBox box;
  WEIR_GPU_FN void operator()(int64_t i) const {
    if (before[i + 1] == before[i]) return;
    const int64_t at = before[i];
    for (int64_t d = 0; d < box.rank; ++d) {
      to_indices[at * box.rank + d] = functors::Difference(indices[i * box.rank + d], box.start.at[d]);
    }
    to_values[at] = values[i];
  }
};
struct SparseSlice {
  int32_t Compute(Context& ctx) {
    SparseParts x;
    HostVector start, size;
    std::vector<int64_t> dims;
    int32_t code = x.Read(ctx, 0);
    if (code == WEIR_OK) code = ctx.Input(3, &start);
    if (code == WEIR_OK) code = ctx.Input(4, &size);
    if (code == WEIR_OK) code = x.Check(ctx);
    if (code == WEIR_OK) code = functors::SparseSliceDims(ctx.error(), x.shape, start, size, &dims);
    if (code != WEIR_OK) return code;
    const int64_t count = x.count(), rank = x.rank();
    const EntryBox box{AxisNumbers::Of(start, rank), AxisNumbers::Of(size, rank), rank};
    const NativeStream stream = StreamOf(ctx);
    int64_t* before = nullptr;
    int64_t kept = 0;
    if (count > 0) {
      code = Take(ctx, count + 1, &before);
      if (code == WEIR_OK) {
        code = Launch(stream, count, MarkEntriesWork{AddressOf(x.indices), before, box}).Tell(ctx.error(), "launch");
      }
      if (code == WEIR_OK) code = SumBefore(stream, count, before, ctx.error());
      if (code == WEIR_OK) code = ReadBack(stream, &kept, before + count, sizeof kept).Tell(ctx.error(), "read");
      if (code != WEIR_OK) return code;
    }
    const int64_t matrix[] = {kept, rank};
    Buffer<int64_t> indices;
    Buffer<void> values;
    code = ctx.Output(0, weir_shape{2, 0, matrix}, &indices);
    if (code == WEIR_OK) code = ctx.Output(1, weir_shape{1, 0, matrix}, &values);
    if (code == WEIR_OK && kept > 0) {
      code = ForBytes(sdk::SizeOf(values.dtype()), [&](auto element) {
        using E = decltype(element);
        return Launch(stream, count,
                      CutEntriesWork<E>{AddressOf(x.indices), before, static_cast<const E*>(AddressOf(x.values)),
                                        AddressOf(indices), static_cast<E*>(AddressOf(values)), box})
            .Tell(ctx.error(), "launch");
      });
    }
    return code != WEIR_OK ? code : WriteHostVector(ctx, 2, dims);
  }
};

/// The part of a split that an entry belongs to; those out of bounds belong nowhere.
struct SplitKey {
  Ptr<const int64_t> indices;
  AxisNumbers dims;
  int64_t rank, axis, size, longer;  // the first `longer` parts are longer than `size` by one
  WEIR_GPU_FN uint64_t operator()(int64_t i) const {
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t index = indices[i * rank + d];
      if (index < 0 || index >= dims.at[d]) return kNowhere;
    }
    const int64_t at = indices[i * rank + axis], border = longer * (size + 1);
    return static_cast<uint64_t>(at < border ? at / (size + 1) : longer + (at - border) / size);
  }
};
template <class E>
struct SplitEntriesWork {
  Ptr<const KeyedPlace> sorted;  // from the part's first one on
  Ptr<const int64_t> indices;
  Ptr<const E> values;
  Ptr<int64_t> to_indices;
  Ptr<E> to_values;
  int64_t rank, axis, begin;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t from = sorted[i].place;
    for (int64_t d = 0; d < rank; ++d) {
      to_indices[i * rank + d] = indices[from * rank + d] - (d == axis ? begin : 0);
    }
    to_values[i] = values[from];
  }
};
struct SparseSplit {
  int64_t parts = 1;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    parts = node.Int("num_split", 1);
    return WEIR_OK;
  }
  int32_t Compute(Context& ctx) {
    HostVector split_axis;
    SparseParts x;
    int64_t axis = 0;
    int32_t code = ctx.Input(0, &split_axis);
    if (code == WEIR_OK) code = x.Read(ctx, 1);
    if (code == WEIR_OK) {
      code = functors::CheckSparseSplit(ctx.error(), split_axis, x.indices.shape(), x.values.shape(), x.shape, parts,
                                        &axis);
    }
    if (code == WEIR_OK) code = AxisNumbers::Check(ctx, x.rank());
    if (code != WEIR_OK) return code;
    const int64_t count = x.count(), size = x.shape[axis] / parts, longer = x.shape[axis] % parts;
    const SplitKey key{AddressOf(x.indices), AxisNumbers::Of(x.shape, x.rank()), x.rank(), axis, size, longer};
    KeyedPlace* sorted = nullptr;
    std::vector<int64_t> bounds(static_cast<size_t>(parts) + 1);
    if (count > 0) code = Sort(ctx, key, count, &sorted, &bounds);
    if (code == WEIR_OK && bounds.back() < count) code = TellOutside(ctx, x, sorted + bounds.back());
    for (int64_t part = 0; part < parts && code == WEIR_OK; ++part) {
      const int64_t first = bounds[static_cast<size_t>(part)], n = bounds[static_cast<size_t>(part) + 1] - first;
      code = WritePart(ctx, x, key, part, sorted + first, n);
    }
    return code;
  }

 private:
  int32_t Sort(const Context& ctx, const SplitKey& key, int64_t count, KeyedPlace** sorted,
               std::vector<int64_t>* bounds) const {
    const NativeStream stream = StreamOf(ctx);
    int64_t* found = nullptr;
    int32_t code = TakeSorted(ctx, count, sorted);
    if (code == WEIR_OK) code = Take(ctx, parts + 1, &found);
    if (code == WEIR_OK) code = SortPlaces(stream, count, *sorted, key, ctx.error());
    if (code == WEIR_OK) {
      code = Launch(stream, parts + 1, PartBoundsWork{*sorted, found, count, parts}).Tell(ctx.error(), "launch");
    }
    if (code != WEIR_OK) return code;
    return ReadBack(stream, bounds->data(), found, bounds->size() * sizeof(int64_t)).Tell(ctx.error(), "read");
  }
  static int32_t TellOutside(const Context& ctx, const SparseParts& x, const KeyedPlace* at) {
    KeyedPlace first{};
    std::vector<int64_t> entry(static_cast<size_t>(x.rank()));
    const NativeStream stream = StreamOf(ctx);
    int32_t code = ReadBack(stream, &first, at, sizeof first).Tell(ctx.error(), "read");
    if (code != WEIR_OK) return code;
    const int64_t* const from = AddressOf(x.indices) + first.place * x.rank();
    code = ReadBack(stream, entry.data(), from, entry.size() * sizeof(int64_t)).Tell(ctx.error(), "read");
    return code != WEIR_OK ? code : functors::EntryOutOfBounds(ctx.error(), first.place, entry);
  }
  int32_t WritePart(const Context& ctx, const SparseParts& x, const SplitKey& key, int64_t part,
                    const KeyedPlace* sorted, int64_t n) const {
    const int64_t begin = part * key.size + std::min(part, key.longer), matrix[] = {n, x.rank()};
    const auto output = static_cast<uint32_t>(part), all = static_cast<uint32_t>(parts);
    Buffer<int64_t> indices;
    Buffer<void> values;
    int32_t code = ctx.Output(output, weir_shape{2, 0, matrix}, &indices);
    if (code == WEIR_OK) code = ctx.Output(all + output, weir_shape{1, 0, matrix}, &values);
    if (code == WEIR_OK && n > 0) {
      code = ForBytes(sdk::SizeOf(values.dtype()), [&](auto element) {
        using E = decltype(element);
        return Launch(StreamOf(ctx), n,
                      SplitEntriesWork<E>{sorted, AddressOf(x.indices), static_cast<const E*>(AddressOf(x.values)),
                                          AddressOf(indices), static_cast<E*>(AddressOf(values)), x.rank(), key.axis,
                                          begin})
            .Tell(ctx.error(), "launch");
      });
    }
    if (code != WEIR_OK) return code;
    std::vector<int64_t> dims(x.shape.data(), x.shape.data() + x.rank());
    dims[static_cast<size_t>(key.axis)] = key.size + (part < key.longer ? 1 : 0);
    return WriteHostVector(ctx, 2 * all + output, dims);
  }
};

}  // namespace

void AddSparseParts(sdk::KernelTable& k) {
  const auto add = [](sdk::Kernel& kernel, uint32_t kind, uint64_t host_inputs, uint64_t host_outputs) -> sdk::Kernel& {
    kernel.Flags(WEIR_KERNEL_STREAM).Class(kind).record.host_inputs = host_inputs;
    kernel.record.host_outputs = host_outputs;
    return kernel;
  };
  constexpr uint64_t kThird = 4;
  add(k.Add<SparseReorder>("SparseReorder"), WEIR_CLASS_SORT, kThird, 0).Restrict("T", functors::kPlainSet);
  add(k.Add<SparseReshape>("SparseReshape"), WEIR_CLASS_GATHER, 2 | 4, 2);
  add(k.Add<SparseConcat>("SparseConcat"), WEIR_CLASS_SORT, kThird, kThird).Restrict("T", functors::kPlainSet);
  add(k.Add<SparseSlice>("SparseSlice"), WEIR_CLASS_GATHER, 4 | 8 | 16, kThird).Restrict("T", functors::kPlainSet);
  add(k.Add<SparseSplit>("SparseSplit"), WEIR_CLASS_GATHER, 1 | 8, kThird).Restrict("T", functors::kPlainSet);
}

}  // namespace weir::gpu
