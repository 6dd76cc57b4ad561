#include "core/kernel/pending_calls.h"

#include <algorithm>

#include "core/base/errors.h"

namespace weir::kernel {
namespace {

constexpr size_t kRemembered = 1024;

uint64_t NumberOf(const weir_ctx* handle) { return reinterpret_cast<uintptr_t>(handle) >> 1; }

}  // namespace

void KernelFault::CompletedAgain() {
  const std::lock_guard lock(mutex_);
  if (status_.ok()) status_ = Internal("{} completed a call twice: its `done` was called again", kernel_);
}

Status KernelFault::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

PendingCalls& PendingCalls::Get() {
  static PendingCalls* const calls = new PendingCalls;  // never destroyed: plugin threads may outlive main
  return *calls;
}

weir_ctx* PendingCalls::Add(std::shared_ptr<PendingCall> call) {
  const std::lock_guard lock(mutex_);
  const uint64_t number = next_++;
  calls_.emplace(number, std::move(call));
  return reinterpret_cast<weir_ctx*>(static_cast<uintptr_t>(number << 1 | 1));
}

std::shared_ptr<PendingCall> PendingCalls::Find(const weir_ctx* handle) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(NumberOf(handle));
  return found == calls_.end() ? nullptr : found->second;
}

std::shared_ptr<PendingCall> PendingCalls::Take(const weir_ctx* handle) {
  const uint64_t number = NumberOf(handle);
  const std::lock_guard lock(mutex_);
  if (const auto found = calls_.find(number); found != calls_.end()) {
    std::shared_ptr<PendingCall> call = std::move(found->second);
    calls_.erase(found);
    completed_.emplace_back(number, call->fault);
    if (completed_.size() > kRemembered) completed_.pop_front();
    return call;
  }
  const auto done = std::ranges::find(completed_, number, [](const auto& entry) { return entry.first; });
  if (done != completed_.end()) done->second->CompletedAgain();
  return nullptr;
}

}  // namespace weir::kernel
