#include "core/runtime/cancellation.h"

#include <algorithm>
#include <utility>

namespace weir::runtime {

bool CancelCallback::Register(Cancellation& cancellation, std::function<void()> fn) {
  fn_ = std::move(fn);
  at_ = &cancellation;
  if (cancellation.Add(*this)) return true;
  at_ = nullptr;
  fn_ = nullptr;
  return false;
}

bool CancelCallback::Deregister() {
  Cancellation* const at = std::exchange(at_, nullptr);
  return at == nullptr || at->Remove(*this);
}

Cancellation::~Cancellation() {
  timer_.reset();
  from_parent_.Deregister();
}

void Cancellation::CancelAt(Clock::time_point deadline, Status why) {
  deadline_ = std::min(deadline_, deadline);
  timer_ = std::make_unique<Timer>(deadline, [this, why = std::move(why)] { Cancel(why); });
}

bool Cancellation::Cancel(Status why) {
  std::unique_lock lock(mutex_);
  if (cancelled_.load(std::memory_order_relaxed)) return false;
  why_ = std::move(why);
  runner_ = std::this_thread::get_id();
  cancelled_.store(true, std::memory_order_release);
  while (CancelCallback* const callback = first_) {
    Unlink(*callback);
    running_.store(callback);
    {
      // The callback object may be destroyed during the call.
      const std::function<void()> fn = std::move(callback->fn_);
      lock.unlock();
      fn();
    }
    lock.lock();
    running_.store(nullptr);
    running_.notify_all();
  }
  return true;
}

Status Cancellation::status() const {
  for (const Cancellation* node = this; node != nullptr; node = node->parent_) {
    if (!node->cancelled_.load(std::memory_order_acquire)) continue;
    const std::lock_guard lock(node->mutex_);
    return node->why_;
  }
  return {};
}

bool Cancellation::Add(CancelCallback& callback) {
  // Lock order is child before parent: Cancel calls children without holding a lock.
  const std::lock_guard lock(mutex_);
  if (cancelled_.load(std::memory_order_relaxed)) return false;
  if (parent_ != nullptr && !joined_) {
    if (!from_parent_.Register(*parent_, [this] { Cancel(parent_->status()); })) return false;
    joined_ = true;
  }
  callback.previous_ = nullptr;
  callback.next_ = first_;
  if (first_ != nullptr) first_->previous_ = &callback;
  first_ = &callback;
  return true;
}

bool Cancellation::Remove(CancelCallback& callback) {
  std::unique_lock lock(mutex_);
  if (callback.previous_ != nullptr || first_ == &callback) {
    Unlink(callback);
    return true;
  }
  const bool own = runner_ == std::this_thread::get_id();
  lock.unlock();
  if (!own) running_.wait(&callback);
  return false;
}

void Cancellation::Unlink(CancelCallback& callback) {
  (callback.previous_ != nullptr ? callback.previous_->next_ : first_) = callback.next_;
  if (callback.next_ != nullptr) callback.next_->previous_ = callback.previous_;
  callback.next_ = callback.previous_ = nullptr;
}

}  // namespace weir::runtime
