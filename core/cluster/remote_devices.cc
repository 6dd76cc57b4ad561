#include "core/cluster/remote_devices.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/cluster/cluster_tasks.h"
#include "core/cluster/guest_worker.h"
#include "core/cluster/local_worker.h"
#include "core/cluster/plugin_transport.h"
#include "core/cluster/server.h"
#include "core/kernel/stand_in.h"
#include "core/session/session.h"
#include "core/session/tasks.h"

namespace weir::cluster {
namespace {

using std::chrono::milliseconds;

constexpr char kDefaultScheme[] = "weir";
constexpr uint64_t kSmallBody = uint64_t{64} << 10, kLargeBody = uint64_t{1} << 20;
constexpr milliseconds kSlowBody{20};  // a slower small body is the measurement

/// A process and what it said.
struct DeviceServer {
  std::string address;
  bool required = false;
  TaskName name;  // of its devices here
  std::shared_ptr<Worker> worker;
  Status status;  // why the rest is missing
  uint64_t incarnation = 0;
  std::vector<device::DeviceDescription> devices;  // named as here
  std::vector<kernel::KernelDescription> kernels;
  device::NetworkLink link;
};

/// Asks for all but the address and the name.
Status Ask(DeviceServer& server, Clock::time_point deadline) {
  // The first call does not wait for a process that is not there.
  WEIR_ASSIGN(server.kernels, server.worker->GetKernels(deadline));
  WEIR_ASSIGN(WorkerStatus status, server.worker->GetStatus(deadline));
  if (status.draining) return FailedPrecondition("the process is draining");
  if (status.devices.empty()) return NotFound("the process offers no device");
  WEIR_TRY(GuestWorker::Rename(server.name, status.devices));
  WEIR_ASSIGN(server.link, MeasureLink(*server.worker, deadline));
  server.incarnation = status.incarnation;
  server.devices = std::move(status.devices);
  return Status();
}

/// The options of a session for the parts that this process runs of its steps.
std::shared_ptr<const session::SessionOptions> OptionsOfParts(const session::SessionOptions& options) {
  auto own = std::make_shared<session::SessionOptions>(options);
  own->tasks = nullptr;
  own->placement = nullptr;
  own->default_device.clear();
  own->plan_file.clear();
  own->log_device_placement = false;
  own->placement_log = [](const std::string&) {};
  own->placement_log_file.clear();
  own->explain = session::SessionOptions::Explain::kNone;
  own->explain_file.clear();
  own->operation_timeout_in_ms = 0;
  return own;
}

class AttachedDevices final : public session::RemoteDevices {
 public:
  AttachedDevices(std::shared_ptr<session::Runtime> own, TaskName task, std::vector<DeviceServer> servers)
      : own_(std::move(own)), task_(std::move(task)), asked_(std::move(servers)) {
    for (const DeviceServer& server : asked_) {
      listed_.push_back({server.address, server.status, server.name.ToString(), server.link.latency_ns / 1e3,
                         server.link.bytes_per_ns});
    }
  }

  const std::vector<session::RemoteServer>& servers() const override { return listed_; }

  Result<std::shared_ptr<session::Tasks>> Begin(const session::SessionOptions& options) override {
    const milliseconds limit(own_->config.cluster.creation_limit_ms.value());
    const auto workers = std::make_shared<Workers>();
    WEIR_ASSIGN(const std::shared_ptr<LocalWorker> local,
                LocalWorker::Make({task_, own_, workers, OptionsOfParts(options)}));
    workers->Add(local);
    auto tasks = std::make_shared<ClusterTasks>(workers, limit, milliseconds(options.cancel_limit_ms),
                                                session::Tasks::OwnParts::kInSession);
    WorkerSessionSpec spec = SpecFrom(options);
    spec.incarnation = local->incarnation();
    WEIR_TRY(tasks->Open(local, spec, Clock::time_point::max()));
    for (const DeviceServer& server : asked_) {
      if (!server.status.ok()) continue;
      const auto guest = std::make_shared<GuestWorker>(server.name, server.address, server.worker);
      workers->Add(guest);
      spec.incarnation = server.incarnation;
      const Status opened = tasks->Open(guest, spec, Clock::now() + ConnectLimit());
      if (!opened.ok()) return opened.Prepend("the remote devices of " + server.address + ": ");
    }
    return std::shared_ptr<session::Tasks>(std::move(tasks));
  }

  bool UpToDate() override {
    return std::ranges::all_of(asked_, [&](const DeviceServer& server) {
      if (server.worker == nullptr) return true;
      const Clock::time_point deadline = Clock::now() + ConnectLimit();
      // Without a connection, this makes one attempt.
      const Result<std::chrono::nanoseconds> answered = server.worker->Measure(0, deadline);
      if (!answered.ok() || !server.status.ok()) return answered.ok() == server.status.ok();
      const Result<WorkerStatus> status = server.worker->GetStatus(deadline);
      return status.ok() && !status->draining && status->incarnation == server.incarnation;
    });
  }

 private:
  milliseconds ConnectLimit() const { return milliseconds(own_->config.cluster.remote_limit_ms.value()); }

