// Reductions of the rows of segments in order, of given or of chosen rows, and their gradients. A thread reduces a
// column of a segment in the order of its rows, as the CPU does. As in TensorFlow's kernels for GPUs, rows that do not
// exist and ids out of order are not reported.
#include <cmath>

#include "plugins/functors/arithmetic.h"
#include "plugins/functors/operands.h"
#include "plugins/functors/segment_rules.h"
#include "plugins/gpu/kernels/changed_rows.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/prefix_sums.h"
#include "plugins/gpu/kernels/sorting.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::SegmentLargest;
using functors::SegmentSmallest;
using sdk::Buffer;
using sdk::Context;
using ChosenRows = functors::ChosenRows<Buffer<const void>>;
using Norm = functors::SegmentNorm;

Ptr<const char> BytesAt(const Buffer<const void>& x) {
  return Ptr<const char>(static_cast<const char*>(AddressOf(x)));
}
Ptr<char> BytesAt(const Buffer<void>& x) { return Ptr<char>(static_cast<char*>(AddressOf(x))); }

/// Integers of any width in device memory.
struct IdsAt {
  Ptr<const char> data;
  Integer storage;
  explicit IdsAt(const Buffer<const void>& x) : data(BytesAt(x)), storage{x.dtype()} {}
  WEIR_GPU_FN int64_t operator[](int64_t i) const { return storage.Load(data.get(), i); }
  /// The first of n ids in order that is at least `id`.
  WEIR_GPU_FN int64_t LowerBound(int64_t n, int64_t id) const {
    int64_t begin = 0, end = n;
    while (begin < end) {
      const int64_t middle = begin + (end - begin) / 2;
      if ((*this)[middle] < id) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    return begin;
  }
};

struct LastIdWork {
  IdsAt ids;
  Ptr<int64_t> to;
  int64_t n;
  WEIR_GPU_FN void operator()(int64_t) const { to[0] = ids[n - 1]; }
};

/// The last of n ids, or -1; the host waits for it.
int32_t LastId(const Context& ctx, const Buffer<const void>& ids, int64_t* last) {
  *last = -1;
  const int64_t n = ids.size();
  if (n == 0) return WEIR_OK;
  weir_buf found{};
  if (const int32_t code = ctx.Temp(64, WEIR_SPACE_DEVICE, &found); code != WEIR_OK) return code;
  auto* const to = reinterpret_cast<int64_t*>(found.handle + found.offset);
  const Outcome launched = Launch(StreamOf(ctx), 1, LastIdWork{IdsAt(ids), Ptr<int64_t>(to), n});
  if (!launched.ok()) return launched.Tell(ctx.error(), "launch");
  return ReadBack(StreamOf(ctx), last, to, sizeof *last).Tell(ctx.error(), "read");
}

int64_t RowSize(const weir_shape& shape) {
  return functors::HasNoElements(shape) ? 0 : functors::SizeOf(shape, 1, shape.rank);
}

template <class Rule, bool kMean, class S>
struct SegmentWork {
  using C = typename S::C;
  Ptr<const char> from;
  Ptr<char> to;
  IdsAt ids;
  int64_t n, row, empty;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t segment = i / row, column = i % row;
    const int64_t begin = ids.LowerBound(n, segment), end = ids.LowerBound(n, segment + 1);
    if (begin >= end) {
      storage.Store(to.get(), i, static_cast<C>(empty));
      return;
    }
    C all = storage.Load(from.get(), begin * row + column);
    for (int64_t k = begin + 1; k < end; ++k) all = Rule()(all, storage.Load(from.get(), k * row + column));
    if constexpr (kMean && std::is_integral_v<C>) {
      storage.Store(to.get(), i, all);  // the low bits, whose quotient is taken
      all = functors::Quotient(storage.Load(to.get(), i), static_cast<C>(end - begin));
    } else if constexpr (kMean) {
      all = all / static_cast<C>(static_cast<double>(end - begin));
    }
    storage.Store(to.get(), i, all);
  }
};

