// When the instructions of one run began and ended.
#ifndef WEIR_CORE_EXECUTE_TAPE_TRACE_H_
#define WEIR_CORE_EXECUTE_TAPE_TRACE_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "core/plan/plan.h"
#include "core/trace/span.h"

namespace weir::execute {

/// Thread-safe. For one run, of which nothing is added after it has ended.
class TapeTrace {
 public:
  using Clock = std::chrono::steady_clock;

  /// The calling thread is the caller's.
  TapeTrace();
  /// Instruction `at` ran on the calling thread from `start` until now.
  void Add(uint32_t at, Clock::time_point start);
  /// With names and devices, for instructions that stand for work: kernels, calls, variables, copies.
  trace::StepTrace Finish(const plan::ExecutionPlan& plan, int64_t step_id) const;

 private:
  struct Entry {
    uint32_t at;
    int thread;
    int64_t start_ns, end_ns;
  };
  const Clock::time_point begin_ = Clock::now();
  const int64_t begin_us_;
  mutable std::mutex mutex_;  // protects all below
  std::map<std::thread::id, int> threads_;
  std::vector<Entry> entries_;
};

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_TAPE_TRACE_H_
