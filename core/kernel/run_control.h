// What may end a step before it is done.
#ifndef WEIR_CORE_KERNEL_RUN_CONTROL_H_
#define WEIR_CORE_KERNEL_RUN_CONTROL_H_

#include <atomic>
#include <chrono>

#include "core/base/status.h"

namespace weir::kernel {

/// Asked between the instructions of a step and by kernels that take long. Every pointer may be null and outlives the
/// step. Thread-safe.
struct RunControl {
  using Clock = std::chrono::steady_clock;

  const std::atomic<bool>* closed = nullptr;     // the session was closed
  const std::atomic<bool>* cancelled = nullptr;  // the caller wants no result any more
  const std::atomic<bool>* failed = nullptr;     // another op of the step failed
  Clock::time_point deadline = Clock::time_point::max();

  bool has_deadline() const { return deadline != Clock::time_point::max(); }
  /// True when Check would be an error.
  bool stopped() const {
    const auto set = [](const std::atomic<bool>* flag) {
      return flag != nullptr && flag->load(std::memory_order_relaxed);
    };
    return set(closed) || set(cancelled) || set(failed) || (has_deadline() && Clock::now() >= deadline);
  }
  /// Cancelled or DeadlineExceeded in TensorFlow's words. A step that another op ended is Cancelled too: the op's own
  /// error is what the caller gets to see.
  Status Check() const {
    if (!stopped()) return Status();
    if (closed != nullptr && closed->load())
      return Cancelled("Step was cancelled by an explicit call to `Session::Close()`.");
    if (cancelled != nullptr && cancelled->load()) return Cancelled("Step was cancelled by its caller.");
    if (failed != nullptr && failed->load()) return Cancelled("[_Derived_]Step was ended by the error of another op.");
    return DeadlineExceeded("Timed out waiting for notification: the step took longer than timeout_in_ms");
  }
};

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_RUN_CONTROL_H_
