#include "core/execute/plan_runner.h"

#include <utility>

#include "core/execute/instance_internal.h"

namespace weir::execute {

PlanRunner::PlanRunner(std::unique_ptr<plan::ExecutionPlan> plan) : plan_(std::move(plan)) {
  calls_.reserve(plan_->calls.size());
  for (const plan::CallSpec& call : plan_->calls) calls_.emplace_back(call);
  kernel_mutexes_.resize(plan_->kernels.size());
  for (const plan::Instruction& instruction : plan_->instructions) {
    if (instruction.serialized) kernel_mutexes_[instruction.detail] = std::make_unique<std::mutex>();
  }
}

PlanRunner::~PlanRunner() { DropIdle(); }

std::unique_ptr<PlanRunner::Instance> PlanRunner::TakeIdle() {
  for (std::atomic<Instance*>& idle : idle_) {
    if (idle.load(std::memory_order_relaxed) == nullptr) continue;
    if (Instance* instance = idle.exchange(nullptr, std::memory_order_acquire)) {
      return std::unique_ptr<Instance>(instance);
    }
  }
  return nullptr;
}

bool PlanRunner::DropIdle() {
  size_t dropped = 0;  // at most as many as are kept at once: runs go on meanwhile
  while (dropped < idle_.size() && TakeIdle()) ++dropped;
  instances_.fetch_sub(static_cast<int>(dropped), std::memory_order_relaxed);
  return dropped != 0;
}

Result<std::unique_ptr<PlanRunner::Instance>> PlanRunner::Acquire() {
  if (std::unique_ptr<Instance> idle = TakeIdle()) return idle;
  WEIR_ASSIGN(std::unique_ptr<Instance> made, Instance::Make(*plan_));
  instances_.fetch_add(1, std::memory_order_relaxed);
  return made;
}

void PlanRunner::Release(std::unique_ptr<Instance> instance) {
  for (std::atomic<Instance*>& idle : idle_) {
    Instance* expected = nullptr;
    if (idle.load(std::memory_order_relaxed) != nullptr) continue;
    if (!idle.compare_exchange_strong(expected, instance.get(), std::memory_order_release)) continue;
    (void)instance.release();
    return;
  }
  instances_.fetch_sub(1, std::memory_order_relaxed);
}

Status PlanRunner::Run(std::span<const Tensor> feeds, std::vector<Tensor>* fetches, const StepArgs& step) {
  if (feeds.data() >= fetches->data() && feeds.data() < fetches->data() + fetches->size()) [[unlikely]] {
    const std::vector<Tensor> kept(feeds.begin(), feeds.end());  // the fetches go to their place
    return Run(kept, fetches, step);
  }
  WEIR_ASSIGN(std::unique_ptr<Instance> instance, Acquire());
  Status status = instance->Run(*this, feeds, fetches, step);
  Release(std::move(instance));
  return status;
}

}  // namespace weir::execute
