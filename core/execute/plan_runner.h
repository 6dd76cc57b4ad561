// Runs plans: tier T0 on the caller's thread, instruction by instruction; tier T2 task by task on all threads.
#ifndef WEIR_CORE_EXECUTE_PLAN_RUNNER_H_
#define WEIR_CORE_EXECUTE_PLAN_RUNNER_H_

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/execute/node_call.h"
#include "core/plan/plan.h"
#include "core/tensor/tensor.h"

namespace weir::execute {

/// A plan with the memory to run it. Thread-safe: every concurrent run has registers and an arena of its own, kept for
/// the next one.
///
/// The fast path takes no lock, makes no allocation and touches no atomic per instruction; an instruction with a
/// variable operand takes that variable's lock.
class PlanRunner {
 public:
  explicit PlanRunner(std::unique_ptr<plan::ExecutionPlan> plan);
  ~PlanRunner();
  PlanRunner(const PlanRunner&) = delete;
  PlanRunner& operator=(const PlanRunner&) = delete;

  const plan::ExecutionPlan& plan() const { return *plan_; }

  /// `feeds` have the types and shapes that the plan was built for and are only borrowed; `fetches` is filled with host
  /// tensors that share memory only with feeds, constants and each other, never with variables or what a later run
  /// writes. `feeds` may be elements of `fetches`. The first error ends the step.
  /// No op of the step is running any more when it returns.
  Status Run(std::span<const Tensor> feeds, std::vector<Tensor>* fetches, const StepArgs& step = {});

  /// Runs that have memory of their own now: running ones, and those kept for later.
  int instances() const { return instances_.load(std::memory_order_relaxed); }
  /// Lets go of the memory that is kept for later runs; false when there is none.
  bool DropIdle();

  /// Registers, arenas and tensors of one run at a time (instance_internal.h).
  class Instance;

 private:
  std::unique_ptr<Instance> TakeIdle();
  Result<std::unique_ptr<Instance>> Acquire();
  void Release(std::unique_ptr<Instance> instance);

  friend class Instance;
  std::unique_ptr<plan::ExecutionPlan> plan_;
  std::vector<NodeCall> calls_;                              // by ExecutionPlan::calls
  std::vector<std::unique_ptr<std::mutex>> kernel_mutexes_;  // by kernel, set for kernels that change their state
  std::array<std::atomic<Instance*>, 16> idle_{};            // instances for the next runs
  std::atomic<int> instances_{0};
};

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_PLAN_RUNNER_H_
