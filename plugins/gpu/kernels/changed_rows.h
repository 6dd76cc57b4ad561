// Rows of an array that indices name, and their changes in the order of the indices: equal indices give the same bits
// as on the CPU, without atomics, because the indices are sorted first.
#ifndef WEIR_PLUGINS_GPU_KERNELS_CHANGED_ROWS_H_
#define WEIR_PLUGINS_GPU_KERNELS_CHANGED_ROWS_H_

#include <cstdint>

#include "plugins/functors/places.h"
#include "plugins/gpu/kernels/sorting.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/prepare.h"

namespace weir::gpu {

/// Integers of any width on the device.
struct Indices {
  Ptr<const char> data;
  Integer storage;
  explicit Indices(const sdk::AnyInput& indices) : data(From(indices)), storage{indices.dtype()} {}
  WEIR_GPU_FN int64_t operator[](int64_t i) const { return storage.Load(data.get(), i); }
};

/// functors::Places on the device.
struct DevicePlaces {
  static constexpr uint32_t kMostCoordinates = 16;
  Indices indices;
  int64_t count, row;
  uint32_t depth;
  int64_t limits[kMostCoordinates], steps[kMostCoordinates];

  DevicePlaces(const functors::Places& places, const sdk::AnyInput& given)
      : indices(given), count(places.count), row(places.row), depth(static_cast<uint32_t>(places.limits.size())) {
    for (uint32_t k = 0; k < kMostCoordinates; ++k) {
      limits[k] = k < depth ? places.limits[k] : 0;
      steps[k] = k < depth ? places.steps[k] : 0;
    }
  }
  static int32_t Check(const sdk::Prep& prep, const functors::Places& places) {
    if (places.limits.size() <= kMostCoordinates) return WEIR_OK;
    return prep.error().Unimplemented("indices with more than ", kMostCoordinates, " coordinates");
  }
  /// First element of place i; -1 if it is out of range.
  WEIR_GPU_FN int64_t At(int64_t i) const {
    int64_t at = 0;
    for (uint32_t k = 0; k < depth; ++k) {
      const int64_t index = indices[i * depth + k];
      if (index < 0 || index >= limits[k]) return -1;
      at += index * steps[k];
    }
    return at;
  }
};

/// The order of places by their first element.
struct PlaceKey {
  DevicePlaces places;
  WEIR_GPU_FN uint64_t operator()(int64_t i) const { return static_cast<uint64_t>(places.At(i)); }
};

/// The first of equal places makes the changes of all of them, in order; the others do nothing.
template <class Change>
struct ChangedRowsWork {
  Ptr<const KeyedPlace> order;
  int64_t count, row;
  Change change;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t first = i / row, column = i % row;
    const uint64_t at = order[first].key;
    if (at == kNowhere || (first > 0 && order[first - 1].key == at)) return;
    for (int64_t k = first; k < count && order[k].key == at; ++k) {
      change(static_cast<int64_t>(at) + column, order[k].place * row + column);
    }
  }
};

/// Requests the scratch memory of LaunchChangedRows.
inline void PrepareChangedRows(sdk::Prep& prep, const functors::Places& places) {
  if (places.row > 0 && places.count > 0) prep.Scratch(SortBytes(places.count));
}

/// change(target, update) for each element of each row, in the order of the indices.
template <class Change>
int32_t LaunchChangedRows(const sdk::Env& env, const DevicePlaces& places, const Change& change, void* scratch) {
  if (places.row <= 0 || places.count <= 0) return WEIR_OK;
  const int32_t code = SortPlaces(StreamOf(env), places.count, scratch, PlaceKey{places}, env.error());
  if (code != WEIR_OK) return code;
  return Launch(env, places.count * places.row,
                ChangedRowsWork<Change>{Ptr<const KeyedPlace>(static_cast<const KeyedPlace*>(scratch)), places.count,
                                        places.row, change});
}

/// target = Op(target, update)
template <class Op, class S>
struct ElementChange {
  Ptr<const char> updates;
  Ptr<char> target;
  int64_t update_step;  // 0: one update for all
  S storage;
  WEIR_GPU_FN void operator()(int64_t at, int64_t update) const {
    const auto x = storage.Load(updates.get(), update * update_step);
    storage.Store(target.get(), at, Op()(storage.Load(target.get(), at), x));
  }
};

}  // namespace weir::gpu

#endif  // WEIR_PLUGINS_GPU_KERNELS_CHANGED_ROWS_H_
