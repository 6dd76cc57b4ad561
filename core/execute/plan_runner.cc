#include "core/execute/plan_runner.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/execute/dataflow_internal.h"
#include "core/execute/instance_internal.h"
#include "core/execute/tape_trace.h"

namespace weir::execute {
namespace {

bool HasTiles(const plan::ExecutionPlan& plan) {
  return std::ranges::any_of(plan.kernels, [](const auto& kernel) { return kernel->tiles() > 1; });
}

}  // namespace

std::shared_ptr<PlanRunner::Program> PlanRunner::Program::Make(std::unique_ptr<plan::ExecutionPlan> plan) {
  auto program = std::make_shared<Program>();
  program->calls.reserve(plan->calls.size());
  for (const plan::CallSpec& call : plan->calls) program->calls.emplace_back(call);
  program->kernel_mutexes.resize(plan->kernels.size());
  for (const plan::Instruction& instruction : plan->instructions) {
    if (instruction.serialized) program->kernel_mutexes[instruction.detail] = std::make_unique<std::mutex>();
  }
  program->plan = std::move(plan);
  return program;
}

/// The alternative ways to run: the other form of the plan, if any, and both forms with tiles on one thread.
struct PlanRunner::Choice {
  struct Way {
    Pool* pool;
    bool alone;  // on the caller's thread only
  };
  std::unique_ptr<Pool> other;
  std::vector<Way> ways;
  size_t alone;  // the way that is alone
  TierChooser chooser;

  static std::unique_ptr<Choice> Make(const plan::ExecutionPlan& plan, Pool& pool) {
    const bool tiles = HasTiles(plan);
    if (!plan.other && (!tiles || plan.tier == plan::Tier::kT2)) return nullptr;
    std::unique_ptr<Pool> other = plan.other ? std::make_unique<Pool>(*plan.other) : nullptr;
    std::vector<Way> ways;
    size_t alone = 0;
    for (Pool* const of : {&pool, other.get()}) {
      if (of == nullptr) continue;
      const bool serial = of->held().plan.tier == plan::Tier::kT0;
      if (tiles || !serial) ways.push_back({of, false});
      if (serial) {
        alone = ways.size();
        ways.push_back({of, true});
      }
    }
    return std::unique_ptr<Choice>(new Choice{std::move(other), ways, alone, TierChooser(ways.size(), alone)});
  }
};

PlanRunner::PlanRunner(std::unique_ptr<plan::ExecutionPlan> plan)
    : program_(Program::Make(std::move(plan))), pool_(*program_->plan), choice_(Choice::Make(*program_->plan, pool_)) {}

PlanRunner::~PlanRunner() = default;

PlanRunner::Pool::Pool(const plan::ExecutionPlan& plan) : plan_(plan) {}
PlanRunner::Pool::~Pool() = default;

Result<std::unique_ptr<PlanRunner::Instance>> PlanRunner::Pool::Acquire() {
  return runs_.Acquire([this] { return Instance::Make(plan_); });
}

void PlanRunner::Pool::Release(std::unique_ptr<Instance> instance) { runs_.Release(std::move(instance)); }

bool PlanRunner::Pool::DropIdle() { return runs_.DropIdle(); }

std::vector<PlanRunner::Held> PlanRunner::held() const {
  std::vector<Held> held{pool_.held()};
  if (choice_ && choice_->other) held.push_back(choice_->other->held());
  return held;
}

bool PlanRunner::DropIdle() {
  const bool dropped = choice_ && choice_->other && choice_->other->DropIdle();
  return pool_.DropIdle() || dropped;
}

// A call of its own would be a twentieth of an empty run.
[[gnu::always_inline]] inline Status PlanRunner::RunIn(Pool& pool, std::span<const Tensor> feeds,
                                                       std::vector<Tensor>* fetches, const StepArgs& step) {
  WEIR_ASSIGN(std::unique_ptr<Instance> instance, pool.Acquire());
  Status status = instance->Run(*program_, feeds, fetches, step);
  if (instance->abandoned()) [[unlikely]] {
    pool.Forget();
    Abandon(std::move(instance), step);
  } else {
    pool.Release(std::move(instance));
  }
  return status;
}

Status PlanRunner::Run(std::span<const Tensor> feeds, std::vector<Tensor>* fetches, const StepArgs& step) {
  if (feeds.data() >= fetches->data() && feeds.data() < fetches->data() + fetches->size()) [[unlikely]] {
    const std::vector<Tensor> kept(feeds.begin(), feeds.end());  // `fetches` may overwrite them
    return Run(kept, fetches, step);
  }
  return choice_ == nullptr ? RunIn(pool_, feeds, fetches, step) : RunChosen(feeds, fetches, step);
}

Status PlanRunner::RunChosen(std::span<const Tensor> feeds, std::vector<Tensor>* fetches, const StepArgs& step) {
  using Clock = std::chrono::steady_clock;
  const bool plain = step.trace == nullptr && !step.check_numerics;
  const bool any = step.inter_op > 1 || !choice_->other;  // otherwise the run is restricted to one op at a time
  const TierChooser::Turn turn = any && plain ? choice_->chooser.Next()
                                 : any        ? TierChooser::Turn{choice_->chooser.way(), false}
                                              : TierChooser::Turn{choice_->alone, false};
  const Choice::Way& way = choice_->ways[turn.way];
  StepArgs own = step;
  if (way.alone && any) own.intra_op = 1;
  if (step.trace != nullptr) step.trace->RunsBy(way.pool->held().plan);
  if (!turn.measured) return RunIn(*way.pool, feeds, fetches, own);
  const Clock::time_point start = Clock::now();
  Status status = RunIn(*way.pool, feeds, fetches, own);
  const int64_t ns = std::chrono::nanoseconds(Clock::now() - start).count();
  if (choice_->chooser.Took(turn, status.ok() ? ns : -1)) {
    Pool* const chosen = choice_->ways[choice_->chooser.way()].pool;
    for (Pool* const pool : {&pool_, choice_->other.get()}) {
      if (pool != nullptr && pool != chosen) pool->DropIdle();
    }
  }
  return status;
}

void PlanRunner::Abandon(std::unique_ptr<Instance> instance, const StepArgs& step) {
  auto kept = std::make_unique<AbandonedRun>();
  if (step.owner != nullptr) kept->owner = step.owner->lock();
  kept->programs.push_back(program_);
  kept->instances.push_back(std::move(instance));
  AbandonedRun::Keep(std::move(kept));
}

}  // namespace weir::execute
