#include "core/door/master.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/base/legible.h"
#include "core/cluster/master.h"
#include "core/cluster/short_runs.h"
#include "core/config/config_proto.h"
#include "core/config/settings.h"
#include "core/device/device_name.h"
#include "core/door/client_session.h"
#include "core/proto/parse.h"
#include "core/runtime/blocking_pool.h"
#include "core/runtime/node_resources.h"
#include "core/session/options.h"
#include "core/session/tasks.h"
#include "weir/proto/master.pb.h"
#include "weir/proto/session_config.pb.h"

namespace weir::door {
namespace {

using cluster::Clock;
using cluster::MasterCall;

/// TensorFlow's limit on messages of errors outside a response.
constexpr size_t kMostMessageBytes = 3072;
/// A client that has no limit sends a deadline beyond this.
constexpr std::chrono::hours kNoDeadline{24 * 365};

Status NoSession(std::string_view handle) { return Aborted("Session {} is not found.", handle); }
constexpr char kRestarted[] = " Possibly, this master has restarted.";

Status Cut(const Status& status) {
  std::string text = Legible(status.message());
  if (text.size() > kMostMessageBytes) {
    size_t end = kMostMessageBytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not within a character
    text = text.substr(0, end) + " ... [truncated]";
  }
  return Status(status.code(), std::move(text));
}

template <class Request>
Result<Request> Parse(const MasterCall& call) {
  Request request;
  WEIR_TRY(proto::ParseBinary(call.request, call.method + "Request", request));
  return request;
}

/// A client's settings over those of the server.
Result<config::Config> ConfigOf(const config::Config& server, const std::string& bytes) {
  tf::ConfigProto message;
  WEIR_TRY(proto::ParseBinary(bytes, "ConfigProto", message));
  if (message.use_per_session_threads() || message.session_inter_op_thread_pool_size() != 0) {
    return InvalidArgument("Distributed session does not support session thread pool options.");
  }
  // They describe the machine of the client.
  message.clear_device_count();
  message.clear_gpu_options();
  message.clear_pluggable_device_options();
  message.clear_session_inter_op_thread_pool();
  WEIR_ASSIGN(const std::string session_settings, proto::Serialize(message, "ConfigProto"));
  config::Settings settings;
  WEIR_TRY(config::AddCallSite(server, settings));
  std::vector<std::string> notes;
  const config::Origin origin{config::Source::kCallSite, "the client's ConfigProto"};
  WEIR_TRY(config::ReadConfigProto(session_settings, origin, settings, notes));
  return settings.Build();
}

void AddDevice(const session::DeviceAttributes& device, uint64_t incarnation, tf::DeviceAttributes& to) {
  to.set_name(device.name);
  to.set_device_type(device.device_type);
  to.set_memory_limit(static_cast<int64_t>(std::min<uint64_t>(device.memory_limit_bytes, INT64_MAX)));
  to.mutable_locality();
  to.set_incarnation(incarnation);
}

}  // namespace

class Master::Impl {
 public:
  Impl(std::shared_ptr<session::Runtime> runtime, MasterOptions options)
      : runtime_(std::move(runtime)), options_(std::move(options)), kept_(options_.limits.kept) {}

  Result<std::string> Answer(const MasterCall& call) {
    const auto found = Methods().find(call.method);
    if (found == Methods().end()) return Unimplemented("MasterService has no method '{}'", call.method);
    if (call.request.size() > options_.limits.request_bytes) {
      return InvalidArgument("{}: the request has {} bytes, the limit is {}", call.method, call.request.size(),
                             options_.limits.request_bytes);
    }
    Result<std::string> answer = (this->*found->second)(call);
    return answer.ok() ? std::move(answer) : Result<std::string>(Cut(answer.status()));
  }

