// Cancellation of work.
#ifndef WEIR_CORE_RUNTIME_CANCELLATION_H_
#define WEIR_CORE_RUNTIME_CANCELLATION_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "core/base/status.h"
#include "core/runtime/timer.h"

namespace weir::runtime {

class Cancellation;

/// A callback that a Cancellation calls at most once. Not movable; the Cancellation must outlive it.
///
/// A waiting operation owns one together with its Completion. The callback removes the operation from its wait list
/// under the list's lock, releases the lock, and completes it. The normal path does the same; only one of them finds
/// the operation in the list.
class CancelCallback {
 public:
  CancelCallback() = default;
  ~CancelCallback() { Deregister(); }
  CancelCallback(const CancelCallback&) = delete;
  CancelCallback& operator=(const CancelCallback&) = delete;

  /// Returns false if `cancellation` is already cancelled: `fn` is not called then, and the caller must end by itself.
  /// Otherwise `fn` runs on the cancelling thread, possibly before this returns. It must not block.
  [[nodiscard]] bool Register(Cancellation& cancellation, std::function<void()> fn);
  /// After this returns `fn` is not running and will not run. If it is running on another thread, waits for it, so hold
  /// no lock that `fn` takes. Within `fn` it returns at once. True if `fn` was not called.
  bool Deregister();

 private:
  friend class Cancellation;
  Cancellation* at_ = nullptr;  // where it is registered
  CancelCallback* next_ = nullptr;
  CancelCallback* previous_ = nullptr;
  std::function<void()> fn_;
};

/// A node of the tree process > session > step > call. Cancelling a node cancels all its descendants. A check costs one
/// load per ancestor. A node registers with its parent on its first callback. Thread-safe.
class Cancellation {
 public:
  using Clock = Timer::Clock;

  /// `parent` must outlive this node; null: a root.
  explicit Cancellation(Cancellation* parent = nullptr)
      : parent_(parent), deadline_(parent != nullptr ? parent->deadline_ : Clock::time_point::max()) {}
  ~Cancellation();
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  /// Cancels with `why` at `deadline`. Call it before the node is shared, at most once.
  void CancelAt(Clock::time_point deadline, Status why);
  /// Returns false if the node is already cancelled. Runs the callbacks on this thread without holding locks.
  bool Cancel(Status why);

  /// True if this node or an ancestor is cancelled.
  bool cancelled() const {
    for (const Cancellation* node = this; node != nullptr; node = node->parent_) {
      if (node->cancelled_.load(std::memory_order_relaxed)) return true;
    }
    return false;
  }
  /// The same without asking the ancestors: enough for a node with a callback, which an ancestor's Cancel reaches.
  bool cancelled_itself() const { return cancelled_.load(std::memory_order_relaxed); }
  /// The reason, or ok if not cancelled. If several nodes are cancelled, the reason of the lowest.
  Status status() const;
  /// The earliest deadline of this node and of its ancestors at construction; Clock::time_point::max() if there is
  /// none.
  Clock::time_point deadline() const { return deadline_; }
  /// Detaches a cancelled node from its ancestors, so that they may be destroyed first.
  void Leave() { from_parent_.Deregister(); }

 private:
  friend class CancelCallback;
  bool Add(CancelCallback& callback);
  bool Remove(CancelCallback& callback);
  void Unlink(CancelCallback& callback);

  Cancellation* const parent_;
  std::atomic<bool> cancelled_{false};
  Clock::time_point deadline_;
  mutable std::mutex mutex_;  // protects all below
  Status why_;
  CancelCallback* first_ = nullptr;
  std::atomic<CancelCallback*> running_{nullptr};  // the callback that runner_ is calling
  std::thread::id runner_;
  bool joined_ = false;  // from_parent_ is registered, on the first callback
  CancelCallback from_parent_;
  std::unique_ptr<Timer> timer_;
};

}  // namespace weir::runtime

#endif  // WEIR_CORE_RUNTIME_CANCELLATION_H_
