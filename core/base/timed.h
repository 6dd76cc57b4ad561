// Runs calls that may never return on a separate thread, with a time limit.
#ifndef WEIR_CORE_BASE_TIMED_H_
#define WEIR_CORE_BASE_TIMED_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace weir {

/// One thread for calls that follow each other. Not thread-safe.
class TimedCalls {
 public:
  TimedCalls();
  /// Ends the thread, unless its call exceeded the limit.
  ~TimedCalls();
  TimedCalls(const TimedCalls&) = delete;
  TimedCalls& operator=(const TimedCalls&) = delete;

  /// The result of `call`, or nullopt if it takes longer than `limit` or no thread can be started. A call that exceeds
  /// the limit keeps running, so it must own everything it touches; its result is destroyed on its thread. The next
  /// call has a new thread then.
  template <class T>
  std::optional<T> Run(std::chrono::milliseconds limit, std::function<T()> call) {
    auto result = std::make_shared<std::optional<T>>();
    if (!Do(limit, [result, call = std::move(call)] { *result = call(); })) return std::nullopt;
    return std::move(*result);
  }

 private:
  struct Shared;
  bool Do(std::chrono::milliseconds limit, std::function<void()> call);

  std::shared_ptr<Shared> shared_;  // with the thread; null: none yet
};

/// As TimedCalls::Run, for one call.
template <class T>
std::optional<T> RunWithin(std::chrono::milliseconds limit, std::function<T()> call) {
  return TimedCalls().Run<T>(limit, std::move(call));
}

}  // namespace weir

#endif  // WEIR_CORE_BASE_TIMED_H_
