// Pairs of a key and a position, sorted on the device: equal keys keep the order of their positions, so that work on
// groups of equal keys gives the same bits in every run.
#ifndef WEIR_PLUGINS_GPU_KERNELS_SORTING_H_
#define WEIR_PLUGINS_GPU_KERNELS_SORTING_H_

#include <bit>
#include <cstdint>

#include "plugins/gpu/platform/platform.h"

namespace weir::gpu {

struct KeyedPlace {
  uint64_t key;
  int64_t place;
};
/// The key of places that belong nowhere; greater than all others.
inline constexpr uint64_t kNowhere = ~uint64_t{0};

/// Elements that the sort of n pairs works on: a power of two.
inline int64_t SortedLength(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n < 2 ? 2 : n)));
}
/// Bytes of scratch memory for the sort of n pairs.
inline uint64_t SortBytes(int64_t n) {
  return n <= 0 ? 0 : static_cast<uint64_t>(SortedLength(n)) * sizeof(KeyedPlace);
}

/// The first of n sorted pairs whose key is at least `key`.
WEIR_GPU_FN inline int64_t LowerBound(const KeyedPlace* sorted, int64_t n, uint64_t key) {
  int64_t begin = 0, end = n;
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    if (sorted[middle].key < key) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

/// Sorts SortedLength(n) pairs at `pairs` by key, then place.
int32_t SortPairs(NativeStream stream, int64_t n, Ptr<KeyedPlace> pairs, const sdk::Error& error);

template <class KeyOf>
struct KeysWork {
  Ptr<KeyedPlace> pairs;
  int64_t n;
  KeyOf key_of;
  WEIR_GPU_FN void operator()(int64_t i) const {
    KeyedPlace pair{kNowhere, i};
    if (i < n) pair.key = key_of(i);
    pairs[i] = pair;
  }
};

/// Fills SortBytes(n) bytes at `memory` with the places [0, n) in the order of their keys.
template <class KeyOf>
int32_t SortPlaces(NativeStream stream, int64_t n, void* memory, const KeyOf& key_of, const sdk::Error& error) {
  if (n <= 0) return WEIR_OK;
  const Ptr<KeyedPlace> pairs(static_cast<KeyedPlace*>(memory));
  const Outcome filled = Launch(stream, SortedLength(n), KeysWork<KeyOf>{pairs, n, key_of});
  if (!filled.ok()) return filled.Tell(error, "launch");
  return SortPairs(stream, n, pairs, error);
}

}  // namespace weir::gpu

#endif  // WEIR_PLUGINS_GPU_KERNELS_SORTING_H_
