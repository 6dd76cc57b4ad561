// A bitonic sort: parts that fit a block's shared memory are sorted by one launch each, larger steps by launches of
// their own.
#include "plugins/gpu/kernels/sorting.h"

#include <algorithm>

namespace weir::gpu {
namespace {

constexpr int64_t kChunk = 2048;  // pairs in shared memory
constexpr int kSortThreads = 256;

/// Compares pair number e of those at a distance of `stride`, and exchanges them if they are out of order. `first`:
/// the place of pairs[0] in the whole; runs of `run` elements ascend and descend in turn.
WEIR_GPU_FN inline void Exchange(KeyedPlace* pairs, int64_t e, int64_t stride, int64_t run, int64_t first) {
  const int64_t low = e & (stride - 1), a = ((e - low) << 1) | low, b = a | stride;
  const KeyedPlace x = pairs[a], y = pairs[b];
  const bool greater = x.key != y.key ? x.key > y.key : x.place > y.place;
  const bool ascends = ((first + a) & run) == 0;
  if (greater != ascends) return;
  pairs[a] = y;
  pairs[b] = x;
}

struct ExchangeWork {
  Ptr<KeyedPlace> pairs;
  int64_t stride, run;
  WEIR_GPU_FN void operator()(int64_t e) const { Exchange(pairs.get(), e, stride, run, 0); }
};

/// The steps of runs [first_run, last_run] whose strides lie inside a chunk.
struct ChunkWork {
  Ptr<KeyedPlace> pairs;
  int64_t chunk, first_run, last_run;

  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    KeyedPlace* const own = block.template Shared<KeyedPlace>(0);
    const int64_t first = block.index() * chunk;
    block.ForEachThread([&](int t) {
      for (int64_t i = t; i < chunk; i += block.threads()) own[i] = pairs[first + i];
    });
    for (int64_t run = first_run; run <= last_run; run *= 2) {
      for (int64_t stride = (run < chunk ? run : chunk) / 2; stride > 0; stride /= 2) {
        block.ForEachThread([&](int t) {
          for (int64_t e = t; e < chunk / 2; e += block.threads()) Exchange(own, e, stride, run, first);
        });
      }
    }
    block.ForEachThread([&](int t) {
      for (int64_t i = t; i < chunk; i += block.threads()) pairs[first + i] = own[i];
    });
  }
};

}  // namespace

int32_t SortPairs(NativeStream stream, int64_t n, Ptr<KeyedPlace> pairs, const sdk::Error& error) {
  const int64_t length = SortedLength(n), chunk = std::min(length, kChunk);
  const auto chunks = [&](int64_t first_run, int64_t last_run) {
    return LaunchBlocks(stream, length / chunk, kSortThreads, static_cast<uint32_t>(chunk * sizeof(KeyedPlace)),
                        ChunkWork{pairs, chunk, first_run, last_run});
  };
  Outcome outcome = chunks(2, chunk);
  for (int64_t run = 2 * chunk; run <= length && outcome.ok(); run *= 2) {
    for (int64_t stride = run / 2; stride >= chunk && outcome.ok(); stride /= 2) {
      outcome = Launch(stream, length / 2, ExchangeWork{pairs, stride, run});
    }
    if (outcome.ok()) outcome = chunks(run, run);
  }
  return outcome.Tell(error, "launch");
}

}  // namespace weir::gpu
