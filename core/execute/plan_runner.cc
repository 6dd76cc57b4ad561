#include "core/execute/plan_runner.h"

#include <utility>

#include "core/execute/instance_internal.h"

namespace weir::execute {
namespace {

constexpr size_t kIdleInstances = 16;

}  // namespace

PlanRunner::PlanRunner(std::unique_ptr<plan::ExecutionPlan> plan) : plan_(std::move(plan)) {
  calls_.reserve(plan_->calls.size());
  for (const plan::CallSpec& call : plan_->calls) calls_.emplace_back(call);
  kernel_mutexes_.resize(plan_->kernels.size());
  for (const plan::Instruction& instruction : plan_->instructions) {
    if (instruction.serialized) kernel_mutexes_[instruction.detail] = std::make_unique<std::mutex>();
  }
}

PlanRunner::~PlanRunner() { delete idle_.load(); }

Result<std::unique_ptr<PlanRunner::Instance>> PlanRunner::Acquire() {
  if (Instance* instance = idle_.exchange(nullptr, std::memory_order_acquire))
    return std::unique_ptr<Instance>(instance);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!more_idle_.empty()) {
      std::unique_ptr<Instance> instance = std::move(more_idle_.back());
      more_idle_.pop_back();
      return instance;
    }
  }
  return Instance::Make(*plan_);
}

void PlanRunner::Release(std::unique_ptr<Instance> instance) {
  Instance* expected = nullptr;
  if (idle_.compare_exchange_strong(expected, instance.get(), std::memory_order_release)) {
    (void)instance.release();
    return;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (more_idle_.size() < kIdleInstances) more_idle_.push_back(std::move(instance));
}

Status PlanRunner::Run(std::span<const Tensor> feeds, std::vector<Tensor>* fetches, const StepArgs& step) {
  WEIR_ASSIGN(std::unique_ptr<Instance> instance, Acquire());
  Status status = instance->Run(*this, feeds, fetches, step);
  Release(std::move(instance));
  return status;
}

}  // namespace weir::execute
