#include "core/tensor/deferred.h"

#include "core/tensor/buffer.h"
#include "sdk/abi/device.h"

namespace weir {
namespace {

weir_buf NoMemory(uint64_t bytes) {
  weir_buf memory = {};
  memory.struct_size = sizeof(memory);
  memory.space = WEIR_SPACE_HOST;
  memory.bytes = bytes;
  return memory;
}

}  // namespace

DeferredBuffer::DeferredBuffer(uint64_t bytes) : Buffer(NoMemory(bytes)) {}

const DeferredBuffer* DeferredIn(const Tensor& tensor) {
  const Buffer* const buffer = tensor.buffer().get();
  if (buffer == nullptr || buffer->host() != nullptr) return nullptr;
  return dynamic_cast<const DeferredBuffer*>(buffer);
}

Result<Tensor> ReadNow(const Tensor& tensor, Allocator& allocator) {
  const DeferredBuffer* const deferred = DeferredIn(tensor);
  if (deferred == nullptr) return tensor;
  WEIR_ASSIGN(Tensor arrived, Tensor::Make(tensor.dtype(), tensor.shape(), allocator));
  WEIR_TRY(deferred->ReadInto({arrived.mutable_raw(), arrived.bytes()}));
  return arrived;
}

}  // namespace weir
