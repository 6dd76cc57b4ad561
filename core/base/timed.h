// Runs calls that may never return on a separate thread, with a time limit.
#ifndef WEIR_CORE_BASE_TIMED_H_
#define WEIR_CORE_BASE_TIMED_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace weir {

/// The result of `call`, or nullopt if it takes longer than `limit` or no thread can be started. A call that exceeds
/// the limit keeps running, so it must own everything it touches; its result is destroyed on its thread.
template <class T>
std::optional<T> RunWithin(std::chrono::milliseconds limit, std::function<T()> call) {
  struct Shared {
    std::mutex mutex;  // protects result
    std::condition_variable ready;
    std::optional<T> result;
  };
  auto shared = std::make_shared<Shared>();
  std::thread thread;
  try {
    thread = std::thread([shared, call = std::move(call)] {
      T result = call();
      const std::lock_guard lock(shared->mutex);
      shared->result = std::move(result);
      shared->ready.notify_one();
    });
  } catch (const std::system_error&) {
    return std::nullopt;
  }
  std::unique_lock lock(shared->mutex);
  if (!shared->ready.wait_for(lock, limit, [&] { return shared->result.has_value(); })) {
    thread.detach();
    return std::nullopt;
  }
  lock.unlock();
  thread.join();  // it has finished its work
  return std::move(shared->result);
}

}  // namespace weir

#endif  // WEIR_CORE_BASE_TIMED_H_