template <class Rule, unsigned kKinds, bool kMean = false>
struct Segments {
  int32_t Compute(Context& ctx) {
    Buffer<const void> data, ids;
    if (const int32_t code = ctx.Input(0, &data); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(1, &ids); code != WEIR_OK) return code;
    const sdk::Error& error = ctx.error();
    if (data.rank() < 1) return error.InvalidArgument("input must be at least rank 1");
    if (ids.rank() != 1) return error.InvalidArgument("segment_ids should be a vector.");
    const int64_t n = ids.size();
    if (n != data.shape().dims[0]) {
      return error.InvalidArgument("segment_ids should be the same size as dimension 0 of input.");
    }
    int64_t last = -1;
    if (const int32_t code = LastId(ctx, ids, &last); code != WEIR_OK) return code;
    if (n > 0 && (last < 0 || last == std::numeric_limits<int64_t>::max())) {
      return error.InvalidArgument("segment ids must be >= 0");
    }
    std::vector<int64_t> dims = functors::DimsOf(data.shape());
    dims[0] = last + 1;
    Buffer<void> output;
    if (const int32_t code = ctx.Output(0, functors::ShapeOf(dims), &output); code != WEIR_OK) return code;
    if (functors::HasNoElements(output.shape())) return WEIR_OK;
    const int64_t row = RowSize(data.shape()), empty = std::is_same_v<Rule, functors::Mul> ? 1 : 0;
    Outcome launched;
    WithStorage<kKinds>(data.dtype(), [&](auto storage) {
      launched = Launch(StreamOf(ctx), output.size(),
                        SegmentWork<Rule, kMean, decltype(storage)>{BytesAt(data), BytesAt(output), IdsAt(ids), n, row,
                                                                    empty, storage});
    });
    return launched.Tell(error, "launch");
  }
};

template <Norm kNorm, class S>
struct ChosenRowsWork {
  using C = typename S::C;
  Ptr<const char> from;
  Ptr<char> to;
  IdsAt indices, ids;
  int64_t count, limit, row;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t segment = i / row, column = i % row;
    const int64_t begin = ids.LowerBound(count, segment), end = ids.LowerBound(count, segment + 1);
    C all{};
    for (int64_t k = begin; k < end; ++k) {
      const int64_t index = indices[k];
      if (index >= 0 && index < limit) all = functors::Sum(all, storage.Load(from.get(), index * row + column));
    }
    if constexpr (kNorm != Norm::kNone) {
      const auto n = static_cast<double>(end - begin);
      if (end > begin) all = all / static_cast<C>(kNorm == Norm::kRoot ? std::sqrt(n) : n);
    }
    storage.Store(to.get(), i, all);
  }
};

template <Norm kNorm, bool kNumSegments, unsigned kKinds>
struct SparseSegments {
  int32_t Compute(Context& ctx) {
    Buffer<const void> data;
    ChosenRows rows;
    if (const int32_t code = ctx.Input(0, &data); code != WEIR_OK) return code;
    if (data.rank() < 1) return ctx.error().InvalidArgument("Shape must be at least rank 1");
    if (const int32_t code = rows.Read(ctx); code != WEIR_OK) return code;
    int64_t segments = 0;
    if (const int32_t code = CountSegments(ctx, rows, &segments); code != WEIR_OK) return code;
    std::vector<int64_t> dims = functors::DimsOf(data.shape());
    const int64_t limit = dims[0];
    dims[0] = segments;
    Buffer<void> output;
    if (const int32_t code = ctx.Output(0, functors::ShapeOf(dims), &output); code != WEIR_OK) return code;
    if (functors::HasNoElements(output.shape())) return WEIR_OK;
    const int64_t row = functors::SizeOf(output.shape(), 1, output.rank());
    Outcome launched;
    WithStorage<kKinds>(data.dtype(), [&](auto storage) {
      launched = Launch(StreamOf(ctx), output.size(),
                        ChosenRowsWork<kNorm, decltype(storage)>{BytesAt(data), BytesAt(output), IdsAt(rows.indices),
                                                                 IdsAt(rows.ids), rows.count, limit, row, storage});
    });
    return launched.Tell(ctx.error(), "launch");
  }

 private:
  static int32_t CountSegments(const Context& ctx, const ChosenRows& rows, int64_t* segments) {
    const sdk::Error& error = ctx.error();
    if constexpr (kNumSegments) {
      sdk::Integers given;
      if (const int32_t code = ctx.Input(3, &given); code != WEIR_OK) return code;
      if (given.rank() != 0) {
        return error.InvalidArgument("num_segments should be a scalar, not shape ", given.shape());
      }
      *segments = given[0];
      return *segments >= 0 ? WEIR_OK : error.InvalidArgument("segment ids must be >= 0");
    }
    int64_t last = -1;
    if (const int32_t code = LastId(ctx, rows.ids, &last); code != WEIR_OK) return code;
    if (last == std::numeric_limits<int64_t>::max()) return error.InvalidArgument("segment ids are too large");
    *segments = last + 1;
    return *segments >= 0 ? WEIR_OK : error.InvalidArgument("segment ids must be >= 0");
  }
};

/// An integer as a key; those out of [0, limit) belong nowhere.
struct LimitedKey {
  IdsAt values;
  int64_t limit;
  WEIR_GPU_FN uint64_t operator()(int64_t i) const {
    const int64_t value = values[i];
    return value >= 0 && value < limit ? static_cast<uint64_t>(value) : kNowhere;
  }
};

