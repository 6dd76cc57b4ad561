// Traces of all parts that a task runs for a while, for a profiler that was attached to it.
#ifndef WEIR_CORE_CLUSTER_STEP_RECORDER_H_
#define WEIR_CORE_CLUSTER_STEP_RECORDER_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/base/status.h"
#include "core/runtime/cancellation.h"
#include "core/trace/span.h"

namespace weir::cluster {

/// What ran in the time, in order of the ends.
struct Recording {
  std::vector<trace::StepTrace> steps;
  int64_t dropped = 0;  // parts of steps beyond the limit
};

/// Thread-safe. Costs a look at a flag while nobody records.
class StepRecorder {
 public:
  static constexpr size_t kMostSpans = 100000;

  /// Records until `time` is over, or `cancellation`, which may be null. FailedPrecondition while another one records,
  /// Cancelled.
  Result<Recording> Record(std::chrono::milliseconds time, runtime::Cancellation* cancellation);
  /// Whether parts that begin now should be traced and added.
  bool on() const { return on_.load(std::memory_order_relaxed); }
  void Add(trace::StepTrace step);

 private:
  std::atomic<bool> on_{false};
  std::mutex mutex_;  // protects all below
  std::condition_variable changed_;
  bool taken_ = false;
  size_t spans_ = 0;
  Recording recording_;
};

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_STEP_RECORDER_H_
