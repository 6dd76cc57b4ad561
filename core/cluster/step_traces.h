// Traces of a step's parts: as bytes, and together on one clock.
#ifndef WEIR_CORE_CLUSTER_STEP_TRACES_H_
#define WEIR_CORE_CLUSTER_STEP_TRACES_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/cluster/worker.h"
#include "core/trace/span.h"

namespace weir::cluster {

/// The clock of traces: microseconds since 1970.
int64_t WallClockMicros();

Result<std::string> EncodeTrace(const trace::StepTrace& trace);
/// Of bytes from another process. InvalidArgument for bytes that are no trace, and for spans that end before they begin
/// or begin before the step.
Result<trace::StepTrace> DecodeTrace(std::string_view bytes);

/// How far the clocks of tasks are ahead of this process's. Thread-safe.
class TaskClocks {
 public:
  /// In microseconds: half-way in the fastest of some GetStatus calls, so that the error is at most half of its time.
  /// Asked again after ten seconds, since clocks drift. 0 for a task of this process.
  Result<int64_t> Ahead(Worker& worker, Clock::time_point deadline);

 private:
  struct Measured {
    int64_t ahead_us = 0;
    Clock::time_point at;
  };
  std::mutex mutex_;  // protects measured_
  std::map<TaskName, Measured> measured_;
};

/// What a task recorded of a step, or why that is missing.
struct TaskTrace {
  TaskName task;
  int64_t ahead_us = 0;  // of its clock
  Result<trace::StepTrace> trace;
};

/// One step on the clock of this process: spans in order of their ends. A span of no device gets the CPU of its task. A
/// missing trace becomes a span "MissingTrace" that says why. `step_id`: of the result.
trace::StepTrace MergeTraces(std::vector<TaskTrace> parts, int64_t step_id);

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_STEP_TRACES_H_