  void Begin() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++calls_;
  }
  void End() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--calls_ == 0) idle_.notify_all();
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    idle_.wait(lock, [&] { return calls_ == 0; });
  }

  /// Ends all sessions.
  void DropSessions() {
    std::map<std::string, std::shared_ptr<ClientSession>> gone;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      gone.swap(sessions_);
    }
    for (const auto& [handle, session] : gone) session->Close();
  }

  Counts counts() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return {sessions_.size(), calls_, steps_, kept_.size(), repeated_};
  }

 private:
  using Method = Result<std::string> (Impl::*)(const MasterCall&);
  static const std::map<std::string, Method, std::less<>>& Methods() {
    static const std::map<std::string, Method, std::less<>> methods = {
        {"CloseSession", &Impl::CloseSession},       {"CreateSession", &Impl::CreateSession},
        {"ExtendSession", &Impl::ExtendSession},     {"ListDevices", &Impl::ListDevices},
        {"MakeCallable", &Impl::MakeCallable},       {"PartialRunSetup", &Impl::PartialRunSetup},
        {"ReleaseCallable", &Impl::ReleaseCallable}, {"Reset", &Impl::Reset},
        {"RunCallable", &Impl::RunCallable},         {"RunStep", &Impl::RunStep}};
    return methods;
  }

  std::shared_ptr<ClientSession> Find(const std::string& handle) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = sessions_.find(handle);
    return found == sessions_.end() ? nullptr : found->second;
  }

  Status CheckId(const MasterCall& call, int64_t id) {
    if (ids_.Insert(id)) return Status();
    return Aborted("The same {} request was received twice. Request ID: {}", call.method, id);
  }

  static StepEnd EndOf(const MasterCall& call) {
    StepEnd end;
    end.caller = call.cancellation.get();
    const Clock::time_point now = Clock::now();
    if (call.deadline < now + kNoDeadline) end.deadline = call.deadline;
    return end;
  }

  // --- Sessions

  /// The session of a client with these settings, without its graph.
  Result<ClientSession::Setup> SetUp(const MasterCall& call, const config::Config& config, const std::string& handle) {
    ClientSession::Setup setup;
    setup.options = session::SessionOptionsFrom(config);
    if (!config.placement.explain.is_set()) setup.options.explain = session::SessionOptions::Explain::kNone;
    setup.step_limit_ms = std::exchange(setup.options.operation_timeout_in_ms, 0);
    setup.expansion_bytes = options_.limits.expansion_bytes;
    setup.most_callables = options_.limits.callables;
    setup.master = options_.task;
    if (options_.workers == nullptr) {
      setup.runtime = runtime_;
      setup.task = options_.task;
      setup.private_container = "session:" + handle;
      setup.options.resources =
          config.isolate_session_state ? std::make_shared<runtime::ResourceScope>() : resources_;
      setup.options.node_resources = std::make_shared<runtime::NodeResources>();
      return setup;
    }
    cluster::MasterOptions master;
    master.task = options_.task;
    master.device_filters = config.device_filters;
    master.isolate_session_state = config.isolate_session_state;
    if (setup.step_limit_ms > 0) master.creation_limit = std::chrono::milliseconds(setup.step_limit_ms);
    if (const StepEnd end = EndOf(call); end.deadline != Clock::time_point::max()) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end.deadline - Clock::now());
      master.creation_limit = std::clamp(left, std::chrono::milliseconds(1), master.creation_limit);
    }
    WEIR_ASSIGN(cluster::ClusterSession opened, cluster::OpenClusterSession(runtime_, options_.workers, master,
                                                                            std::move(setup.options)));
    setup.runtime = std::move(opened.runtime);
    setup.options = std::move(opened.options);
    return setup;
  }

  Result<std::string> CreateSession(const MasterCall& call) {
    WEIR_ASSIGN(const tf::CreateSessionRequest request, Parse<tf::CreateSessionRequest>(call));
    WEIR_ASSIGN(const config::Config config, ConfigOf(runtime_->config, request.config()));
    const std::string handle = fmt::format("{:016x}", cluster::RandomId());
    WEIR_TRY(CheckRoom());
    WEIR_ASSIGN(ClientSession::Setup setup, SetUp(call, config, handle));
    WEIR_ASSIGN(std::shared_ptr<ClientSession> made, ClientSession::Open(std::move(setup), request.graph_def()));
    WEIR_TRY(CheckRoom());
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (closed_) return FailedPrecondition("the server is closed");
      sessions_.emplace(handle, std::move(made));
    }
    tf::CreateSessionResponse response;
    response.set_session_handle(handle);
    return proto::Serialize(response, "CreateSessionResponse");
  }

  Status CheckRoom() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (sessions_.size() < options_.limits.sessions) return Status();
    return ResourceExhausted("{} sessions are open, the limit of this server", sessions_.size());
  }

  Result<std::string> ExtendSession(const MasterCall& call) {
    WEIR_ASSIGN(const tf::ExtendSessionRequest request, Parse<tf::ExtendSessionRequest>(call));
    const std::shared_ptr<ClientSession> session = Find(request.session_handle());
    if (!session) return NoSession(request.session_handle());
    tf::ExtendSessionResponse response;
    WEIR_ASSIGN(const int64_t version, session->Extend(request.graph_def(), request.current_graph_version()));
    response.set_new_graph_version(version);
    return proto::Serialize(response, "ExtendSessionResponse");
  }

  Result<std::string> CloseSession(const MasterCall& call) {
    WEIR_ASSIGN(const tf::CloseSessionRequest request, Parse<tf::CloseSessionRequest>(call));
    std::shared_ptr<ClientSession> gone;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = sessions_.find(request.session_handle());
      if (found == sessions_.end()) return NoSession(request.session_handle()).Append(kRestarted);
      gone = std::move(found->second);
      sessions_.erase(found);
    }
    gone->Close();
    return std::string();
  }

  Result<std::string> Reset(const MasterCall& call) {
    WEIR_ASSIGN(const tf::ResetRequest request, Parse<tf::ResetRequest>(call));
    const std::vector<std::string> containers(request.container().begin(), request.container().end());
    cluster::Workers wanted;
    if (options_.workers != nullptr) {
      std::vector<device::DeviceName> filters;
      for (const std::string& filter : request.device_filters()) {
        WEIR_ASSIGN(device::DeviceName name, device::ParseDeviceName(filter));
        filters.push_back(std::move(name));
      }
      for (const auto& worker : options_.workers->all()) {
        device::DeviceName task{.job = worker->task().job, .replica = 0, .task = worker->task().index};
        const auto meets = [&](device::DeviceName filter) {
          filter.type = std::nullopt;
          filter.id = std::nullopt;
          return device::Matches(filter, task);
        };
        if (filters.empty() || std::ranges::any_of(filters, meets)) wanted.Add(worker);
      }
    }
    DropSessions();
    if (options_.workers != nullptr) {
      WEIR_TRY(cluster::ResetContainers(wanted, containers));
      return std::string();
    }
    if (containers.empty()) resources_->Clear(runtime::kDefaultContainer);
    for (const std::string& container : containers) {
      if (!container.empty()) resources_->Clear(container);
    }
    return std::string();
  }

  Result<std::string> ListDevices(const MasterCall& call) {
    WEIR_ASSIGN(const tf::ListDevicesRequest request, Parse<tf::ListDevicesRequest>(call));
    tf::ListDevicesResponse response;
    if (!request.session_handle().empty()) {
      const std::shared_ptr<ClientSession> session = Find(request.session_handle());
      if (!session) {
        return InvalidArgument("Session {} is not found.{}", request.session_handle(), kRestarted);
      }
      for (const session::DeviceAttributes& device : session->ListDevices()) {
        AddDevice(device, session->IncarnationOf(device.name, incarnation_), *response.add_local_device());
      }
      return proto::Serialize(response, "ListDevicesResponse");
    }
    for (const session::DeviceAttributes& device : session::ListDevices(*runtime_)) {
      AddDevice(device, incarnation_, *response.add_local_device());
    }
    if (options_.workers != nullptr) WEIR_TRY(AddRemote(EndOf(call).deadline, response));
    return proto::Serialize(response, "ListDevicesResponse");
  }

  Status AddRemote(Clock::time_point deadline, tf::ListDevicesResponse& response) const {
    for (const auto& worker : options_.workers->all()) {
      if (worker->task() == options_.task) continue;
      const auto latest = std::min(deadline, Clock::now() + std::chrono::seconds(30));
      WEIR_ASSIGN(const cluster::WorkerStatus status, worker->GetStatus(latest));
      for (const device::DeviceDescription& device : status.devices) {
        AddDevice({device.info.name.ToString(), device.info.kind, device.info.memory_bytes}, status.incarnation,
                  *response.add_remote_device());
      }
    }
    return Status();
  }

  // --- Steps

  /// Counts a step while it runs.
  class Step {
   public:
    explicit Step(Impl& of) : of_(of) {
      const std::lock_guard<std::mutex> lock(of.mutex_);
      admitted_ = of.steps_ < of.options_.limits.steps;
      if (admitted_) ++of.steps_;
    }
    ~Step() {
      if (!admitted_) return;
      const std::lock_guard<std::mutex> lock(of_.mutex_);
      --of_.steps_;
    }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;
    Status status() const {
      if (admitted_) return Status();
      return ResourceExhausted("{} steps are under way, the limit of this server", of_.options_.limits.steps);
    }

   private:
    Impl& of_;
    bool admitted_ = false;
  };

  /// The reply to the same request, which its caller did not get.
  std::optional<std::string> TakeKept(const MasterCall& call) {
    std::optional<std::string> reply = kept_.Take(call.peer, call.method, call.request, Clock::now());
    if (!reply) return reply;
    const std::lock_guard<std::mutex> lock(mutex_);
    ++repeated_;
    return reply;
  }

  /// Keeps the reply of a step that did its work for a caller whose connection has ended.
  void KeepUndelivered(const MasterCall& call, const std::string& reply) {
    const Clock::time_point now = Clock::now();
    if (call.peer.empty() || call.cancellation == nullptr || !call.cancellation->cancelled() || now >= call.deadline) {
      return;
    }
    kept_.Keep(call.peer, call.method, call.request, reply, now);
  }

  /// A client sends a call that failed with Unavailable again: no step may end like that outside a response.
  static Status OfStep(const Status& status) {
    if (status.code() != Code::kUnavailable) return status;
    return Status(Code::kAborted, status.message());
  }

  Result<std::string> RunStep(const MasterCall& call) {
    const cluster::ShortRuns::Timed timed(steps_run_);
    if (std::optional<std::string> kept = TakeKept(call)) return *std::move(kept);
    WEIR_ASSIGN(const StepRequest request, ParseStepRequest(call.request));
    StepResult result;
    std::string reply;
    const auto run = [&]() -> Status {
      const std::string& handle = request.message->session_handle();
      WEIR_TRY(CheckId(call, request.message->request_id()));
      const std::shared_ptr<ClientSession> session = Find(handle);
      if (!session) return NoSession(handle);
      const Step step(*this);
      WEIR_TRY(step.status());
      WEIR_TRY(session->RunStep(request, EndOf(call), result));
      WEIR_ASSIGN(reply, StepReply(*request.message, result));
      return Status();
    };
    if (const Status status = run(); !status.ok()) {
      if (!request.message->store_errors_in_response_body()) return OfStep(status);
      tf::RunStepResponse response;
      response.set_metadata(std::move(result.metadata));
      response.set_status_code(static_cast<int32_t>(status.code()));
      response.set_status_error_message(Legible(status.message()));
      return proto::Serialize(response, "RunStepResponse");
    }
    KeepUndelivered(call, reply);
    return reply;
  }

  Result<std::string> PartialRunSetup(const MasterCall& call) {
    WEIR_ASSIGN(const tf::PartialRunSetupRequest request, Parse<tf::PartialRunSetupRequest>(call));
    WEIR_TRY(CheckId(call, request.request_id()));
    const std::shared_ptr<ClientSession> session = Find(request.session_handle());
    if (!session) return NoSession(request.session_handle());
    tf::PartialRunSetupResponse response;
    WEIR_ASSIGN(*response.mutable_partial_run_handle(), session->SetUpPartialRun(request));
    return proto::Serialize(response, "PartialRunSetupResponse");
  }

  Result<std::string> MakeCallable(const MasterCall& call) {
    WEIR_ASSIGN(const tf::MakeCallableRequest request, Parse<tf::MakeCallableRequest>(call));
    WEIR_TRY(CheckId(call, request.request_id()));
    const std::shared_ptr<ClientSession> session = Find(request.session_handle());
    if (!session) return NoSession(request.session_handle());
    tf::MakeCallableResponse response;
    WEIR_ASSIGN(const int64_t handle, session->MakeCallable(request));
    response.set_handle(handle);
    return proto::Serialize(response, "MakeCallableResponse");
  }

  Result<std::string> RunCallable(const MasterCall& call) {
    if (std::optional<std::string> kept = TakeKept(call)) return *std::move(kept);
    WEIR_ASSIGN(const CallableRequest request, ParseCallableRequest(call.request));
    WEIR_TRY(CheckId(call, request.message->request_id()));
    const std::shared_ptr<ClientSession> session = Find(request.message->session_handle());
    if (!session) return NoSession(request.message->session_handle());
    const Step step(*this);
    WEIR_TRY(step.status());
    StepResult result;
    if (const Status status = session->RunCallable(request, EndOf(call), result); !status.ok()) return OfStep(status);
    WEIR_ASSIGN(std::string reply, CallableReply(result));
    KeepUndelivered(call, reply);
    return reply;
  }

  Result<std::string> ReleaseCallable(const MasterCall& call) {
    WEIR_ASSIGN(const tf::ReleaseCallableRequest request, Parse<tf::ReleaseCallableRequest>(call));
    const std::shared_ptr<ClientSession> session = Find(request.session_handle());
    if (!session) return NoSession(request.session_handle());
    session->ReleaseCallable(request.handle());
    return std::string();
  }

  friend class Master;
  const std::shared_ptr<session::Runtime> runtime_;
  const MasterOptions options_;
  const uint64_t incarnation_ = cluster::RandomId();
  const std::shared_ptr<runtime::ResourceScope> resources_ = std::make_shared<runtime::ResourceScope>();
  ReceivedIds ids_;
  KeptReplies kept_;
  cluster::ShortRuns steps_run_;
  mutable std::mutex mutex_;  // protects all below
  std::condition_variable idle_;
  std::map<std::string, std::shared_ptr<ClientSession>> sessions_;
  size_t calls_ = 0, steps_ = 0;
  uint64_t repeated_ = 0;
  bool closed_ = false;
};

