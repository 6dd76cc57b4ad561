// Tests whether memory may be overwritten.
#ifndef WEIR_CORE_EXECUTE_UNSHARED_H_
#define WEIR_CORE_EXECUTE_UNSHARED_H_

#include "core/tensor/sole_holder.h"
#include "core/tensor/tensor.h"

namespace weir::execute {

/// True if no other tensor holds the tensor's memory and all accesses by former owners are ordered before this. False
/// under the thread sanitizer, which does not model fences.
inline bool Unshared(const Tensor& tensor) {
#if WEIR_SANITIZER_KIND == 2
  return !tensor.valid();
#else
  return SoleHolder(tensor);
#endif
}

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_UNSHARED_H_
