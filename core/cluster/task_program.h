// A step whose parts are registered with several tasks.
#ifndef WEIR_CORE_CLUSTER_TASK_PROGRAM_H_
#define WEIR_CORE_CLUSTER_TASK_PROGRAM_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/step_traces.h"
#include "core/cluster/worker.h"
#include "core/session/tasks.h"

namespace weir::cluster {

/// The numbers of a session's requests, shared by its programs.
struct RequestNumbers {
  uint64_t session = 0;
  std::atomic<uint64_t> last{0};
  TaskClocks clocks;  // for traces
};

/// Deregisters its parts at its end.
class RegisteredProgram final : public session::TaskProgram {
 public:
  struct Part {
    std::shared_ptr<Worker> worker;
    PartHandle handle;
    std::map<std::string, std::string, std::less<>> origins = {};  // of its nodes: the lines of the model
  };
  /// `grace`: the time that tasks have to end a cancelled step.
  RegisteredProgram(std::shared_ptr<RequestNumbers> numbers, size_t fetches, std::chrono::milliseconds grace)
      : numbers_(std::move(numbers)), fetches_(fetches), grace_(grace) {}
  ~RegisteredProgram() override;

  /// Before the first run.
  void Add(Part part) { parts_.push_back(std::move(part)); }

  /// The first error that no other task caused, with the name of its task and the line of the model. A deadline says
  /// what waited in each task. When this returns, all parts have ended, except those of a cancelled step that did not
  /// end within the grace.
  Status Run(std::span<const Tensor> feeds, std::vector<Tensor>* fetches, runtime::Cancellation* cancellation,
             trace::StepTrace* trace) override;

 private:
  /// For a thread that waits for a far part; null: all are here.
  const runtime::WaitHelp* Help() const;
  /// The way of values between the own task and that of a part.
  std::shared_ptr<StepLink> LinkTo(Worker& own, const Part& part, uint64_t step) const;
  /// How far the tasks' clocks are ahead.
  std::vector<Result<int64_t>> AskClocks(Clock::time_point deadline) const;
  trace::StepTrace TakeTraces(uint64_t step, const std::vector<Result<int64_t>>& ahead) const;
  class Running;
  const std::shared_ptr<RequestNumbers> numbers_;
  const size_t fetches_;
  const std::chrono::milliseconds grace_;
  std::vector<Part> parts_;
};

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_TASK_PROGRAM_H_
