// Objects that runs leave for later runs.
#ifndef WEIR_CORE_EXECUTE_RUN_POOL_H_
#define WEIR_CORE_EXECUTE_RUN_POOL_H_

#include <array>
#include <atomic>
#include <memory>
#include <utility>

#include "core/base/status.h"

namespace weir::execute {

/// Keeps up to 16 idle objects, and counts those that are idle or in use. Thread-safe, without locks.
template <class T>
class RunPool {
 public:
  RunPool() = default;
  ~RunPool() { DropIdle(); }
  RunPool(const RunPool&) = delete;
  RunPool& operator=(const RunPool&) = delete;

  /// An idle object, or a new one by `make`, which returns Result<std::unique_ptr<T>>.
  template <class Make>
  Result<std::unique_ptr<T>> Acquire(const Make& make) {
    if (std::unique_ptr<T> idle = TakeIdle()) return idle;
    WEIR_ASSIGN(std::unique_ptr<T> made, make());
    count_.fetch_add(1, std::memory_order_relaxed);
    return made;
  }
  void Release(std::unique_ptr<T> object) {
    for (std::atomic<T*>& idle : idle_) {
      T* expected = nullptr;
      if (idle.load(std::memory_order_relaxed) != nullptr) continue;
      if (!idle.compare_exchange_strong(expected, object.get(), std::memory_order_release)) continue;
      (void)object.release();
      return;
    }
    Forget();
  }
  /// An acquired object will not be returned.
  void Forget() { count_.fetch_sub(1, std::memory_order_relaxed); }
  /// False if there was no idle object.
  bool DropIdle() {
    size_t dropped = 0;  // limited to the number of cached objects, since runs may continue meanwhile
    while (dropped < idle_.size() && TakeIdle()) ++dropped;
    count_.fetch_sub(static_cast<int>(dropped), std::memory_order_relaxed);
    return dropped != 0;
  }
  int count() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::unique_ptr<T> TakeIdle() {
    for (std::atomic<T*>& idle : idle_) {
      if (idle.load(std::memory_order_relaxed) == nullptr) continue;
      if (T* object = idle.exchange(nullptr, std::memory_order_acquire)) return std::unique_ptr<T>(object);
    }
    return nullptr;
  }

  std::array<std::atomic<T*>, 16> idle_{};
  std::atomic<int> count_{0};
};

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_RUN_POOL_H_
