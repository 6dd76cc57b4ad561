// Rows dealt out and collected: DynamicPartition, DynamicStitch. As in TensorFlow's kernels for GPUs, a row whose index
// is out of range is left out.
#include <vector>

#include "plugins/functors/stitch_plan.h"
#include "plugins/gpu/kernels/changed_rows.h"
#include "plugins/gpu/kernels/families.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using sdk::AnyInput;
using sdk::AnyInputs;
using sdk::AnyOutput;
using sdk::Buffer;
using sdk::Context;
using sdk::Env;

/// The order of elements of an integer array; negative ones are last.
struct IntegerKey {
  Ptr<const char> data;
  Integer storage;
  WEIR_GPU_FN uint64_t operator()(int64_t i) const { return static_cast<uint64_t>(storage.Load(data.get(), i)); }
};

struct PartBeginsWork {
  Ptr<const KeyedPlace> sorted;
  Ptr<int64_t> begins;
  int64_t n;
  WEIR_GPU_FN void operator()(int64_t part) const {
    begins[part] = LowerBound(sorted.get(), n, static_cast<uint64_t>(part));
  }
};

template <class E>
struct DealtRowsWork {
  Ptr<const KeyedPlace> sorted;  // from the part's first row
  Ptr<const E> from;
  Ptr<E> to;
  int64_t row;
  WEIR_GPU_FN void operator()(int64_t i) const { to[i] = from[sorted[i / row].place * row + i % row]; }
};

/// Row i of `data` goes to output partitions[i], behind the rows before it.
struct DynamicPartition {
  int64_t parts = 1;

  int32_t Prepare(const sdk::Node& node, const sdk::Error&) {
    parts = node.Int("num_partitions", 1);
    return WEIR_OK;
  }
  int32_t Compute(Context& ctx) {
    Buffer<const void> data, partitions;
    int32_t code = ctx.Input(0, &data);
    if (code == WEIR_OK) code = ctx.Input(1, &partitions);
    if (code != WEIR_OK) return code;
    const weir_shape &whole = data.shape(), &prefix = partitions.shape();
    bool fits = whole.rank >= prefix.rank;
    for (uint32_t i = 0; fits && i < prefix.rank; ++i) fits = whole.dims[i] == prefix.dims[i];
    if (!fits) {
      return ctx.error().InvalidArgument("data.shape must start with partitions.shape, got data.shape = ", whole,
                                         ", partitions.shape = ", prefix);
    }
    const int64_t n = functors::HasNoElements(prefix) ? 0 : partitions.size();
    const int64_t row = functors::HasNoElements(whole) ? 0 : functors::SizeOf(whole, prefix.rank, whole.rank);
    std::vector<int64_t> begins(static_cast<size_t>(parts) + 1);
    const KeyedPlace* sorted = nullptr;
    if (n > 0) code = Deal(ctx, partitions, n, begins, &sorted);
    if (code != WEIR_OK) return code;
    std::vector<int64_t> dims(whole.dims + prefix.rank, whole.dims + whole.rank);
    dims.insert(dims.begin(), 0);
    for (size_t part = 0; part < static_cast<size_t>(parts) && code == WEIR_OK; ++part) {
      dims[0] = begins[part + 1] - begins[part];
      Buffer<void> output;
      code = ctx.Output(static_cast<uint32_t>(part), functors::ShapeOf(dims), &output);
      if (code != WEIR_OK || row == 0 || dims[0] == 0) continue;
      functors::ForBytes(sdk::SizeOf(data.dtype()), [&](auto element) {
        using E = decltype(element);
        code = Launch(StreamOf(ctx), dims[0] * row,
                      DealtRowsWork<E>{sorted + begins[part], static_cast<const E*>(AddressOf(data)),
                                       static_cast<E*>(AddressOf(output)), row})
                   .Tell(ctx.error(), "launch");
      });
    }
    return code;
  }

