#include "core/execute/parts_runner.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/execute/dataflow_internal.h"
#include "core/execute/denormals.h"

namespace weir::execute {

struct PartsRunner::Together {
  std::vector<std::unique_ptr<PlanRunner::Instance>> instances;  // by part, as the two below
  std::vector<std::vector<Tensor>> feeds, fetches;
  std::unique_ptr<Dataflow> flow;
  std::vector<FlowArgs> args;
};

PartsRunner::PartsRunner(std::vector<Part> parts) {
  std::vector<const plan::ExecutionPlan*> plans;
  for (Part& part : parts) {
    fetches_ += part.fetches.size();
    plans.push_back(part.plan.get());
    parts_.push_back({PlanRunner::Program::Make(std::move(part.plan)), std::move(part.feeds), std::move(part.fetches)});
  }
  links_ = std::make_unique<const Links>(plans);
}

PartsRunner::~PartsRunner() = default;

Result<std::unique_ptr<PartsRunner::Together>> PartsRunner::Make() const {
  auto made = std::make_unique<Together>();
  std::vector<PlanRunner::Instance*> instances;
  for (const Planned& part : parts_) {
    WEIR_ASSIGN(std::unique_ptr<PlanRunner::Instance> instance, PlanRunner::Instance::Make(*part.program->plan));
    instances.push_back(instance.get());
    made->instances.push_back(std::move(instance));
  }
  made->flow = std::make_unique<Dataflow>(instances, *links_);
  made->feeds.resize(parts_.size());
  made->fetches.resize(parts_.size());
  made->args.resize(parts_.size());
  return made;
}

Status PartsRunner::Run(std::span<const Tensor> feeds, std::vector<Tensor>* fetches, const StepArgs& step,
                        std::deque<TapeTrace>* traces) {
  WEIR_ASSIGN(std::unique_ptr<Together> run, pool_.Acquire([this] { return Make(); }));
  Status status = RunIn(*run, feeds, fetches, step, traces);
  const auto goes_on = [](const auto& instance) { return instance->abandoned(); };
  if (std::ranges::any_of(run->instances, goes_on)) [[unlikely]] {
    pool_.Forget();
    Abandon(std::move(run), step);
  } else {
    pool_.Release(std::move(run));
  }
  return status;
}

Status PartsRunner::RunIn(Together& run, std::span<const Tensor> feeds, std::vector<Tensor>* fetches,
                          const StepArgs& step, std::deque<TapeTrace>* traces) {
  const FlushDenormals flush;
  for (size_t p = 0; p < parts_.size(); ++p) {
    for (const int feed : parts_[p].feeds) run.feeds[p].push_back(feeds[static_cast<size_t>(feed)]);
  }
  fetches->assign(fetches_, Tensor());  // only now: they may hold the feeds
  Status status;
  size_t failed = 0, open = 0;
  while (open < parts_.size() && status.ok()) {
    failed = open++;
    StepArgs own = step;
    own.trace = traces == nullptr ? nullptr : &(*traces)[failed];
    status = run.instances[failed]->Open(run.feeds[failed], &run.fetches[failed], own);
  }
  if (status.ok()) {
    for (size_t p = 0; p < parts_.size(); ++p) {
      run.args[p] = {parts_[p].program.get(), &run.fetches[p], traces == nullptr ? nullptr : &(*traces)[p],
                     &run.instances[p]->step_resources_};
    }
    status = run.flow->Run(run.args, step);
    failed = run.flow->failed();
  }
  const Status ran = status;
  for (size_t p = 0; p < open; ++p) {
    Status own = ran.ok() || p == failed ? ran : Cancelled("[_Derived_]Another part of the step failed");
    own = run.instances[p]->Close(std::move(own), run.feeds[p], &run.fetches[p], run.flow->abandoned());
    if (status.ok() || (!ran.ok() && p == failed)) status = std::move(own);
  }
  for (size_t p = 0; p < parts_.size(); ++p) {
    for (size_t i = 0; i < run.fetches[p].size() && status.ok(); ++i) {
      (*fetches)[static_cast<size_t>(parts_[p].fetches[i])] = std::move(run.fetches[p][i]);
    }
    run.feeds[p].clear();
    run.fetches[p].clear();
  }
  if (!status.ok()) fetches->clear();
  return status;
}

void PartsRunner::Abandon(std::unique_ptr<Together> run, const StepArgs& step) {
  auto kept = std::make_unique<AbandonedRun>();
  if (step.owner != nullptr) kept->owner = step.owner->lock();
  for (const Planned& part : parts_) kept->programs.push_back(part.program);
  kept->instances = std::move(run->instances);
  kept->flow = std::move(run->flow);
  AbandonedRun::Keep(std::move(kept));
}

std::vector<const plan::ExecutionPlan*> PartsRunner::plans() const {
  std::vector<const plan::ExecutionPlan*> plans;
  for (const Planned& part : parts_) plans.push_back(part.program->plan.get());
  return plans;
}

std::vector<PlanRunner::Held> PartsRunner::held() const {
  std::vector<PlanRunner::Held> held;
  for (const Planned& part : parts_) held.push_back({*part.program->plan, pool_.count()});
  return held;
}

bool PartsRunner::DropIdle() { return pool_.DropIdle(); }

}  // namespace weir::execute
