#include "core/runtime/timer.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "core/runtime/blocking_pool.h"

namespace weir::runtime {

struct Timer::State {
  enum class Phase { kWaiting, kRunning, kOver };
  const Clock::time_point when;
  std::mutex mutex;  // protects all below
  std::function<void()> fn;
  std::condition_variable ended;
  Phase phase = Phase::kWaiting;
  std::thread::id runner;

  State(Clock::time_point at, std::function<void()> function) : when(at), fn(std::move(function)) {}

  void Run() {
    std::unique_lock lock(mutex);
    if (phase != Phase::kWaiting) return;
    phase = Phase::kRunning;
    runner = std::this_thread::get_id();
    lock.unlock();
    fn();
    lock.lock();
    phase = Phase::kOver;
    ended.notify_all();
  }

  void Stop() {
    std::unique_lock lock(mutex);
    if (phase == Phase::kWaiting) phase = Phase::kOver;
    if (runner == std::this_thread::get_id()) return;
    ended.wait(lock, [this] { return phase == Phase::kOver; });
  }
};

/// Waits for the next timer of the process.
class TimerThread {
 public:
  static TimerThread& Get() {
    static TimerThread* const thread = new TimerThread;  // its detached thread may outlive main
    return *thread;
  }

  void Add(const std::shared_ptr<Timer::State>& timer) {
    const std::lock_guard lock(mutex_);
    if (!started_) Start();
    timers_.emplace(Key(timer), timer);
    // Notifies only if the thread must wake earlier. Remove does not notify, because most timers are removed long
    // before they expire; the thread wakes at the old time and waits again.
    if (timer->when < wakes_at_) changed_.notify_one();
  }

  void Remove(const std::shared_ptr<Timer::State>& timer) {
    const std::lock_guard lock(mutex_);
    timers_.erase(Key(timer));
  }

 private:
  using Order = std::pair<Timer::Clock::time_point, const Timer::State*>;
  static Order Key(const std::shared_ptr<Timer::State>& timer) { return {timer->when, timer.get()}; }

  void Start() {
    try {
      std::thread([this] { Work(); }).detach();
      started_ = true;
    } catch (const std::system_error&) {
      // The next timer tries again.
    }
  }

  void Work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      while (!timers_.empty() && timers_.begin()->first.first <= Timer::Clock::now()) {
        const std::shared_ptr<Timer::State> due = timers_.begin()->second;
        timers_.erase(timers_.begin());
        lock.unlock();
        Fire(due);
        lock.lock();
      }
      if (timers_.empty()) {
        wakes_at_ = Timer::Clock::time_point::max();
        changed_.wait(lock);
      } else {
        wakes_at_ = timers_.begin()->first.first;
        changed_.wait_until(lock, wakes_at_);
      }
      wakes_at_ = Timer::Clock::time_point::min();  // awake
    }
  }

  /// Runs on a separate thread, so that a slow function delays no other timer.
  static void Fire(const std::shared_ptr<Timer::State>& due) {
    auto job = std::make_unique<std::shared_ptr<Timer::State>>(due);
    const Status given = RunBlocking(
        [](void* arg) {
          const std::unique_ptr<std::shared_ptr<Timer::State>> own(static_cast<std::shared_ptr<Timer::State>*>(arg));
          (*own)->Run();
        },
        job.get());
    if (given.ok()) {
      (void)job.release();
    } else {
      due->Run();
    }
  }

  std::mutex mutex_;  // protects all below
  std::condition_variable changed_;
  std::map<Order, std::shared_ptr<Timer::State>> timers_;
  Timer::Clock::time_point wakes_at_ = Timer::Clock::time_point::min();
  bool started_ = false;
};

Timer::Timer(Clock::time_point when, std::function<void()> fn) : state_(std::make_shared<State>(when, std::move(fn))) {
  TimerThread::Get().Add(state_);
}

Timer::~Timer() {
  TimerThread::Get().Remove(state_);
  state_->Stop();
}

}  // namespace weir::runtime
