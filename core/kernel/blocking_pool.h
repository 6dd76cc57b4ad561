// Threads for work that may block, so that it never holds a thread of the compute pool.
#ifndef WEIR_CORE_KERNEL_BLOCKING_POOL_H_
#define WEIR_CORE_KERNEL_BLOCKING_POOL_H_

#include "core/base/status.h"

namespace weir::kernel {

/// Runs fn(arg) later on another thread of the process-wide blocking pool. Work never waits for a thread that is itself
/// waiting for work, up to 512 threads; beyond that it queues. Unavailable when no thread can be had. Thread-safe.
Status RunBlocking(void (*fn)(void* arg), void* arg);

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_BLOCKING_POOL_H_
