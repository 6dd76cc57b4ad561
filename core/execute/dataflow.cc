// Tier T2: tasks run as soon as what they need is there.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <utility>

#include "core/execute/denormals.h"
#include "core/execute/instance_internal.h"
#include "core/kernel/blocking_pool.h"
#include "core/kernel/compute_pool.h"

namespace weir::execute {
namespace {

constexpr auto kSpinTime = std::chrono::microseconds(20);
constexpr auto kLookTime = std::chrono::milliseconds(1);  // how soon a waiting step notices that it is to end

}  // namespace

Dataflow::Dataflow(PlanRunner::Instance& instance, PlanRunner& runner, std::vector<Tensor>* fetches,
                   const StepArgs& step)
    : instance_(instance), runner_(runner), fetches_(fetches), step_(step) {
  if (step.control != nullptr) control_ = *step.control;
  control_.failed = &failed_;
  step_.control = &control_;
  step_.streams = instance.streams_.any() ? &instance.streams_ : nullptr;
  const std::vector<plan::Task>& tasks = instance.plan_.tasks;
  pending_.assign(tasks.size(), 0);
  inner_.assign(tasks.size(), 0);
  for (size_t t = 0; t < tasks.size(); ++t) {
    if (tasks[t].loop >= 0) continue;
    ++left_;
    pending_[t] = tasks[t].predecessors;
    if (pending_[t] == 0) MakeReady(static_cast<uint32_t>(t));
  }
}

Status Dataflow::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    if (left_ == 0 || !error_.ok()) break;
    if (control_.stopped()) {
      error_ = control_.Check();
      if (error_.code() == Code::kDeadlineExceeded) error_ = error_.Append(Waiting());
      failed_.store(true);
      break;
    }
    Launch();
    if (!ready_.empty()) {
      lock.unlock();
      Work();
      lock.lock();
      continue;
    }
    if (left_ == 0 || !error_.ok()) continue;
    const uint32_t seen = events_.load(std::memory_order_acquire);
    lock.unlock();
    const auto until = std::chrono::steady_clock::now() + kSpinTime;
    while (events_.load(std::memory_order_acquire) == seen && std::chrono::steady_clock::now() < until) {
    }
    lock.lock();
    if (events_.load(std::memory_order_acquire) == seen) changed_.wait_for(lock, kLookTime);
  }
  // Nothing of the step may still run once the caller has its answer: feeds are only borrowed.
  changed_.wait(lock, [this] { return active_ == 0 && helpers_ == 0; });
  return error_;
}

std::string Dataflow::Waiting() const {
  constexpr size_t kShown = 10;
  const plan::ExecutionPlan& plan = instance_.plan_;
  const auto name = [&](uint32_t task) {
    return plan.nodes[static_cast<size_t>(plan.instructions[plan.tasks[task].begin].node)]->name();
  };
  const auto list = [&](const char* what, const std::vector<uint32_t>& tasks) {
    std::string text;
    std::set<std::string> names;
    for (const uint32_t task : tasks) {
      if (!names.insert(name(task)).second || names.size() > kShown) continue;
      text += (names.size() == 1 ? fmt::format("\n{}: '", what) : ", '") + name(task) + "'";
    }
    return names.size() > kShown ? text + fmt::format(" and {} more", names.size() - kShown) : text;
  };
  std::vector<uint32_t> waiting;
  for (size_t t = 0; t < pending_.size(); ++t) {
    if (pending_[t] > 0) waiting.push_back(static_cast<uint32_t>(t));
  }
  return list("running", {tasks_.begin(), tasks_.end()}) + list("ready", ready_) + list("waiting", waiting);
}

