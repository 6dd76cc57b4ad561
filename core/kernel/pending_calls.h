// Pending calls of ASYNC kernels.
#ifndef WEIR_CORE_KERNEL_PENDING_CALLS_H_
#define WEIR_CORE_KERNEL_PENDING_CALLS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/kernel/call.h"
#include "core/kernel/context.h"

namespace weir::kernel {

/// The first violation of the completion protocol by a kernel; reported by its later calls. Thread-safe.
class KernelFault {
 public:
  explicit KernelFault(std::string kernel) : kernel_(std::move(kernel)) {}
  /// "kernel Abs of abs.so"
  const std::string& kernel() const { return kernel_; }
  /// Records that a call was completed more than once.
  void CompletedAgain();
  Status status() const;

 private:
  const std::string kernel_;
  mutable std::mutex mutex_;  // protects status_
  Status status_;
};

struct PendingCall {
  weir_ctx ctx;
  std::vector<DType> output_types;  // ctx refers to these
  DynamicKernel* kernel = nullptr;
  Later* later = nullptr;
  std::shared_ptr<KernelFault> fault;
};

/// All pending calls of the process. A plugin gets a number instead of the call's address, so that a late use of the
/// handle finds no call rather than another one. Thread-safe.
class PendingCalls {
 public:
  static PendingCalls& Get();

  /// Returns the plugin's handle for the call.
  weir_ctx* Add(std::shared_ptr<PendingCall> call);
  static bool IsNumber(const weir_ctx* handle) { return (reinterpret_cast<uintptr_t>(handle) & 1) != 0; }
  /// Null if the call has completed.
  std::shared_ptr<PendingCall> Find(const weir_ctx* handle) const;
  /// Removes a pending call, which the caller then completes. Null if it was already removed; this is recorded as a
  /// fault of its kernel.
  std::shared_ptr<PendingCall> Take(const weir_ctx* handle);

 private:
  mutable std::mutex mutex_;  // protects all below
  uint64_t next_ = 0;
  std::unordered_map<uint64_t, std::shared_ptr<PendingCall>> calls_;
  std::deque<std::pair<uint64_t, std::shared_ptr<KernelFault>>> completed_;  // the most recent ones
};

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_PENDING_CALLS_H_
