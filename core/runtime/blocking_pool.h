// Threads for work that may block, separate from the compute pool.
#ifndef WEIR_CORE_RUNTIME_BLOCKING_POOL_H_
#define WEIR_CORE_RUNTIME_BLOCKING_POOL_H_

#include "core/base/status.h"

namespace weir::runtime {

/// Runs fn(arg) later on a thread of the process-wide blocking pool. Up to 512 jobs run concurrently, so a job may wait
/// for another; further jobs queue. Unavailable if no thread can be started. Thread-safe.
Status RunBlocking(void (*fn)(void* arg), void* arg);

}  // namespace weir::runtime

#endif  // WEIR_CORE_RUNTIME_BLOCKING_POOL_H_