/// Gives ready tasks to threads: those that block to threads for that, others to the pool as far as the cap allows.
void Dataflow::Launch() {
  struct Job {
    Dataflow* flow;
    uint32_t task;
  };
  while (!ready_to_block_.empty() && error_.ok()) {
    const uint32_t task = ready_to_block_.back();
    ready_to_block_.pop_back();
    ++active_;
    tasks_.insert(task);
    auto job = std::make_unique<Job>(Job{this, task});
    const Status started = kernel::RunBlocking(
        [](void* arg) {
          const std::unique_ptr<Job> own(static_cast<Job*>(arg));
          Instance::Worker worker;
          own->flow->RunTask(own->task, worker);
        },
        job.get());
    if (started.ok()) {
      (void)job.release();
      continue;
    }
    --active_;
    tasks_.erase(task);
    error_ = started;
    failed_.store(true);
  }
  const int most = std::min(step_.inter_op, static_cast<int>(ready_.size()) + running_) - 1;
  for (; helpers_ < most; ++helpers_) {
    const bool queued = kernel::ComputePool::Get().Submit(
        [](void* arg) {
          auto* const flow = static_cast<Dataflow*>(arg);
          flow->Work();
          const std::lock_guard<std::mutex> lock(flow->mutex_);
          --flow->helpers_;
          flow->events_.fetch_add(1, std::memory_order_release);
          flow->changed_.notify_all();
        },
        this);
    if (!queued) return;  // the caller's thread does it all
  }
}

/// Runs ready tasks on this thread until there are none.
void Dataflow::Work() {
  Instance::Worker worker;
  for (;;) {
    uint32_t task = 0;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (ready_.empty() || !error_.ok()) return;
      std::pop_heap(ready_.begin(), ready_.end(), std::greater<>());
      task = ready_.back();
      ready_.pop_back();
      ++active_;
      ++running_;
      tasks_.insert(task);
    }
    RunTask(task, worker);
  }
}

void Dataflow::RunTask(uint32_t task, Instance::Worker& worker) {
  const FlushDenormals flush;
  worker.runner = &runner_;
  worker.fetches = fetches_;
  worker.step = step_;
  const plan::Task& range = instance_.plan_.tasks[task];
  Finished(task, instance_.Tape(worker, range.begin, range.inner > 0 ? range.body : range.end));
}

void Dataflow::Finished(uint32_t task, const Status& status) {
  const plan::Task& done = instance_.plan_.tasks[task];
  std::unique_lock<std::mutex> lock(mutex_);
  const bool late = status.code() == Code::kDeadlineExceeded;
  const Status told = late && error_.ok() ? status.Append(Waiting()) : status;
  --active_;
  tasks_.erase(task);
  if (!done.blocking) --running_;
  if (!status.ok()) {
    if (error_.ok()) error_ = told;
    failed_.store(true, std::memory_order_relaxed);
  } else if (done.inner > 0 && !instance_.Skipped(done)) {
    BeginIteration(task);  // what leads into the loop is done
    Launch();
  } else {
    Complete(task);
    Launch();
  }
  events_.fetch_add(1, std::memory_order_release);
  changed_.notify_all();
}

void Dataflow::Complete(uint32_t task) {
  const plan::ExecutionPlan& plan = instance_.plan_;
  for (;;) {
    const plan::Task& done = plan.tasks[task];
    for (uint32_t s = done.first_successor; s < done.first_successor + done.successor_count; ++s) {
      const uint32_t next = plan.successors[s];
      if (--pending_[next] == 0) MakeReady(next);
    }
    if (done.loop < 0) {
      --left_;
      return;
    }
    task = static_cast<uint32_t>(done.loop);
    if (--inner_[task] != 0) return;
    if (instance_.Repeats(plan.tasks[task])) return BeginIteration(task);
  }
}

void Dataflow::BeginIteration(uint32_t loop) {
  const std::vector<plan::Task>& tasks = instance_.plan_.tasks;
  inner_[loop] = tasks[loop].inner;
  for (uint32_t t = loop + 1; t < tasks.size() && tasks[t].begin < tasks[loop].repeat; ++t) {
    if (tasks[t].loop != static_cast<int>(loop)) continue;
    pending_[t] = tasks[t].predecessors;
    if (pending_[t] == 0) MakeReady(t);
  }
}

void Dataflow::MakeReady(uint32_t task) {
  if (instance_.plan_.tasks[task].blocking) {
    ready_to_block_.push_back(task);
  } else {
    ready_.push_back(task);
    std::push_heap(ready_.begin(), ready_.end(), std::greater<>());
  }
}

}  // namespace weir::execute
