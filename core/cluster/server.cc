#include "core/cluster/server.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>

#include "core/base/errors.h"
#include "core/cluster/server_messages.h"
#include "core/cluster/step_traces.h"
#include "core/device/device_name.h"
#include "core/io/files.h"
#include "core/runtime/blocking_pool.h"
#include "core/session/options.h"
#include "core/trace/span.h"

namespace weir::cluster {
namespace {

constexpr char kScheme[] = "weir";
constexpr char kGrpcScheme[] = "grpc";
constexpr char kAnyPort[] = "127.0.0.1:0";
constexpr uint64_t kMostTokenBytes = 4096;

/// The masters of this process by target.
class MastersHere {
 public:
  static MastersHere& Get() {
    static MastersHere masters;
    return masters;
  }
  void Add(const std::string& target, std::shared_ptr<MasterService> master) {
    const std::lock_guard<std::mutex> lock(mutex_);
    masters_.insert_or_assign(target, std::move(master));
  }
  void Remove(const std::string& target) {
    const std::lock_guard<std::mutex> lock(mutex_);
    masters_.erase(target);
  }
  std::shared_ptr<MasterService> Find(std::string_view target) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = masters_.find(target);
    return found == masters_.end() ? nullptr : found->second;
  }

 private:
  std::mutex mutex_;  // protects masters_
  std::map<std::string, std::shared_ptr<MasterService>, std::less<>> masters_;
};

/// The secret of a file without the line end.
Result<std::string> ReadToken(const std::string& file) {
  struct stat about = {};
  if (stat(file.c_str(), &about) == 0 && (about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return InvalidArgument("cluster.token_file: {} may be read or written by others: its mode must be 0600", file);
  }
  WEIR_ASSIGN(std::string token, io::ReadFile(file, kMostTokenBytes));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  if (token.empty()) return InvalidArgument("cluster.token_file: {} is empty", file);
  return token;
}

}  // namespace

/// All of a server; its services hold it weakly.
struct Server::Core : std::enable_shared_from_this<Core> {
  explicit Core(ServerOptions given) : options(std::move(given)) {}

  Status Open();
  Status AddPeers(Transport& transport, const LocalEnd& self);
  Result<std::string> Listen(const std::string& scheme, const std::string& address, int inherited,
                             const LocalEnd& self);
  ServerView View(std::chrono::milliseconds peer_limit);
  void BeDone();
  void Stop();

  ServerOptions options;
  const Clock::time_point since = Clock::now();
  std::shared_ptr<session::Runtime> runtime;
  const std::shared_ptr<Workers> workers = std::make_shared<Workers>();
  std::shared_ptr<LocalWorker> worker;
  std::vector<std::shared_ptr<Transport>> transports;
  std::map<TaskName, std::shared_ptr<MasterService>> peers;  // of the other tasks
  std::map<TaskName, std::string> addresses;
  std::shared_ptr<Front> front;
  std::vector<std::unique_ptr<Listener>> listeners;
  std::string grpc_target;
  std::atomic<bool> draining{false};
  std::mutex mutex;  // protects all below
  std::string target;  // set once by Open, whose callers read it without the mutex
  std::condition_variable changed;
  bool stopped = false, done = false;
  std::function<void()> told;
};

/// The server's master, with the calls of weir's own.
class Server::Front final : public MasterService {
 public:
  Front(std::weak_ptr<Core> core, std::shared_ptr<MasterService> master, bool counts_sessions)
      : core_(std::move(core)), master_(std::move(master)), counts_sessions_(counts_sessions) {}

  bool StepsAreShort() const override { return master_ != nullptr && master_->StepsAreShort(); }

  void Call(MasterCall call, MasterDone done) override {
    if (call.method == kServerReport) return Report(call, std::move(done));
    if (call.method == kServerProfile) return Profile(call, std::move(done));
    if (call.method == kEndJob) return EndJob(std::move(done));
    if (master_ == nullptr) return done(Unimplemented("this server opens no sessions"));
    const bool opens = call.method == "CreateSession", closes = call.method == "CloseSession";
    if (opens) {
      const std::shared_ptr<Core> core = core_.lock();
      if (core == nullptr) return done(Unavailable("the server has stopped"));
      if (core->draining) return done(FailedPrecondition("{} is draining", core->options.task.ToString()));
    }
    if (!counts_sessions_ || (!opens && !closes)) return master_->Call(std::move(call), std::move(done));
    auto counted = [core = core_, sessions = sessions_, opens, then = std::move(done)](Result<std::string> r) mutable {
      const bool last = r.ok() && (opens ? ++*sessions : --*sessions) == 0;
      then(std::move(r));
      if (const std::shared_ptr<Core> held = core.lock(); last && held != nullptr) held->BeDone();
    };
    master_->Call(std::move(call), MasterDone(std::move(counted)));
  }

