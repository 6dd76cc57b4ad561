// How much memory this process may have.
#ifndef WEIR_CORE_TENSOR_HOST_MEMORY_H_
#define WEIR_CORE_TENSOR_HOST_MEMORY_H_

#include <cstdint>

namespace weir {

/// Bytes: the machine's memory or the limit of the process's control group, whichever is less. Read once.
uint64_t HostMemoryLimit();

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_HOST_MEMORY_H_
