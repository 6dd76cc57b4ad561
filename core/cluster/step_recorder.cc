#include "core/cluster/step_recorder.h"

#include <utility>

#include "core/base/errors.h"

namespace weir::cluster {

Result<Recording> StepRecorder::Record(std::chrono::milliseconds time, runtime::Cancellation* cancellation) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (taken_) return FailedPrecondition("another profiler is attached: try again when it has ended");
  taken_ = true;
  recording_ = {};
  spans_ = 0;
  on_ = true;
  lock.unlock();
  bool cancelled = false;
  runtime::CancelCallback callback;
  const bool live = cancellation == nullptr || callback.Register(*cancellation, [&] {
    const std::lock_guard<std::mutex> held(mutex_);
    cancelled = true;
    changed_.notify_all();
  });
  lock.lock();
  changed_.wait_for(lock, time, [&] { return cancelled || !live; });
  on_ = false;
  lock.unlock();
  callback.Deregister();
  lock.lock();
  taken_ = false;
  Recording all = std::move(recording_);
  recording_ = {};
  if (cancelled || !live) return Cancelled("the profiler was detached");
  return all;
}

void StepRecorder::Add(trace::StepTrace step) {
  if (step.spans.empty()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!taken_) return;
  if (spans_ + step.spans.size() > kMostSpans) {
    ++recording_.dropped;
    return;
  }
  spans_ += step.spans.size();
  recording_.steps.push_back(std::move(step));
}

}  // namespace weir::cluster