 private:
  struct Reporting {
    std::weak_ptr<Core> core;
    ReportRequest request;
    MasterDone done;
  };

  /// On a thread of its own: peers may take their time.
  void Report(const MasterCall& call, MasterDone done) {
    auto request = ReadReportRequest(call.request);
    if (!request.ok()) return done(request.status());
    auto reporting = std::make_unique<Reporting>(Reporting{core_, *std::move(request), std::move(done)});
    const auto run = [](void* arg) {
      const std::unique_ptr<Reporting> own(static_cast<Reporting*>(arg));
      const std::shared_ptr<Core> core = own->core.lock();
      if (core == nullptr) return own->done(Unavailable("the server has stopped"));
      own->done(WriteView(core->View(own->request.peer_limit), std::move(own->request.padding)));
    };
    const Status status = runtime::RunBlocking(run, reporting.get());
    if (!status.ok()) return reporting->done(status);
    static_cast<void>(reporting.release());
  }

  struct Profiling {
    std::weak_ptr<Core> core;
    std::chrono::milliseconds time;
    std::shared_ptr<runtime::Cancellation> cancellation;
    MasterDone done;
  };

  void Profile(const MasterCall& call, MasterDone done) {
    const auto time = ReadProfileRequest(call.request);
    if (!time.ok()) return done(time.status());
    auto profiling = std::make_unique<Profiling>(Profiling{core_, *time, call.cancellation, std::move(done)});
    const auto run = [](void* arg) {
      const std::unique_ptr<Profiling> own(static_cast<Profiling*>(arg));
      std::shared_ptr<LocalWorker> worker;
      if (const std::shared_ptr<Core> core = own->core.lock(); core != nullptr) worker = core->worker;
      if (worker == nullptr) return own->done(Unavailable("the server has stopped"));
      Result<Recording> recorded = worker->recorder().Record(own->time, own->cancellation.get());
      if (!recorded.ok()) return own->done(recorded.status());
      ServerProfile profile;
      profile.chrome_trace = trace::ChromeTrace(recorded->steps);
      profile.parts = static_cast<int64_t>(recorded->steps.size());
      profile.dropped = recorded->dropped;
      profile.memory = worker->ReportMemory();
      own->done(WriteProfile(profile));
    };
    const Status status = runtime::RunBlocking(run, profiling.get());
    if (!status.ok()) return profiling->done(status);
    static_cast<void>(profiling.release());
  }

  void EndJob(MasterDone done) {
    const std::shared_ptr<Core> core = core_.lock();
    if (core == nullptr) return done(Unavailable("the server has stopped"));
    const bool ends = core->options.config.cluster.exit_when_done;
    done(WriteEndJob(ends));
    if (ends) core->BeDone();
  }

