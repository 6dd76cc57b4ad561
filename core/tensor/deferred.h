// Tensors whose contents are read where their user wants them.
#ifndef WEIR_CORE_TENSOR_DEFERRED_H_
#define WEIR_CORE_TENSOR_DEFERRED_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace weir {

/// Contents that lie elsewhere, such as in a file, until they are read into memory of their user. host() is null. Only
/// code that knows this class gets such a buffer. Thread-safe.
class DeferredBuffer : public Buffer {
 public:
  /// Returns the error that ReadInto would return now, and keeps nothing of what it reads.
  virtual Status Check() const = 0;
  /// Writes the contents to `to`, which has bytes() bytes and after an error unspecified contents.
  virtual Status ReadInto(std::span<std::byte> to) const = 0;

 protected:
  explicit DeferredBuffer(uint64_t bytes);
};

/// Null if the contents of the tensor are there.
const DeferredBuffer* DeferredIn(const Tensor& tensor);

/// A tensor of the same contents in memory of `allocator`; any other tensor is returned unchanged.
Result<Tensor> ReadNow(const Tensor& tensor, Allocator& allocator);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_DEFERRED_H_
