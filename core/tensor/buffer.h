// Memory behind tensors for those who make it: the allocator interface that devices implement, host memory, and the
// form that crosses the plugin boundary.
#ifndef WEIR_CORE_TENSOR_BUFFER_H_
#define WEIR_CORE_TENSOR_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/base/status.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"
#include "sdk/abi/types.h"

namespace weir {

/// Alignment of every host buffer, in bytes.
inline constexpr size_t kBufferAlignment = 64;

/// No device has more memory; sums of thousands of such numbers do not overflow.
inline constexpr uint64_t kMostBytes = uint64_t{1} << 48;

/// Payload bytes of that many elements; 0 for strings, handles and variants, which have no byte layout.
/// ResourceExhausted above kMostBytes. Only this function multiplies a shape by an element size.
Result<uint64_t> PayloadBytes(DType dtype, const Shape& shape);

/// Source of buffers. Thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;
  /// Returns a buffer of at least `bytes` (which may be 0), contents undefined. ResourceExhausted names the requested
  /// size.
  virtual Result<std::shared_ptr<Buffer>> Allocate(uint64_t bytes) = 0;
};

inline Buffer::Buffer(const weir_buf& memory, bool lent)
    : host_(static_cast<std::byte*>(memory.host)),
      bytes_(memory.bytes),
      handle_(memory.handle),
      offset_(memory.offset),
      space_(memory.space),
      lent_(lent) {}
inline weir_buf Buffer::memory() const { return {sizeof(weir_buf), space_, handle_, offset_, bytes_, host_}; }

/// True for the out-of-memory error of any allocator.
bool OutOfMemory(const Status& status);

/// CPU memory from the C++ heap, aligned to 64 bytes. Refuses every size that FitsHostMemory refuses. Buffers of up to
/// 256 bytes come from the thread's free list if it is not empty.
Allocator& HostAllocator();

/// False if `bytes` exceeds the machine's memory or the limit of the process's control group: overcommitment would let
/// such an allocation succeed and kill the process on a write. Does not consider how much is free now.
bool FitsHostMemory(uint64_t bytes);

/// Wraps host memory of another owner. The buffer keeps `owner`, which may be null, alive.
std::shared_ptr<Buffer> WrapHostMemory(void* data, uint64_t bytes, std::shared_ptr<const void> owner);

/// Host memory that repeats `element` (1, 2, 4, 8 or 16 bytes); `bytes` is a multiple of its size. Physical memory is
/// used only for one chunk and for pages that are written. Null if the system does not support this.
std::shared_ptr<Buffer> RepeatedHostMemory(std::span<const std::byte> element, uint64_t bytes);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_BUFFER_H_
