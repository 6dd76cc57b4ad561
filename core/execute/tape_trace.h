// Start and end times of the instructions of one run.
#ifndef WEIR_CORE_EXECUTE_TAPE_TRACE_H_
#define WEIR_CORE_EXECUTE_TAPE_TRACE_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/plan/plan.h"
#include "core/trace/span.h"

namespace weir::execute {

/// Thread-safe. For one run; nothing may be added after its end.
class TapeTrace {
 public:
  using Clock = std::chrono::steady_clock;

  /// Must be constructed on the caller's thread.
  TapeTrace();
  /// Of another part of the same step: times and threads are counted as in `first`.
  TapeTrace(const TapeTrace& first);
  TapeTrace& operator=(const TapeTrace&) = delete;
  /// Call before the run with the form of the plan that it uses; the plan must outlive the trace.
  void RunsBy(const plan::ExecutionPlan& plan) { ran_ = &plan; }
  /// Instruction `at` ran on the calling thread from `start` until now.
  void Add(uint32_t at, Clock::time_point start);
  /// The device did some work of instruction `at` at these times of Clock. Spans then have the device's times.
  void AddOnDevice(uint32_t at, int64_t begin_ns, int64_t end_ns);
  /// Spans with names and devices for instructions that do work: kernels, calls, variables, copies. `declared` is the
  /// plan of the run unless RunsBy named another.
  trace::StepTrace Finish(const plan::ExecutionPlan& declared, int64_t step_id) const;

 private:
  struct Entry {
    uint32_t at;
    int thread;
    int64_t start_ns, end_ns;
    bool on_device = false;
  };
  /// The numbers of the step's threads.
  struct Threads {
    std::mutex mutex;  // protects `numbers`
    std::map<std::thread::id, int> numbers;
    int NumberOfThis();
  };
  const Clock::time_point begin_ = Clock::now();
  const int64_t begin_us_;
  const plan::ExecutionPlan* ran_ = nullptr;
  const std::shared_ptr<Threads> threads_;
  /// The entries with the device's times where it gave them, in order of their ends.
  std::vector<Entry> WithDeviceTimes() const;
  mutable std::mutex mutex_;  // protects entries_ and on_device_
  std::vector<Entry> entries_;
  std::map<uint32_t, std::vector<std::pair<int64_t, int64_t>>> on_device_;  // by instruction, in order
};

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_TAPE_TRACE_H_
