// Whether something is so short, run after run, that handing it to another thread takes longer.
#ifndef WEIR_CORE_CLUSTER_SHORT_RUNS_H_
#define WEIR_CORE_CLUSTER_SHORT_RUNS_H_

#include <atomic>
#include <chrono>
#include <ctime>

namespace weir::cluster {

/// Counts the runs in a row that were short: in processor time of their thread, and in all, with what they waited for.
/// Thread-safe.
class ShortRuns {
 public:
  bool AreShort() const { return row_.load(std::memory_order_relaxed) >= kRow; }

  /// A run on this thread, from construction to destruction.
  class Timed {
   public:
    explicit Timed(ShortRuns& runs) : runs_(runs) {}
    ~Timed() {
      const auto took = std::chrono::steady_clock::now() - since_;
      // A thread works no longer than time passes; to ask how long is a system call.
      const bool is_short = took <= kMost && (took <= kMostWork || Worked() - worked_ <= kMostWork);
      if (!is_short) runs_.row_.store(0, std::memory_order_relaxed);
      else if (!runs_.AreShort()) runs_.row_.fetch_add(1, std::memory_order_relaxed);
    }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

   private:
    static std::chrono::nanoseconds Worked() {
      timespec time{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
    }
    ShortRuns& runs_;
    const std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
    const std::chrono::nanoseconds worked_ = Worked();
  };

 private:
  static constexpr int kRow = 3;
  static constexpr int kSlower = WEIR_SANITIZER_KIND == 0 ? 1 : 20;
  static constexpr std::chrono::microseconds kMost{5000 * kSlower}, kMostWork{250 * kSlower};
  std::atomic<int> row_{0};
};

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_SHORT_RUNS_H_