 private:
  /// Sorts the rows by their part, and says where each part begins.
  static int32_t Deal(const Context& ctx, const Buffer<const void>& partitions, int64_t n, std::vector<int64_t>& begins,
                      const KeyedPlace** sorted) {
    const uint64_t bytes = begins.size() * sizeof(int64_t);
    weir_buf order{}, found{};
    int32_t code = ctx.Temp(SortBytes(n), WEIR_SPACE_DEVICE, &order);
    if (code == WEIR_OK) code = ctx.Temp(bytes, WEIR_SPACE_DEVICE, &found);
    if (code != WEIR_OK) return code;
    auto* const pairs = reinterpret_cast<KeyedPlace*>(order.handle + order.offset);
    auto* const places = reinterpret_cast<int64_t*>(found.handle + found.offset);
    *sorted = pairs;
    const Ptr<const char> values(static_cast<const char*>(AddressOf(partitions)));
    code = SortPlaces(StreamOf(ctx), n, pairs, IntegerKey{values, {partitions.dtype()}}, ctx.error());
    if (code != WEIR_OK) return code;
    const Outcome launched =
        Launch(StreamOf(ctx), static_cast<int64_t>(begins.size()), PartBeginsWork{pairs, places, n});
    if (!launched.ok()) return launched.Tell(ctx.error(), "launch");
    return ReadBack(StreamOf(ctx), begins.data(), places, bytes).Tell(ctx.error(), "read");
  }
};

/// By row of the result, the last given row that goes there, counted over all inputs from 1; 0: none.
struct LastRowWork {
  Ptr<const int32_t> indices;
  Ptr<int64_t> last;
  int64_t limit, before;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t at = indices[i];
    if (at >= 0 && at < limit) AtomicMax(last.get() + at, before + i + 1);
  }
};
template <class E>
struct StitchWork {
  Ptr<const int32_t> indices;
  Ptr<const int64_t> last;
  Ptr<const E> from;
  Ptr<E> to;
  int64_t limit, before, row;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t given = i / row, at = indices[given];
    if (at < 0 || at >= limit || last[at] != before + given + 1) return;
    to[at * row + i % row] = from[i];
  }
};

struct DynamicStitch : functors::StitchPlan {
  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = StitchPlan::Prepare(prep); code != WEIR_OK) return code;
    if (block != 0) prep.Scratch(static_cast<uint64_t>(limit) * sizeof(int64_t));
    return WEIR_OK;
  }
  int32_t Run(Env& env, sdk::Views<const int32_t> indices, AnyInputs data, AnyOutput merged,
              sdk::Scratch<int64_t> last) const {
    if (limit == 0 || block == 0) return WEIR_OK;
    const auto rows = static_cast<uint64_t>(limit);
    int32_t code = Fill(env, merged.data(), 0, rows * block);
    if (code == WEIR_OK) code = Fill(env, last.data(), 0, rows * sizeof(int64_t));
    int64_t before = 0;
    for (uint32_t m = 0; m < count && code == WEIR_OK; ++m) {
      const int64_t n = indices[m].size();
      code = Launch(env, n, LastRowWork{indices[m].data(), last.data(), limit, before});
      before += n;
    }
    before = 0;
    const uint32_t bytes = sdk::SizeOf(merged.dtype());
    for (uint32_t m = 0; m < count && code == WEIR_OK; ++m) {
      const int64_t n = indices[m].size(), row = static_cast<int64_t>(block / bytes);
      functors::ForBytes(bytes, [&](auto element) {
        using E = decltype(element);
        code = Launch(env, n * row,
                      StitchWork<E>{indices[m].data(), last.data(), static_cast<const E*>(data[m].data()),
                                    static_cast<E*>(merged.data()), limit, before, row});
      });
      before += n;
    }
    return code;
  }
};

}  // namespace

void AddPartition(sdk::KernelTable& k) {
  k.Add<DynamicPartition>("DynamicPartition")
      .Restrict("T", functors::kPlainSet)
      .Flags(WEIR_KERNEL_STREAM)
      .Class(WEIR_CLASS_GATHER);
  for (const char* op : {"DynamicStitch", "ParallelDynamicStitch"}) {
    k.Add<DynamicStitch>(op).Restrict("T", functors::kPlainSet).Class(WEIR_CLASS_GATHER);
  }
}

}  // namespace weir::gpu