  const std::shared_ptr<session::Runtime> own_;
  const TaskName task_;
  const std::vector<DeviceServer> asked_;
  std::vector<session::RemoteServer> listed_;
};

/// The servers of a configuration, each once.
Result<std::vector<DeviceServer>> ListServers(const session::Runtime& own) {
  const config::Config& config = own.config;
  static const uint64_t kIncarnation = RandomId();  // of this process
  WEIR_ASSIGN(const LocalEnd self, EndFrom(config.cluster, {}, kIncarnation));
  std::vector<DeviceServer> servers;
  std::set<std::string> known;
  for (const auto* addresses : {&config.cluster.remote_devices, &config.cluster.required_devices}) {
    for (const std::string& given : *addresses) {
      if (!known.insert(given).second) {
        return InvalidArgument("cluster.remote_devices and required_devices: '{}' stands there twice", given);
      }
      DeviceServer server;
      const size_t mark = given.find("://");
      server.address = mark == std::string::npos ? given : given.substr(mark + 3);
      server.required = addresses == &config.cluster.required_devices;
      server.name = {kRemoteJob, static_cast<int>(servers.size())};
      const std::string scheme = mark == std::string::npos ? kDefaultScheme : given.substr(0, mark);
      const Result<std::shared_ptr<Transport>> transport = FindTransport(*own.plugins, scheme);
      Result<std::shared_ptr<Worker>> worker =
          transport.ok() ? (*transport)->ConnectWorker({}, server.address, self) : transport.status();
      server.status = worker.status();
      if (worker.ok()) server.worker = *std::move(worker);
      servers.push_back(std::move(server));
    }
  }
  return servers;
}

/// True for an address of this machine alone.
bool IsLoopback(const std::string& address) {
  return address.starts_with("localhost:") || address.starts_with("127.") || address.starts_with("[::1]") ||
         address.starts_with("unix:");
}

/// Places its devices beside those that are in `devices`, and its kernels in `kernels`. The result owns the records.
std::shared_ptr<const void> AddServer(const session::Runtime& own, const DeviceServer& server,
                                      device::DeviceSet& devices, kernel::KernelRegistry& kernels) {
  auto records = std::make_shared<std::vector<std::shared_ptr<const void>>>();
  std::set<std::string> platforms;
  for (device::DeviceDescription description : server.devices) {
    const std::string platform = description.info.platform;
    description.info.platform = platform + "@" + server.address;
    description.info.elsewhere = server.address;
    // Its cores are those of this process's CPU, which costs do not see.
    const bool own_cpu = description.info.unified_memory() && IsLoopback(server.address);
    if (own_cpu && !own.config.cluster.remote_own_cpu) description.info.flags |= WEIR_DEVICE_OPT_IN;
    if (platforms.insert(platform).second) {
      records->push_back(kernel::AddStandIns(*own.ops, server.kernels, platform, description.info.platform, kernels));
    }
    devices.Add(device::MakeStandIn(description, server.link));
  }
  return records;
}

}  // namespace

Result<device::NetworkLink> MeasureLink(Worker& worker, Clock::time_point deadline) {
  using std::chrono::nanoseconds;
  WEIR_TRY(worker.Measure(0, deadline).status());  // connects
  std::array<nanoseconds, 5> trips;
  for (nanoseconds& trip : trips) {
    WEIR_ASSIGN(trip, worker.Measure(0, deadline));
  }
  std::ranges::sort(trips);
  const nanoseconds trip = trips[trips.size() / 2];
  uint64_t bytes = kSmallBody;
  WEIR_ASSIGN(nanoseconds took, worker.Measure(bytes, deadline));
  if (took < kSlowBody) {
    bytes = kLargeBody;
    WEIR_ASSIGN(took, worker.Measure(bytes, deadline));
    WEIR_ASSIGN(const nanoseconds again, worker.Measure(bytes, deadline));
    took = std::min(took, again);
  }
  device::NetworkLink link;
  const auto both_ways = static_cast<double>(std::max<int64_t>((took - trip).count(), 1000));
  link.latency_ns = std::max(static_cast<double>(trip.count()) / 2, 1.0);
  link.bytes_per_ns = 2 * static_cast<double>(bytes) / both_ways;
  link.measured = true;
  return link;
}

Result<std::shared_ptr<session::Runtime>> AttachRemoteDevices(const std::shared_ptr<session::Runtime>& own) {
  WEIR_ASSIGN(std::vector<DeviceServer> servers, ListServers(*own));
  const auto& here = own->plugins->devices().all();
  if (here.empty()) return FailedPrecondition("remote devices need a device of this process, which has none");
  WEIR_ASSIGN(TaskName task, TaskOfDevice(here.front()->name()));
  const Clock::time_point deadline = Clock::now() + milliseconds(own->config.cluster.remote_limit_ms.value());
  std::vector<std::future<void>> asking;
  for (DeviceServer& server : servers) {
    if (!server.status.ok()) continue;
    asking.push_back(std::async(std::launch::async, [&server, deadline] { server.status = Ask(server, deadline); }));
  }
  for (std::future<void>& one : asking) one.wait();
  device::DeviceSet devices = own->plugins->devices();
  kernel::KernelRegistry kernels = own->plugins->kernels();
  auto records = std::make_shared<std::vector<std::shared_ptr<const void>>>();
  for (const DeviceServer& server : servers) {
    if (server.status.ok()) records->push_back(AddServer(*own, server, devices, kernels));
    if (server.status.ok() || !server.required) continue;
    return server.status.Prepend("cluster.required_devices: those of " + server.address + " are missing: ");
  }
  auto made = std::make_shared<session::Runtime>(*own);
  made->plugins = own->plugins->WithDevices(std::move(devices), std::move(kernels), std::move(records));
  made->remote = std::make_shared<AttachedDevices>(own, std::move(task), std::move(servers));
  return made;
}

void UseRemoteDevices() { session::Runtime::SetRemoteAttacher(&AttachRemoteDevices); }

}  // namespace weir::cluster
