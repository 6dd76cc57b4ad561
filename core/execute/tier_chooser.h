// Chooses the fastest of several ways to run a plan: by declared times first, then by measured ones.
#ifndef WEIR_CORE_EXECUTE_TIER_CHOOSER_H_
#define WEIR_CORE_EXECUTE_TIER_CHOOSER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::execute {

/// Ways are numbered; way 0 is used until runs have been measured. A check measures several runs of each way, skips the
/// first one after a change, and compares medians. Checks are repeated so rarely that slower ways take at most 1/200 of
/// the time. An unmeasured run costs one addition. Thread-safe; measures one run at a time.
class TierChooser {
 public:
  struct Turn {
    size_t way = 0;
    bool measured = false;
  };

  static constexpr int64_t kFirstCheck = 4;         // runs before the first check
  static constexpr int64_t kLeastInterval = 1000;   // minimum number of runs between two checks
  static constexpr double kWorthThreads = 0.95;     // relative to one thread: slower ways are not worth the threads
  static constexpr double kWorthChanging = 0.97;    // relative to the current way
  static constexpr size_t kPasses = 2, kInRow = 4;  // a check: number of passes, and of consecutive runs per way
  static constexpr double kCheckShare = 0.005;      // of the total time, for slower ways

  /// `alone` is the way that uses only the caller's thread.
  TierChooser(size_t ways, size_t alone) : alone_(alone), times_(ways) {}

  /// The way of the next run. A measured run must end with Took.
  Turn Next() {
    if (left_.fetch_sub(1, std::memory_order_relaxed) > 0) return {way(), false};
    return Measure();
  }
  /// Reports the time of a measured run in ns; negative for a failed run, which ends the check. True at the end of a
  /// check: memory cached by the other ways is then not needed for long.
  bool Took(Turn turn, int64_t ns);
  size_t way() const { return way_.load(std::memory_order_relaxed); }

 private:
  Turn Measure();
  /// Chooses by the medians of times_.
  void Choose();

  const size_t alone_;
  std::atomic<int64_t> left_{kFirstCheck};  // runs until the next check
  std::atomic<size_t> way_{0};
  std::atomic<bool> measuring_{false};       // the thread that set it owns the members below
  size_t at_ = 0;                            // run of the check
  int64_t unchanged_ = 1;                    // doubles with each check that does not change the way
  std::vector<std::vector<int64_t>> times_;  // by way
};

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_TIER_CHOOSER_H_
