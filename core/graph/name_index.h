// A flat hash table from names stored elsewhere to small integers.
#ifndef WEIR_CORE_GRAPH_NAME_INDEX_H_
#define WEIR_CORE_GRAPH_NAME_INDEX_H_

#include <bit>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace weir::graph {

/// Stores a hash and an id per name; the owner supplies the name of an id. Linear probing, load at most one half. Names
/// cannot be removed. Thread-compatible.
class NameIndex {
 public:
  /// The id whose name is `name`, or -1. `name_of(id)` returns the name of an id.
  template <class NameOf>
  int32_t Find(std::string_view name, NameOf name_of) const {
    if (slots_.empty()) return -1;
    const uint32_t hash = Hash(name);
    for (size_t at = hash & mask(); slots_[at].id >= 0; at = (at + 1) & mask()) {
      if (slots_[at].hash == hash && name_of(slots_[at].id) == name) return slots_[at].id;
    }
    return -1;
  }

  /// Adds a name that is not yet in the table; `id` >= 0.
  void Insert(std::string_view name, int32_t id) {
    if (2 * (size_ + 1) > slots_.size()) Grow(2 * (size_ + 1));
    Place({Hash(name), id});
    ++size_;
  }

  void Reserve(int names) {
    if (names > 0 && 2 * static_cast<size_t>(names) > slots_.size()) Grow(2 * static_cast<size_t>(names));
  }
  void Clear() {
    slots_.clear();
    size_ = 0;
  }

 private:
  struct Slot {
    uint32_t hash = 0;
    int32_t id = -1;
  };

  static uint32_t Hash(std::string_view name) {
    const uint64_t hash = std::hash<std::string_view>()(name);
    return static_cast<uint32_t>(hash ^ (hash >> 32));
  }
  size_t mask() const { return slots_.size() - 1; }

  void Place(Slot slot) {
    size_t at = slot.hash & mask();
    while (slots_[at].id >= 0) at = (at + 1) & mask();
    slots_[at] = slot;
  }

  void Grow(size_t slots) {
    std::vector<Slot> old(std::bit_ceil(slots < 16 ? size_t{16} : slots));
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.id >= 0) Place(slot);
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_NAME_INDEX_H_
