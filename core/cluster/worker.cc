#include "core/cluster/worker.h"

#include <fmt/format.h>

#include <random>
#include <utility>

#include "core/base/errors.h"

namespace weir::cluster {
namespace {

constexpr std::string_view kFrom = "From /job:";
constexpr std::string_view kDerived = "[_Derived_]";

}  // namespace

uint64_t RandomId() {
  thread_local std::mt19937_64 random = [] {
    std::random_device device;
    std::seed_seq seeds{device(), device(), device(), device()};
    return std::mt19937_64(seeds);
  }();
  for (;;) {
    const uint64_t id = random() >> 1;
    if (id != 0) return id;
  }
}

Result<trace::StepTrace> Worker::TakeTrace(uint64_t, uint64_t, Clock::time_point) {
  return Unimplemented("{} records no traces", task().ToString());
}

Result<std::vector<kernel::KernelDescription>> Worker::GetKernels(Clock::time_point) {
  return Unimplemented("{} does not list its kernels", task().ToString());
}

Result<std::chrono::nanoseconds> Worker::Measure(uint64_t, Clock::time_point) {
  return Unimplemented("there is no link to {}", task().ToString());
}

void Worker::SendTensor(const TransferRequest& request, runtime::Message, SendDone done) {
  done(Unimplemented("{} takes no values but those that it asks for: '{}'", task().ToString(), request.key));
}

Status Worker::TakeValue(const TransferRequest& request, runtime::Message) {
  return Unimplemented("{} is in another process: '{}' cannot be given to it so", task().ToString(), request.key);
}

void Workers::Add(std::shared_ptr<Worker> worker) {
  const std::lock_guard<std::mutex> lock(mutex_);
  workers_.insert_or_assign(worker->task(), std::move(worker));
}

Result<std::shared_ptr<Worker>> Workers::Find(const TaskName& task) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto found = workers_.find(task); found != workers_.end()) return found->second;
  std::string known;
  for (const auto& [name, worker] : workers_) known += (known.empty() ? "" : ", ") + name.ToString();
  return NotFound("there is no {} in the cluster, which has {}", task.ToString(), known.empty() ? "no tasks" : known);
}

std::vector<std::shared_ptr<Worker>> Workers::all() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<Worker>> all;
  for (const auto& [name, worker] : workers_) all.push_back(worker);
  return all;
}

Status FromTask(const Status& status, const TaskName& task) {
  if (status.ok() || status.message().starts_with(kFrom) || IsDerived(status)) return status;
  return status.Prepend(fmt::format("From {}:\n", task.ToString()));
}

Status Derived(const Status& status) { return IsDerived(status) ? status : status.Prepend(kDerived); }

bool IsDerived(const Status& status) { return status.message().starts_with(kDerived); }

}  // namespace weir::cluster
