// Tests whether a tensor's memory may be written where others held it before.
#ifndef WEIR_CORE_TENSOR_SOLE_HOLDER_H_
#define WEIR_CORE_TENSOR_SOLE_HOLDER_H_

#include <atomic>
#include <memory>

#include "core/tensor/tensor.h"

namespace weir {

/// True if no other tensor holds the memory and all accesses by former holders, on any thread, are ordered before this.
/// Nobody may copy the tensor meanwhile.
inline bool SoleHolder(const Tensor& tensor) {
  if (!tensor.buffer() || tensor.buffer().use_count() != 1) return false;
#if WEIR_SANITIZER_KIND == 2
  const std::shared_ptr<Buffer> seen = tensor.buffer();  // the thread sanitizer does not model fences
#else
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
  return true;
}

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_SOLE_HOLDER_H_