  const std::weak_ptr<Core> core_;
  const std::shared_ptr<MasterService> master_;
  const bool counts_sessions_;
  const std::shared_ptr<std::atomic<int64_t>> sessions_ = std::make_shared<std::atomic<int64_t>>(0);
};

Status Server::Core::AddPeers(Transport& transport, const LocalEnd& self) {
  for (const TaskName& task : options.cluster.tasks()) {
    if (task == options.task) continue;
    WEIR_ASSIGN(std::string address, options.cluster.TaskAddress(task.job, task.index));
    Result<std::shared_ptr<Worker>> peer = transport.ConnectWorker(task, address, self);
    if (!peer.ok()) return peer.status().Prepend(task.ToString() + ": ");
    workers->Add(std::move(*peer));
    WEIR_ASSIGN(std::shared_ptr<MasterService> master, transport.ConnectMaster(address, self));
    peers.emplace(task, std::move(master));
    addresses.emplace(task, std::move(address));
  }
  return Status();
}

Result<std::string> Server::Core::Listen(const std::string& scheme, const std::string& address, int inherited,
                                         const LocalEnd& self) {
  WEIR_ASSIGN(const std::shared_ptr<Transport> transport, options.find_transport(scheme, *runtime));
  if (scheme == kScheme) WEIR_TRY(AddPeers(*transport, self));
  Services services{worker, front};
  if (scheme != kScheme) services.worker = nullptr;
  Result<std::unique_ptr<Listener>> listener = transport->Listen(services, {address, inherited, self});
  if (!listener.ok()) {
    const std::string start = fmt::format("Could not start the {} server of {}: ", scheme, options.task.ToString());
    return listener.status().Prepend(start);
  }
  std::string target_of = scheme + "://" + (*listener)->address();
  transports.push_back(transport);
  listeners.push_back(std::move(*listener));
  return target_of;
}

Status Server::Core::Open() {
  const config::ClusterConfig& settings = options.config.cluster;
  plugin::LoadOptions load = session::LoadOptionsFrom(options.config);
  load.job = options.task.job;
  load.task = options.task.index;
  WEIR_ASSIGN(runtime, session::Runtime::Load(load));
  WEIR_ASSIGN(runtime, WithDevices(std::move(runtime), settings.devices));
  WEIR_ASSIGN(worker, LocalWorker::Make({options.task, runtime, workers}));
  workers->Add(worker);
  WEIR_ASSIGN(const LocalEnd self, EndFrom(settings, options.task, worker->incarnation()));
  std::shared_ptr<MasterService> master;
  if (options.make_master) {
    WEIR_ASSIGN(master, options.make_master({options.task, runtime, workers}));
  }
  const bool alone = options.cluster.tasks().size() <= 1;
  front = std::make_shared<Front>(weak_from_this(), std::move(master), alone && settings.exit_when_done);
  std::string address = !options.listen.empty() ? options.listen : settings.listen.value();
  if (address.empty()) {
    const Result<std::string> own = options.cluster.TaskAddress(options.task.job, options.task.index);
    address = own.ok() ? *own : kAnyPort;
  }
  WEIR_ASSIGN(std::string listens_at, Listen(kScheme, address, options.inherited_socket, self));
  {
    const std::lock_guard<std::mutex> lock(mutex);
    target = std::move(listens_at);
    changed.notify_all();
  }
  const std::string grpc = !options.grpc.empty() ? options.grpc : settings.grpc.value();
  if (!grpc.empty()) {
    WEIR_ASSIGN(grpc_target, Listen(kGrpcScheme, grpc, -1, self));
    MastersHere::Get().Add(grpc_target, front);
  }
  MastersHere::Get().Add(target, front);
  return Status();
}

ServerView Server::Core::View(std::chrono::milliseconds peer_limit) {
  std::string address;
  {
    // A call may come before Listen has returned.
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [this] { return !target.empty() || stopped; });
    address = target;
  }
  ServerView view{options.task, std::move(address), WEIR_VERSION, worker->incarnation(), WallClockMicros(), draining,
                  worker->counts(),
                  std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - since).count(), {}, {}};
  for (const auto& device : runtime->plugins->devices().all()) view.devices.push_back(device->name());
  if (peer_limit.count() == 0) return view;
  for (const auto& [task, master] : peers) {
    PeerView peer;
    peer.task = task;
    peer.address = addresses.at(task);
    const Clock::time_point begin = Clock::now();
    const Result<std::shared_ptr<Worker>> found = workers->Find(task);
    const Result<WorkerStatus> status =
        found.ok() ? (*found)->GetStatus(begin + peer_limit) : Result<WorkerStatus>(found.status());
    peer.took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
    peer.status = status.ok() ? TryLargeMessage(*master, Clock::now() + peer_limit) : status.status();
    peer.incarnation = status->incarnation;
    peer.draining = status->draining;
    view.peers.push_back(std::move(peer));
  }
  return view;
}

void Server::Core::BeDone() {
  std::function<void()> tell;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (std::exchange(done, true)) return;
    tell = std::move(told);
    changed.notify_all();
  }
  if (tell) tell();
}

void Server::Core::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (std::exchange(stopped, true)) return;
  }
  if (!target.empty()) MastersHere::Get().Remove(target);
  if (!grpc_target.empty()) MastersHere::Get().Remove(grpc_target);
  draining = true;
  if (worker != nullptr) worker->Close();
  for (const std::unique_ptr<Listener>& listener : listeners) listener->Close();
  const std::lock_guard<std::mutex> lock(mutex);
  changed.notify_all();
}

