// Functions that run at a given time.
#ifndef WEIR_CORE_RUNTIME_TIMER_H_
#define WEIR_CORE_RUNTIME_TIMER_H_

#include <chrono>
#include <functional>
#include <memory>

namespace weir::runtime {

/// Runs a function once, at or shortly after a given time, on a thread of the blocking pool. One thread waits for all
/// timers of the process.
class Timer {
 public:
  using Clock = std::chrono::steady_clock;

  Timer(Clock::time_point when, std::function<void()> fn);
  /// The function will not start afterwards. Waits for it if it is running on another thread.
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  friend class TimerThread;
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace weir::runtime

#endif  // WEIR_CORE_RUNTIME_TIMER_H_
