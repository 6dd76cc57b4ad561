// Memory usage of a device.
#ifndef WEIR_CORE_DEVICE_MEMORY_USE_H_
#define WEIR_CORE_DEVICE_MEMORY_USE_H_

#include <cstdint>

namespace weir::device {

/// Bytes of a device's memory by its plugin's account; 0 where it does not say.
struct ReportedMemory {
  uint64_t free = 0;
  uint64_t total = 0;
  uint64_t largest = 0;  // largest block that could be allocated
};

/// Bytes of one arena.
struct MemoryUse {
  uint64_t in_use = 0;        // by buffers
  uint64_t peak = 0;          // high-water mark of in_use
  uint64_t reserved = 0;      // in slabs, including those being allocated or freed
  uint64_t free_bytes = 0;    // of slabs, not in a buffer
  uint64_t free_pieces = 0;   // number of free chunks
  uint64_t largest_free = 0;  // bytes of the largest free chunk

  /// The fraction of free bytes outside the largest free chunk; 0 if they are contiguous.
  double fragmentation() const {
    return free_bytes == 0 ? 0 : 1 - static_cast<double>(largest_free) / static_cast<double>(free_bytes);
  }
};

}  // namespace weir::device

#endif  // WEIR_CORE_DEVICE_MEMORY_USE_H_