namespace {

/// A call on its way to a thread.
struct Asked {
  std::shared_ptr<void> keep;
  std::function<Result<std::string>(const MasterCall&)> answer;
  MasterCall call;
  cluster::MasterDone done;
};

}  // namespace

Master::Master(std::shared_ptr<session::Runtime> runtime, MasterOptions options)
    : impl_(std::make_shared<Impl>(std::move(runtime), std::move(options))) {}

Master::~Master() {
  Close();
  impl_->Wait();
}

void Master::Close() {
  {
    const std::lock_guard<std::mutex> lock(impl_->mutex_);
    impl_->closed_ = true;
  }
  impl_->DropSessions();
}

Result<std::string> Master::Answer(const cluster::MasterCall& call) { return impl_->Answer(call); }

void Master::Call(cluster::MasterCall call, cluster::MasterDone done) {
  impl_->Begin();
  auto* const asked = new Asked{impl_, [impl = impl_.get()](const MasterCall& of) { return impl->Answer(of); },
                                std::move(call), std::move(done)};
  const auto run = [](void* arg) {
    const std::unique_ptr<Asked> own(static_cast<Asked*>(arg));
    Result<std::string> reply = own->answer(own->call);
    // Before `done`, which may drop the last owner of the master: its destructor waits for the calls.
    std::static_pointer_cast<Impl>(own->keep)->End();
    own->done(std::move(reply));
  };
  if (asked->call.on_this_thread) return run(asked);
  const Status started = runtime::RunBlocking(run, asked);
  if (started.ok()) return;
  const std::unique_ptr<Asked> own(asked);
  impl_->End();
  own->done(started);
}

bool Master::StepsAreShort() const { return impl_->steps_run_.AreShort(); }

Master::Counts Master::counts() const { return impl_->counts(); }

}  // namespace weir::door
