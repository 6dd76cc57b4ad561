#include "core/cluster/master.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/errors.h"
#include "core/cluster/cluster_tasks.h"

namespace weir::cluster {
namespace {

Result<std::vector<device::DeviceName>> ParseFilters(const std::vector<std::string>& filters) {
  std::vector<device::DeviceName> parsed;
  for (const std::string& filter : filters) {
    Result<device::DeviceName> name = device::ParseDeviceName(filter);
    if (!name.ok()) return name.status().Prepend("device_filters: ");
    parsed.push_back(std::move(*name));
  }
  return parsed;
}

/// The visible devices of tasks, those of this process first: they have memory here.
class VisibleDevices {
 public:
  VisibleDevices(const MasterOptions& master, std::vector<device::DeviceName> filters)
      : own_(master.task), filters_(std::move(filters)) {}

  /// False if the filters leave out the task, whatever devices it has: it need not answer.
  bool MaySee(const TaskName& task) const {
    if (task == own_ || filters_.empty()) return true;
    return std::ranges::any_of(filters_, [&](const device::DeviceName& filter) {
      return filter.job.value_or(task.job) == task.job && filter.replica.value_or(0) == 0 &&
             filter.task.value_or(task.index) == task.index;
    });
  }
  /// False if the session sees no device of the task.
  bool Add(const Worker& worker, const WorkerStatus& status) {
    bool any = false;
    for (const device::DeviceDescription& description : status.devices) {
      if (!Sees(worker.task(), description.info.name)) continue;
      any = true;
      const bool own = worker.task() == own_ && worker.own_devices() != nullptr;
      if (!own) far_.push_back(device::MakeStandIn(description));
    }
    if (worker.task() == own_ && worker.own_devices() != nullptr) here_ = worker.own_devices();
    return any;
  }
  Result<device::DeviceSet> Take() {
    if (here_ == nullptr) return NotFound("{} is no task of this process, which cannot be its master", own_.ToString());
    device::DeviceSet set = *here_;
    for (std::shared_ptr<device::Device>& device : far_) set.Add(std::move(device));
    return set;
  }

 private:
  bool Sees(const TaskName& task, const device::DeviceName& device) const {
    if (task == own_ || filters_.empty()) return true;
    return std::ranges::any_of(filters_, [&](const auto& filter) { return device::Matches(filter, device); });
  }

  const TaskName own_;
  const std::vector<device::DeviceName> filters_;
  const device::DeviceSet* here_ = nullptr;
  std::vector<std::shared_ptr<device::Device>> far_;
};

}  // namespace

Result<ClusterSession> OpenClusterSession(const std::shared_ptr<session::Runtime>& runtime,
                                          std::shared_ptr<const Workers> workers, const MasterOptions& master,
                                          session::SessionOptions options) {
  const Clock::time_point deadline = Clock::now() + master.creation_limit;
  WEIR_ASSIGN(std::vector<device::DeviceName> filters, ParseFilters(master.device_filters));
  VisibleDevices devices(master, std::move(filters));
  const auto tasks = std::make_shared<ClusterTasks>(workers, master.creation_limit,
                                                    std::chrono::milliseconds(options.cancel_limit_ms));
  WorkerSessionSpec spec = SpecFrom(options);
  spec.isolate_state = master.isolate_session_state;
  Status failed;
  for (const std::shared_ptr<Worker>& worker : workers->all()) {
    if (!devices.MaySee(worker->task())) continue;
    const auto open = [&]() -> Status {
      WEIR_ASSIGN(const WorkerStatus status, worker->GetStatus(deadline));
      if (!devices.Add(*worker, status)) return Status();
      spec.incarnation = status.incarnation;
      return tasks->Open(worker, spec, deadline);
    };
    const Status opened = open();
    if (opened.ok()) continue;
    const std::string line = worker->task().ToString() + ": " + opened.ToString();
    failed = failed.ok() ? Status(opened.code(), "the session could not begin in all tasks:\n" + line)
                         : failed.Append("\n" + line);
  }
  WEIR_TRY(failed);
  ClusterSession made;
  WEIR_ASSIGN(device::DeviceSet set, devices.Take());
  made.runtime = std::make_shared<session::Runtime>(*runtime);
  made.runtime->plugins = runtime->plugins->WithDevices(std::move(set));
  if (options.default_device.empty()) options.default_device = master.task.ToString();
  options.tasks = tasks;
  made.options = std::move(options);
  return made;
}

Status ResetContainers(const Workers& workers, const std::vector<std::string>& containers) {
  Status first;
  for (const std::shared_ptr<Worker>& worker : workers.all()) {
    const Status status = FromTask(worker->ResetContainers(containers), worker->task());
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace weir::cluster
