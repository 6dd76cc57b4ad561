// What of a device's memory is in use.
#ifndef WEIR_CORE_DEVICE_MEMORY_USE_H_
#define WEIR_CORE_DEVICE_MEMORY_USE_H_

#include <cstdint>

namespace weir::device {

/// Bytes of one arena.
struct MemoryUse {
  uint64_t in_use = 0;        // by buffers
  uint64_t peak = 0;          // high-water mark of in_use
  uint64_t reserved = 0;      // held in slabs, those included that the plugin is making or freeing
  uint64_t free_bytes = 0;    // of slabs, in no buffer
  uint64_t free_pieces = 0;   // that free_bytes are scattered over
  uint64_t largest_free = 0;  // the largest of them

  /// The part of the free bytes that one buffer could not have: 0 when they lie in one piece.
  double fragmentation() const {
    return free_bytes == 0 ? 0 : 1 - static_cast<double>(largest_free) / static_cast<double>(free_bytes);
  }
};

}  // namespace weir::device

#endif  // WEIR_CORE_DEVICE_MEMORY_USE_H_
