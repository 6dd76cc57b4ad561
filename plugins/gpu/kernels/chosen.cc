// Where, whose result is as long as the data say: the host reads the length back before it allocates the result.
#include <algorithm>

#include "plugins/functors/operands.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/prefix_sums.h"
#include "plugins/gpu/kernels/storage.h"
#include "plugins/gpu/kernels/temporary.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {

namespace {

constexpr int kPrefixThreads = 256;

/// One block, each of whose threads sums a part of the counts.
struct SumBeforeWork {
  Ptr<int64_t> counts;
  int64_t n;

  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    int64_t* const sums = block.template Shared<int64_t>(0);
    const int64_t part = (n + block.threads() - 1) / block.threads();
    block.ForEachThread([&](int t) {
      int64_t sum = 0;
      for (int64_t i = t * part; i < (t + 1) * part && i < n; ++i) sum += counts[i];
      sums[t] = sum;
    });
    block.ForEachThread([&](int t) {
      if (t != 0) return;
      int64_t sum = 0;
      for (int k = 0; k < block.threads(); ++k) {
        const int64_t own = sums[k];
        sums[k] = sum;
        sum += own;
      }
      counts[n] = sum;
    });
    block.ForEachThread([&](int t) {
      int64_t sum = sums[t];
      for (int64_t i = t * part; i < (t + 1) * part && i < n; ++i) {
        const int64_t own = counts[i];
        counts[i] = sum;
        sum += own;
      }
    });
  }
};

}  // namespace

int32_t SumBefore(NativeStream stream, int64_t n, int64_t* counts, const sdk::Error& error) {
  return LaunchBlocks(stream, 1, kPrefixThreads, kPrefixThreads * sizeof(int64_t), SumBeforeWork{counts, n})
      .Tell(error, "launch");
}

namespace {

using sdk::Buffer;
using sdk::Context;

constexpr int64_t kPart = 64;  // elements of a thread that counts

/// Elements of any type as bits, of which the sign of zero does not count.
struct SetBits {
  Ptr<const char> data;
  uint32_t bytes;
  uint64_t mask;

  static SetBits Of(const Buffer<const void>& x) {
    const uint32_t dtype = x.dtype(), bytes = sdk::SizeOf(dtype);
    const bool real = (kFloatingBits & WEIR_DTYPE_BIT(dtype)) != 0 || dtype == WEIR_FLOAT16 || dtype == WEIR_BFLOAT16;
    uint64_t mask = ~uint64_t{0};
    if (real) mask = ~uint64_t{0} >> (65 - 8 * bytes);
    if (dtype == WEIR_COMPLEX64) mask = 0x7fffffff7fffffffu;
    if (dtype == WEIR_COMPLEX128) mask >>= 1;
    return {Ptr<const char>(static_cast<const char*>(AddressOf(x))), bytes, mask};
  }
  WEIR_GPU_FN bool NotZero(int64_t i) const {
    switch (bytes) {
      case 1:
        return (reinterpret_cast<const uint8_t*>(data.get())[i] & mask) != 0;
      case 2:
        return (reinterpret_cast<const uint16_t*>(data.get())[i] & mask) != 0;
      case 4:
        return (reinterpret_cast<const uint32_t*>(data.get())[i] & mask) != 0;
      case 8:
        return (reinterpret_cast<const uint64_t*>(data.get())[i] & mask) != 0;
      default: {
        const uint64_t* const words = reinterpret_cast<const uint64_t*>(data.get()) + 2 * i;
        return ((words[0] | words[1]) & mask) != 0;
      }
    }
  }
};

struct CountSetWork {
  SetBits x;
  Ptr<int64_t> counts;
  int64_t n;
  WEIR_GPU_FN void operator()(int64_t part) const {
    int64_t count = 0;
    for (int64_t i = part * kPart; i < (part + 1) * kPart && i < n; ++i) count += x.NotZero(i) ? 1 : 0;
    counts[part] = count;
  }
};

struct Extents {
  static constexpr uint32_t kMost = 16;
  uint32_t rank = 0;
  int64_t dims[kMost] = {};
};

struct WriteSetWork {
  SetBits x;
  Ptr<const int64_t> before;
  Ptr<int64_t> to;
  int64_t n;
  Extents extents;
  WEIR_GPU_FN void operator()(int64_t part) const {
    int64_t at = before[part] * extents.rank;
    for (int64_t i = part * kPart; i < (part + 1) * kPart && i < n; ++i) {
      if (!x.NotZero(i)) continue;
      int64_t rest = i;
      for (uint32_t d = extents.rank; d-- > 0;) {
        to[at + d] = rest % extents.dims[d];
        rest /= extents.dims[d];
      }
      at += extents.rank;
    }
  }
};

/// Coordinates of the elements that are not zero.
struct Where {
  int32_t Compute(Context& ctx) {
    Buffer<const void> x;
    if (const int32_t code = ctx.Input(0, &x); code != WEIR_OK) return code;
    const uint32_t rank = x.rank();
    if (rank == 0) return ctx.error().InvalidArgument("WhereOp : Unhandled input dimensions: 0");
    if (rank > Extents::kMost) {
      return ctx.error().InvalidArgument("WhereOp : Unhandled input dimensions: ", rank);
    }
    int64_t n = 0, count = 0;
    Extents extents;
    extents.rank = rank;
    std::copy_n(x.shape().dims, rank, extents.dims);
    if (!functors::HasNoElements(x.shape())) n = x.size();
    const int64_t parts = (n + kPart - 1) / kPart;
    const NativeStream stream = StreamOf(ctx);
    int64_t* counts = nullptr;
    if (n > 0) {
      int32_t code = Take(ctx, parts + 1, &counts);
      if (code != WEIR_OK) return code;
      code = Launch(stream, parts, CountSetWork{SetBits::Of(x), counts, n}).Tell(ctx.error(), "launch");
      if (code == WEIR_OK) code = SumBefore(stream, parts, counts, ctx.error());
      if (code == WEIR_OK) code = ReadBack(stream, &count, counts + parts, sizeof count).Tell(ctx.error(), "read");
      if (code != WEIR_OK) return code;
    }
    const int64_t shape[] = {count, rank};
    Buffer<int64_t> index;
    if (const int32_t code = ctx.Output(0, weir_shape{2, 0, shape}, &index); code != WEIR_OK) return code;
    if (count == 0) return WEIR_OK;
    return Launch(stream, parts, WriteSetWork{SetBits::Of(x), counts, AddressOf(index), n, extents})
        .Tell(ctx.error(), "launch");
  }
};

}  // namespace

void AddChosen(sdk::KernelTable& k) {
  k.Add<Where>("Where").Restrict("T", kNumberBits | kBoolBits).Flags(WEIR_KERNEL_STREAM).Class(WEIR_CLASS_SORT);
}

}  // namespace weir::gpu
