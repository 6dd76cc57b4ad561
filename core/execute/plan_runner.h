// Runs plans: tier T0 serially on the caller's thread, tier T2 task by task on all threads.
#ifndef WEIR_CORE_EXECUTE_PLAN_RUNNER_H_
#define WEIR_CORE_EXECUTE_PLAN_RUNNER_H_

#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/execute/node_call.h"
#include "core/execute/run_pool.h"
#include "core/execute/tier_chooser.h"
#include "core/plan/plan.h"
#include "core/tensor/tensor.h"

namespace weir::execute {

/// A plan with the memory to run it. Thread-safe: every concurrent run has its own registers and arena, which later
/// runs reuse.
///
/// The fast path takes no locks, does not allocate, and uses no atomics per instruction; an instruction with a variable
/// operand takes that variable's lock.
class PlanRunner {
 public:
  explicit PlanRunner(std::unique_ptr<plan::ExecutionPlan> plan);
  ~PlanRunner();
  PlanRunner(const PlanRunner&) = delete;
  PlanRunner& operator=(const PlanRunner&) = delete;

  /// The form chosen by declared times. Runs may use the other form (ExecutionPlan::other) if it was measured to be
  /// faster.
  const plan::ExecutionPlan& plan() const { return *program_->plan; }

  /// `feeds` must have the types and shapes of the plan and are borrowed. `fetches` is filled with host tensors, which
  /// share memory only with feeds, constants and each other, never with variables or memory that a later run writes.
  /// `feeds` may be elements of `fetches`. The first error ends the step.
  /// When this returns no op of the step is running, except ops that did not complete within step.grace after a
  /// cancellation; these keep the memory that they use.
  Status Run(std::span<const Tensor> feeds, std::vector<Tensor>* fetches, const StepArgs& step = {});

  /// A form of the plan, and the number of runs, active and cached, that have memory for it.
  struct Held {
    const plan::ExecutionPlan& plan;
    int instances;
  };
  std::vector<Held> held() const;
  /// Frees the memory cached for later runs; false if there was none.
  bool DropIdle();

  /// State shared by all runs.
  struct Program {
    static std::shared_ptr<Program> Make(std::unique_ptr<plan::ExecutionPlan> plan);
    std::unique_ptr<plan::ExecutionPlan> plan;
    std::vector<NodeCall> calls;                              // by ExecutionPlan::calls
    std::vector<std::unique_ptr<std::mutex>> kernel_mutexes;  // by kernel, set for stateful kernels
  };
  /// Registers, arenas and tensors of one run at a time (instance_internal.h).
  class Instance;

 private:
  /// The instances of one form of the plan.
  class Pool {
   public:
    explicit Pool(const plan::ExecutionPlan& plan);
    ~Pool();
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    Result<std::unique_ptr<Instance>> Acquire();
    void Release(std::unique_ptr<Instance> instance);
    /// An acquired instance will not be returned.
    void Forget() { runs_.Forget(); }
    bool DropIdle();
    Held held() const { return {plan_, runs_.count()}; }

   private:
    const plan::ExecutionPlan& plan_;
    RunPool<Instance> runs_;
  };
  /// Used if there are several ways to run.
  struct Choice;

  Status RunIn(Pool& pool, std::span<const Tensor> feeds, std::vector<Tensor>* fetches, const StepArgs& step);
  Status RunChosen(std::span<const Tensor> feeds, std::vector<Tensor>* fetches, const StepArgs& step);
  /// Keeps an instance with unfinished work, and everything that the work uses, until it has finished.
  void Abandon(std::unique_ptr<Instance> instance, const StepArgs& step);

  const std::shared_ptr<Program> program_;
  Pool pool_;
  const std::unique_ptr<Choice> choice_;  // null if there is only one way
};

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_PLAN_RUNNER_H_