/// Marks the first place of each row of the result.
struct MarkRowsWork {
  Ptr<const KeyedPlace> order;
  Ptr<int64_t> marks;
  WEIR_GPU_FN void operator()(int64_t k) const {
    const uint64_t key = order[k].key;
    marks[k] = key != kNowhere && (k == 0 || order[k - 1].key != key) ? 1 : 0;
  }
};

/// Sums, in their order, what the rows of the gradient give to a row of the result. Without `ranks`, the row's place is
/// its index.
template <Norm kNorm, class S>
struct SpreadRowsWork {
  using C = typename S::C;
  Ptr<const char> grads;
  Ptr<char> to, places;
  Ptr<const KeyedPlace> by_index, by_id;
  Ptr<const int64_t> ranks;
  IdsAt ids;
  int64_t count, segments, row;
  S storage;
  Integer index_storage;

  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t first = i / row, column = i % row;
    const uint64_t key = by_index[first].key;
    if (key == kNowhere || (first > 0 && by_index[first - 1].key == key)) return;
    C sum{};
    for (int64_t k = first; k < count && by_index[k].key == key; ++k) {
      const int64_t id = ids[by_index[k].place];
      if (id < 0 || id >= segments) continue;
      sum += storage.Load(grads.get(), id * row + column) * Share(id);
    }
    const int64_t at = ranks ? ranks[first] : static_cast<int64_t>(key);
    storage.Store(to.get(), at * row + column, sum);
    if (places && column == 0) index_storage.Store(places.get(), at, static_cast<int64_t>(key));
  }
  WEIR_GPU_FN C Share(int64_t id) const {
    if (kNorm == Norm::kNone) return C(1);
    const auto key = static_cast<uint64_t>(id);
    const auto n = static_cast<double>(gpu::LowerBound(by_id.get(), count, key + 1) -
                                       gpu::LowerBound(by_id.get(), count, key));
    return static_cast<C>(kNorm == Norm::kCount ? 1 / n : 1 / std::sqrt(n));
  }
};

/// One call of SparseSegmentsGrad.
template <Norm kNorm, bool kUnique>
struct SpreadCall {
  Buffer<const void> grad;
  ChosenRows rows;
  KeyedPlace *by_index = nullptr, *by_id = nullptr;
  int64_t* ranks = nullptr;

  int32_t Run(const Context& ctx) {
    sdk::Integers extent;
    const sdk::Error& error = ctx.error();
    if (const int32_t code = ctx.Input(0, &grad); code != WEIR_OK) return code;
    if (const int32_t code = ctx.Input(3, &extent); code != WEIR_OK) return code;
    if (grad.rank() < 1) return error.InvalidArgument("Shape must be at least rank 1");
    if (const int32_t code = rows.Read(ctx); code != WEIR_OK) return code;
    if (extent.rank() != 0) return error.InvalidArgument("output_dim0 should be a scalar.");
    const int64_t limit = extent[0];
    if (limit < 0) return error.InvalidArgument("Expected a non-negative size, got ", limit);
    int64_t distinct = 0;
    if (const int32_t code = Sort(ctx, limit, &distinct); code != WEIR_OK) return code;
    std::vector<int64_t> dims = functors::DimsOf(grad.shape());
    dims[0] = kUnique ? distinct : limit;
    Buffer<void> output, places;
    int32_t code = ctx.Output(0, functors::ShapeOf(dims), &output);
    if (kUnique && code == WEIR_OK) code = ctx.Output(1, weir_shape{1, 0, &distinct}, &places);
    if (code != WEIR_OK) return code;
    // Rows without elements still have indices.
    const bool empty = functors::HasNoElements(output.shape());
    const int64_t row = empty ? 0 : functors::SizeOf(output.shape(), 1, output.rank());
    if (row > 0) {
      const uint64_t bytes = static_cast<uint64_t>(output.size()) * sdk::SizeOf(output.dtype());
      code = Fill(StreamOf(ctx), AddressOf(output), 0, bytes).Tell(error, "fill");
    }
    if (code != WEIR_OK || rows.count == 0 || (row == 0 && !kUnique)) return code;
    return Spread(ctx, output, places, row);
  }

