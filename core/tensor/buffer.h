// Reference-counted memory behind tensors, and the allocator interface that devices implement.
#ifndef WEIR_CORE_TENSOR_BUFFER_H_
#define WEIR_CORE_TENSOR_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/base/status.h"
#include "sdk/abi/types.h"

namespace weir {

/// Alignment of every host buffer, in bytes.
inline constexpr size_t kBufferAlignment = 64;

class Buffer;

/// Where buffers come from. Thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;
  /// A buffer of at least `bytes` (which may be 0), contents undefined. ResourceExhausted saying how much was asked
  /// for.
  virtual Result<std::shared_ptr<Buffer>> Allocate(uint64_t bytes) = 0;
};

/// A range of memory that its owners share. `host()` is null for memory that the CPU cannot reach. The contents may be
/// written only by its maker before it is shared, by the holder of the lock of its variable, or by its only owner.
class Buffer {
 public:
  virtual ~Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* host() const { return static_cast<std::byte*>(memory_.host); }
  uint64_t bytes() const { return memory_.bytes; }
  /// For the plugin boundary: space, handle and offset.
  const weir_buf& memory() const { return memory_; }
  /// Somebody who is no owner of the buffer may write the memory.
  bool lent() const { return lent_; }

 protected:
  explicit Buffer(const weir_buf& memory, bool lent = false) : memory_(memory), lent_(lent) {}

 private:
  weir_buf memory_;
  bool lent_;
};

/// The error of an allocation, whichever allocator it came from.
bool OutOfMemory(const Status& status);

/// Plain CPU memory, 64-byte aligned, from the C++ heap. Refuses at once what FitsHostMemory refuses. Buffers of up to
/// 256 bytes come from what the thread has freed before, as long as there is some.
Allocator& HostAllocator();

/// False for more bytes than the machine's memory or the process's control group has: such an allocation would succeed
/// by overcommitment and end the process when it is written. Says nothing about what is free now.
bool FitsHostMemory(uint64_t bytes);

/// Host memory lent by somebody else; `owner` is kept as long as the buffer and may be null.
std::shared_ptr<Buffer> WrapHostMemory(void* data, uint64_t bytes, std::shared_ptr<const void> owner);

/// Host memory of `bytes` bytes, a multiple of the element's, that repeats `element` (1, 2, 4, 8 or 16 bytes). Physical
/// memory is taken for a stretch of it only, and for pages that are written. Null where the system cannot do that.
std::shared_ptr<Buffer> RepeatedHostMemory(std::span<const std::byte> element, uint64_t bytes);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_BUFFER_H_