Result<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  auto core = std::make_shared<Core>(std::move(options));
  const Status status = core->Open();
  if (!status.ok()) {
    core->Stop();
    return status;
  }
  return std::unique_ptr<Server>(new Server(std::move(core)));
}

Server::~Server() { Stop(); }

const TaskName& Server::task() const { return core_->options.task; }
const std::string& Server::target() const { return core_->target; }
const std::string& Server::grpc_target() const { return core_->grpc_target; }
const config::ClusterConfig& Server::settings() const { return core_->options.config.cluster; }
LocalWorker& Server::worker() { return *core_->worker; }
std::shared_ptr<MasterService> Server::master() const { return core_->front; }
ServerView Server::View(std::chrono::milliseconds peer_limit) const { return core_->View(peer_limit); }
void Server::Stop() { core_->Stop(); }

Status Server::Renew(const config::ClusterConfig& settings) {
  WEIR_ASSIGN(const LocalEnd self, EndFrom(settings, core_->options.task, core_->worker->incarnation()));
  Status first;  // the others are renewed all the same
  for (const std::shared_ptr<Transport>& transport : core_->transports) {
    const Status status = transport->Renew(self);
    const bool has_none = status.code() == Code::kUnimplemented && self.security.tls_certificate.empty();
    if (first.ok() && !has_none) first = status;
  }
  return first;
}

Status Server::Drain(Clock::time_point deadline) {
  core_->draining = true;
  Status first = core_->worker->Drain(deadline);
  for (const std::unique_ptr<Listener>& listener : core_->listeners) {
    const Status status = listener->Drain(deadline);
    if (first.ok()) first = status;
  }
  return first;
}

bool Server::Wait() {
  std::unique_lock<std::mutex> lock(core_->mutex);
  core_->changed.wait(lock, [&] { return core_->stopped || core_->done; });
  return core_->done;
}

void Server::OnDone(std::function<void()> told) {
  {
    const std::lock_guard<std::mutex> lock(core_->mutex);
    if (!core_->done) {
      core_->told = std::move(told);
      return;
    }
  }
  told();
}

Status Server::EndJob(std::chrono::milliseconds limit) {
  Status first;
  for (const auto& [task, master] : core_->peers) {
    const Status status = FromTask(TellJobEnd(*master, Clock::now() + limit).status(), task);
    if (first.ok()) first = status;
  }
  return first;
}

Result<LocalEnd> EndFrom(const config::ClusterConfig& config, const TaskName& task, uint64_t incarnation) {
  LocalEnd end;
  end.task = task;
  end.incarnation = incarnation;
  end.cluster_id = config.name;
  if (!config.token_file.value().empty()) {
    WEIR_ASSIGN(end.security.token, ReadToken(config.token_file));
  }
  end.security.tls_certificate = config.tls_certificate;
  end.security.tls_key = config.tls_key;
  end.security.tls_authorities = config.tls_authorities;
  end.security.insecure_listen = config.insecure_listen;
  end.peer_timeout = std::chrono::milliseconds(config.peer_timeout_ms.value());
  return end;
}

Result<std::shared_ptr<session::Runtime>> WithDevices(std::shared_ptr<session::Runtime> runtime,
                                                      const std::vector<std::string>& names) {
  if (names.empty()) return runtime;
  std::vector<device::DeviceName> wanted;
  for (const std::string& name : names) {
    const bool any = name.find(':') == std::string::npos;
    Result<device::DeviceName> parsed = device::ParseDeviceName(any ? name + ":*" : name);
    if (!parsed.ok()) return parsed.status().Prepend("cluster.devices: ");
    wanted.push_back(std::move(*parsed));
  }
  device::DeviceSet left;
  for (const auto& device : runtime->plugins->devices().all()) {
    const auto matches = [&](const device::DeviceName& name) { return device::Matches(name, device->info().name); };
    if (std::ranges::any_of(wanted, matches)) left.Add(device);
  }
  if (left.all().empty()) return NotFound("cluster.devices: no device matches {}", fmt::join(names, ", "));
  auto other = std::make_shared<session::Runtime>(*runtime);
  other->plugins = runtime->plugins->WithDevices(std::move(left));
  return other;
}

std::shared_ptr<MasterService> MasterHere(std::string_view target) { return MastersHere::Get().Find(target); }

}  // namespace weir::cluster
