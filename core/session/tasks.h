// Steps whose parts run in several processes.
#ifndef WEIR_CORE_SESSION_TASKS_H_
#define WEIR_CORE_SESSION_TASKS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/graph/part.h"
#include "core/tensor/tensor.h"
#include "core/trace/span.h"

namespace weir::runtime {
class Cancellation;
}

namespace weir::session {

/// The parts of a step, registered with their tasks. Thread-safe: every run is a step of its own.
class TaskProgram {
 public:
  virtual ~TaskProgram() = default;
  /// As Program::Run, with feeds and fetches of the whole step. `cancellation` (may be null) ends the step. `trace`
  /// (may be null) gets the times of all ops of all tasks on the clock of this process, also if the run fails.
  virtual Status Run(std::span<const Tensor> feeds, std::vector<Tensor>* fetches, runtime::Cancellation* cancellation,
                     trace::StepTrace* trace) = 0;
};

/// The tasks that run the steps of a session. Thread-safe.
class Tasks {
 public:
  virtual ~Tasks() = default;
  /// kRegistered: all parts are registered, those on devices of this process too. kInSession: the session may also run
  /// steps on these alone, because the parts registered here use its resources.
  enum class OwnParts : uint8_t { kRegistered, kInSession };
  virtual OwnParts own_parts() const { return OwnParts::kRegistered; }
  /// True for a device of this process.
  virtual bool IsHere(std::string_view device) const = 0;
  /// The incarnation of a device's process: a number that differs after a restart.
  virtual uint64_t IncarnationOf(std::string_view device) const = 0;
  /// Registers one part per task. `fetches`: their number in the whole step.
  virtual Result<std::unique_ptr<TaskProgram>> Register(std::vector<graph::Part> parts, size_t fetches) = 0;
};

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_TASKS_H_