 private:
  template <class T>
  static int32_t Take(const Context& ctx, uint64_t bytes, T** memory) {
    weir_buf buf{};
    const int32_t code = ctx.Temp(bytes, WEIR_SPACE_DEVICE, &buf);
    *memory = reinterpret_cast<T*>(buf.handle + buf.offset);
    return code;
  }
  int32_t Sort(const Context& ctx, int64_t limit, int64_t* distinct) {
    const int64_t n = rows.count;
    if (n == 0) return WEIR_OK;
    const NativeStream stream = StreamOf(ctx);
    int32_t code = Take(ctx, SortBytes(n), &by_index);
    if (code == WEIR_OK) code = SortPlaces(stream, n, by_index, LimitedKey{IdsAt(rows.indices), limit}, ctx.error());
    if (kNorm != Norm::kNone && code == WEIR_OK) {
      code = Take(ctx, SortBytes(n), &by_id);
      const LimitedKey key{IdsAt(rows.ids), grad.shape().dims[0]};
      if (code == WEIR_OK) code = SortPlaces(stream, n, by_id, key, ctx.error());
    }
    if (!kUnique || code != WEIR_OK) return code;
    code = Take(ctx, static_cast<uint64_t>(n + 1) * sizeof(int64_t), &ranks);
    if (code == WEIR_OK) {
      const MarkRowsWork mark{Ptr<const KeyedPlace>(by_index), Ptr<int64_t>(ranks)};
      code = Launch(stream, n, mark).Tell(ctx.error(), "launch");
    }
    if (code == WEIR_OK) code = SumBefore(stream, n, ranks, ctx.error());
    if (code == WEIR_OK) code = ReadBack(stream, distinct, ranks + n, sizeof *distinct).Tell(ctx.error(), "read");
    return code;
  }
  int32_t Spread(const Context& ctx, const Buffer<void>& output, const Buffer<void>& places, int64_t row) const {
    Outcome launched;
    WithStorage<kFloats>(grad.dtype(), [&](auto storage) {
      const int64_t columns = std::max<int64_t>(row, 1);
      launched = Launch(StreamOf(ctx), rows.count * columns,
                        SpreadRowsWork<kNorm, decltype(storage)>{
                            BytesAt(grad), BytesAt(output), kUnique ? BytesAt(places) : Ptr<char>(nullptr),
                            Ptr<const KeyedPlace>(by_index), Ptr<const KeyedPlace>(by_id), Ptr<const int64_t>(ranks),
                            IdsAt(rows.ids), rows.count, grad.shape().dims[0], columns, storage,
                            {rows.indices.dtype()}});
    });
    return launched.Tell(ctx.error(), "launch");
  }
};

/// Row indices[i] of the output gets row segment_ids[i] of the gradient, divided as that segment was. kUnique: only the
/// rows that get something are output, with their sorted indices.
template <Norm kNorm, bool kUnique>
struct SparseSegmentsGrad {
  int32_t Compute(Context& ctx) { return SpreadCall<kNorm, kUnique>().Run(ctx); }
};

sdk::Kernel& Reduces(sdk::Kernel& kernel, uint64_t dtypes) {
  return kernel.Restrict("T", dtypes).Flags(WEIR_KERNEL_STREAM).Class(WEIR_CLASS_GATHER, 1);
}

/// The sums, means and sums over roots of chosen rows, and their gradients. Input 3 lies in host memory.
template <Norm kNorm, unsigned kKinds>
void AddChosenRows(sdk::KernelTable& k, const std::string& name, uint64_t dtypes) {
  constexpr uint64_t kFourth = 8;
  const std::string op = "SparseSegment" + name;
  Reduces(k.Add<SparseSegments<kNorm, false, kKinds>>(op), dtypes);
  Reduces(k.Add<SparseSegments<kNorm, true, kKinds>>(op + "WithNumSegments"), dtypes).record.host_inputs = kFourth;
  Reduces(k.Add<SparseSegmentsGrad<kNorm, false>>(op + "Grad"), kFloatingBits).record.host_inputs = kFourth;
  Reduces(k.Add<SparseSegmentsGrad<kNorm, true>>(op + "GradV2"), kFloatingBits).record.host_inputs = kFourth;
}

}  // namespace

void AddSegments(sdk::KernelTable& k) {
  constexpr unsigned kNumbers = kFloats | kIntegers | kComplexes, kReals = kFloats | kIntegers | kUnsigned64;
  Reduces(k.Add<Segments<functors::Add, kNumbers>>("SegmentSum"), kNumberBits);
  Reduces(k.Add<Segments<functors::Add, kNumbers | kUnsigned64, true>>("SegmentMean"), kNumberBits);
  Reduces(k.Add<Segments<functors::Mul, kNumbers>>("SegmentProd"), kNumberBits);
  Reduces(k.Add<Segments<SegmentLargest, kReals>>("SegmentMax"), kRealBits);
  Reduces(k.Add<Segments<SegmentSmallest, kReals>>("SegmentMin"), kRealBits);
  AddChosenRows<Norm::kNone, kFloats | kIntegers>(k, "Sum", kRealBits);
  AddChosenRows<Norm::kCount, kFloats>(k, "Mean", kFloatingBits);
  AddChosenRows<Norm::kRoot, kFloats>(k, "SqrtN", kFloatingBits);
}

}  // namespace weir::gpu
