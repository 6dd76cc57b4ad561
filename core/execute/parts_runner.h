// Runs the plans of a step's parts together.
#ifndef WEIR_CORE_EXECUTE_PARTS_RUNNER_H_
#define WEIR_CORE_EXECUTE_PARTS_RUNNER_H_

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/execute/links.h"
#include "core/execute/plan_runner.h"
#include "core/execute/run_pool.h"
#include "core/execute/tape_trace.h"
#include "core/plan/plan.h"
#include "core/tensor/tensor.h"

namespace weir::execute {

/// The parts of a step that are in one process, with the memory to run them. All their tasks run on the same threads:
/// one whose message has not been sent holds none. Transfers between the parts move no bytes and compare no keys; those
/// with other processes meet in StepArgs::rendezvous. Thread-safe as PlanRunner.
class PartsRunner {
 public:
  struct Part {
    std::unique_ptr<plan::ExecutionPlan> plan;
    std::vector<int> feeds, fetches;  // positions among those of the step
  };
  explicit PartsRunner(std::vector<Part> parts);
  ~PartsRunner();

  /// As PlanRunner::Run, with feeds and fetches of the whole step. The first error of a part ends the others.
  /// `traces` (may be null): by part; used instead of StepArgs::trace.
  Status Run(std::span<const Tensor> feeds, std::vector<Tensor>* fetches, const StepArgs& step,
             std::deque<TapeTrace>* traces = nullptr);

  std::vector<const plan::ExecutionPlan*> plans() const;
  std::vector<PlanRunner::Held> held() const;
  bool DropIdle();

 private:
  struct Planned {
    std::shared_ptr<PlanRunner::Program> program;
    std::vector<int> feeds, fetches;
  };
  /// The instances of one run at a time.
  struct Together;

  Result<std::unique_ptr<Together>> Make() const;
  Status RunIn(Together& run, std::span<const Tensor> feeds, std::vector<Tensor>* fetches, const StepArgs& step,
               std::deque<TapeTrace>* traces);
  void Abandon(std::unique_ptr<Together> run, const StepArgs& step);

  std::vector<Planned> parts_;
  size_t fetches_ = 0;  // of all parts
  std::unique_ptr<const Links> links_;
  RunPool<Together> pool_;
};

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_PARTS_RUNNER_H_
