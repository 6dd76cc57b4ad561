// Tests whether memory may be overwritten.
#ifndef WEIR_CORE_EXECUTE_UNSHARED_H_
#define WEIR_CORE_EXECUTE_UNSHARED_H_

#include <atomic>

#include "core/tensor/tensor.h"

namespace weir::execute {

/// True if no other tensor holds the tensor's memory and all accesses by former owners are ordered before this. False
/// under the thread sanitizer, which does not model fences.
inline bool Unshared(const Tensor& tensor) {
#if WEIR_SANITIZER_KIND == 2
  return !tensor.valid();
#else
  if (!tensor.buffer() || tensor.buffer().use_count() != 1) return false;
  std::atomic_thread_fence(std::memory_order_acquire);
  return true;
#endif
}

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_UNSHARED_H_
