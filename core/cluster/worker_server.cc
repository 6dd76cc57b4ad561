#include "core/cluster/worker_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/cluster/server_messages.h"
#include "core/cluster/step_link.h"
#include "core/cluster/step_traces.h"
#include "core/cluster/wire_channel.h"
#include "core/cluster/worker_messages.h"
#include "core/device/error_record.h"
#include "core/kernel/host.h"
#include "core/runtime/blocking_pool.h"
#include "core/runtime/cancellation.h"

namespace weir::cluster {
namespace {

constexpr std::chrono::seconds kReplyLimit{1};
constexpr size_t kShortRequest = 64u << 10;  // bytes of a step that another thread is not asked to run

/// The host of "/job:worker/task:1 at 10.0.0.7".
std::string HostOfPeer(std::string_view peer) {
  const size_t at = peer.rfind(" at ");
  return std::string(at == std::string_view::npos ? peer : peer.substr(at + 4));
}

/// "/job:worker/task:1"; empty for a client that is no task.
std::string TaskOfPeer(std::string_view peer) {
  const size_t at = peer.rfind(" at ");
  return std::string(at == std::string_view::npos ? std::string_view() : peer.substr(0, at));
}

/// True if the request is work that a drain refuses and waits for.
bool IsWork(const WireRequest& request) {
  return request.method == Method::kRunStep || request.method == Method::kRegisterPart ||
         request.method == Method::kCreateSession ||
         (request.method == Method::kMaster && request.master_method != "CloseSession" &&
          request.master_method != kServerProfile);
}

/// True if the request is open as long as its caller wants a session.
bool IsHold(const WireRequest& request) {
  return request.method == Method::kHoldSession || request.method == Method::kKeepSession;
}

}  // namespace

/// A request of a peer. Held by the transport until it has sent the reply, and by the work under way.
struct WorkerServer::Call {
  ~Call() {
    if (!IsHold(request)) server->Ended(IsWork(request));
  }

  /// A message before the reply. False if it is too large; after the reply it goes nowhere.
  bool Tell(Method method, const std::string& meta, const Bodies& bodies) {
    const std::lock_guard<std::mutex> lock(telling);
    if (replied) return true;
    return TellBy(method, meta, bodies, [this](const weir_message& message) {
      return server->transport_.api->tell_caller(incoming, &message);
    });
  }
  /// Sends the reply, once. After a cancellation it goes nowhere.
  void Reply(const WireReply& answer, const Bodies& given) {
    {
      const std::lock_guard<std::mutex> lock(telling);
      replied = true;
    }
    weir_message message{};
    message.struct_size = sizeof message;
    Result<std::string> meta = Encode(answer);
    Bodies bodies = given;
    if (meta.ok() && meta->size() > WEIR_TRANSPORT_META_BYTES) {
      meta = ResourceExhausted("a reply has {} bytes beside its tensors", meta->size());
    }
    if (!meta.ok()) {
      const Status& status = meta.status();
      return server->transport_.api->reply(incoming, static_cast<int32_t>(status.code()),
                                           kernel::ViewOf(status.message()), nullptr);
    }
    std::vector<weir_bytes> sent;
    for (const std::span<const std::byte> body : bodies) sent.push_back({body.data(), body.size()});
    message.meta = {meta->data(), meta->size()};
    message.bodies = sent.data();
    message.body_count = sent.size();
    server->transport_.api->reply(incoming, WEIR_OK, {nullptr, 0}, &message);
  }
  void ReplyError(const Status& status) {
    WireReply answer;
    answer.status = status;
    Reply(answer, {});
  }
  void ReplyTensors(Result<std::vector<Tensor>> tensors, bool dead) {
    if (!tensors.ok()) return ReplyError(tensors.status());
    Result<OutgoingTensors> made = OutgoingTensors::Make(*std::move(tensors));
    if (!made.ok()) return ReplyError(made.status());
    values = *std::move(made);
    WireReply answer;
    answer.tensors = values.heads();
    answer.dead = dead;
    answer.forgotten = forgotten != nullptr && *forgotten;
    Reply(answer, values.bodies());
  }

  std::shared_ptr<WorkerServer> server;
  weir_incoming* incoming = nullptr;
  WireRequest request;
  Clock::time_point deadline = Clock::time_point::max();
  std::string peer;
  uint64_t incarnation = 0;  // of the peer
  IncomingTensors feeds;
  std::string bytes;  // a graph or a request
  ByteBudget::Charge charge;
  OutgoingTensors values;
  std::shared_ptr<std::atomic<bool>> forgotten;  // by a part that ran; may be null
  std::string response;
  const std::shared_ptr<runtime::Cancellation> cancellation = std::make_shared<runtime::Cancellation>();
  std::atomic<bool> lost{false};
  std::atomic<bool> held{false};  // a session, by a call without a reply
  std::mutex telling;             // held while a message before the reply is given; protects `replied`
  bool replied = false;
};

weir_service WorkerServer::AsService() {
  using Handle = std::shared_ptr<Call>;
  weir_service service{};
  service.struct_size = sizeof service;
  service.ctx = new std::shared_ptr<WorkerServer>(shared_from_this());
  service.begin = [](void* ctx, weir_incoming* incoming, const weir_arrival* request, void** to, void** call,
                     weir_error* error) -> int32_t {
    const Status status = (*static_cast<std::shared_ptr<WorkerServer>*>(ctx))->Begin(incoming, *request, to, call);
    return status.ok() ? WEIR_OK : device::Report(error, status);
  };
  service.received = [](void* call) { Received(*static_cast<Handle*>(call)); };
  service.cancelled = [](void* call, int32_t code, weir_str reason) {
    const bool known = code > 0 && code <= static_cast<int32_t>(Code::kUnauthenticated);
    Cancel(*static_cast<Handle*>(call),
           Status(known ? static_cast<Code>(code) : Code::kUnknown, std::string(kernel::Text(reason))));
  };
  service.ended = [](void* call) { delete static_cast<Handle*>(call); };
  service.told = [](void* call, const weir_arrival* message, const void* body, weir_error* error) -> int32_t {
    const Status status = Told(*static_cast<Handle*>(call), *message, body);
    return status.ok() ? WEIR_OK : device::Report(error, status);
  };
  service.release = [](void* ctx) { delete static_cast<std::shared_ptr<WorkerServer>*>(ctx); };
  return service;
}

Status WorkerServer::Admit(const WireRequest& request) const {
  if (request.method == Method::kMaster ? services_.master == nullptr : services_.worker == nullptr) {
    return Unimplemented("{} is not served here", NameOf(request.method));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (draining_ && IsWork(request)) {
    const std::string task = services_.worker ? services_.worker->task().ToString() : "the server";
    return FailedPrecondition("{} is draining and takes no new work", task);
  }
  return Status();
}

Status WorkerServer::Begin(weir_incoming* incoming, const weir_arrival& arrival, void** to, void** out) {
  const std::string_view meta(static_cast<const char*>(arrival.meta.data), arrival.meta.size);
  const std::span<const uint64_t> sizes(arrival.body_bytes, arrival.body_count);
  WEIR_ASSIGN(WireRequest request, DecodeRequest(arrival.method, meta));
  WEIR_TRY(Admit(request));
  const bool measures = request.method == Method::kMeasure;
  const bool one = request.method == Method::kRegisterPart || request.method == Method::kMaster || measures;
  const bool tensors = request.method == Method::kRunStep || request.method == Method::kSendTensor;
  if (!tensors && (sizes.size() != (one ? 1u : 0u) || !request.tensors.empty())) {
    return InvalidArgument("{} came with {} bodies", NameOf(request.method), sizes.size());
  }
  IncomingTensors feeds;
  ByteBudget::Charge charge;
  std::string bytes;
  if (tensors) {
    WEIR_ASSIGN(feeds, IncomingTensors::Make(request.tensors, sizes, budget_));
    for (size_t i = 0; i < feeds.size(); ++i) to[i] = feeds.to(i);
  } else if (one) {
    const uint64_t most = measures ? kMostMeasureBytes : kMostRequestBytes;
    if (sizes[0] > most) {
      return ResourceExhausted("{} came with {} bytes, at most {} are taken", NameOf(request.method), sizes[0], most);
    }
    WEIR_ASSIGN(charge, ByteBudget::Take(budget_, sizes[0]));
    bytes.resize(sizes[0]);
  }
  const auto call = std::make_shared<Call>();
  call->server = shared_from_this();
  call->incoming = incoming;
  call->request = std::move(request);
  if (arrival.time_left_ms < (uint64_t{1} << 40)) {
    call->deadline = Clock::now() + std::chrono::milliseconds(arrival.time_left_ms);
  }
  call->peer = kernel::Text(arrival.peer);
  call->incarnation = arrival.incarnation;
  call->feeds = std::move(feeds);
  call->bytes = std::move(bytes);
  call->charge = std::move(charge);
  if (one) to[0] = call->bytes.data();
  if (!IsHold(call->request)) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++calls_;
    if (IsWork(call->request)) ++working_;
  }
  *out = new std::shared_ptr<Call>(call);
  return Status();
}

void WorkerServer::Ended(bool counted) {
  const std::lock_guard<std::mutex> lock(mutex_);
  --calls_;
  if (counted) --working_;
  changed_.notify_all();
}

void WorkerServer::RunLater(const std::shared_ptr<Call>& call) {
  auto* const held = new std::shared_ptr<Call>(call);
  const auto run = [](void* arg) {
    const std::unique_ptr<std::shared_ptr<Call>> own(static_cast<std::shared_ptr<Call>*>(arg));
    Run(*own);
  };
  const Status status = runtime::RunBlocking(run, held);
  if (status.ok()) return;
  delete held;
  call->ReplyError(status);
}

/// On the thread of the transport, after its callback. False, and nothing runs, if that is not possible now.
bool WorkerServer::RunHere(const std::shared_ptr<Call>& call) {
  const weir_transport_api* const api = call->server->transport_.api;
  if (!WEIR_HAS(api, run_after)) return false;
  auto held = std::make_unique<std::shared_ptr<Call>>(call);
  const auto run = [](void* arg) {
    const std::unique_ptr<std::shared_ptr<Call>> own(static_cast<std::shared_ptr<Call>*>(arg));
    const std::shared_ptr<WorkerServer> server = (*own)->server;
    const runtime::WaitHelpScope helped(&server->help_);
    try {
      if ((*own)->request.method == Method::kMaster) return CallMaster(*own, true);
      RunStep(*own, true);
    } catch (...) {
      // As on the blocking pool: an exception, such as one of a plugin, ends the request and does not cross the ABI.
    }
  };
  if (api->run_after(run, held.get()) == 0) return false;
  static_cast<void>(held.release());
  return true;
}

/// On a thread of the transport: only what cannot take long.
void WorkerServer::Received(const std::shared_ptr<Call>& call) {
  Worker* const worker = call->server->services_.worker.get();
  const MasterService* const master = call->server->services_.master.get();
  const WireRequest& request = call->request;
  switch (request.method) {
    case Method::kRunStep:
      if (worker->IsShort(request.session, request.part) && RunHere(call)) return;
      return RunStep(call, false);
    case Method::kRecvTensor:
      return RecvTensor(call);
    case Method::kSendTensor:
      return SendTensor(call);
    case Method::kHoldSession:
      call->held = true;  // until it is cancelled
      return;
    case Method::kKeepSession:
      return Keep(call);
    case Method::kCancelStep:
      return call->ReplyError(worker->CancelStep(request.session, request.step, request.why));
    case Method::kCleanupStep:
      return call->ReplyError(worker->CleanupStep(request.session, request.step));
    case Method::kMaster:
      if (request.master_method != "RunStep") break;
      if (call->bytes.size() <= kShortRequest && master->StepsAreShort() && RunHere(call)) return;
      return CallMaster(call, false);  // a master has a thread for each step
    default:
      break;
  }
  RunLater(call);
}

void WorkerServer::Run(const std::shared_ptr<Call>& call) {
  if (call->request.method == Method::kMaster) return CallMaster(call, false);
  if (call->request.method == Method::kTakeTrace) return TakeTrace(call);
  if (call->request.method == Method::kHoldSession) {
    static_cast<void>(call->server->services_.worker->DeleteSession(call->request.session));  // or its master did
    if (call->held) call->ReplyError(Cancelled("the session is not held any more"));
    return;
  }
  const std::string& sent = call->bytes;
  call->Reply(Answer(*call),
              call->request.method == Method::kMeasure ? Bodies{std::as_bytes(std::span(sent))} : Bodies());
}

WireReply WorkerServer::Answer(Call& call) {
  Worker& worker = *call.server->services_.worker;
  const WireRequest& request = call.request;
  WireReply answer;
  const auto take = [&answer](auto result, auto& to) {
    if (result.ok()) {
      to = *std::move(result);
    } else {
      answer.status = result.status();
    }
  };
  switch (request.method) {
    case Method::kGetStatus:
      take(worker.GetStatus(call.deadline), answer.worker);
      break;
    case Method::kCreateSession:
      answer.status = call.server->CreateSession(call);
      break;
    case Method::kDeleteSession:
      answer.status = call.server->DeleteSession(request.session);
      break;
    case Method::kRegisterPart:
      take(worker.RegisterPart(request.session, call.bytes, call.deadline), answer.part);
      break;
    case Method::kDeregisterPart:
      answer.status = worker.DeregisterPart(request.session, request.part);
      break;
    case Method::kGetKernels:
      take(worker.GetKernels(call.deadline), answer.kernels);
      break;
    case Method::kMeasure:
      break;
    case Method::kGetTransports:
      answer.alternates = call.server->alternates_;
      break;
    case Method::kResetContainers:
      answer.status = worker.ResetContainers(request.containers);
      break;
    default:
      answer.status = Unimplemented("{} is not served here", NameOf(request.method));
  }
  return answer;
}

Status WorkerServer::CreateSession(const Call& call) {
  std::map<uint64_t, Kept> left;
  const std::string task = TaskOfPeer(call.peer);
  if (!task.empty()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Owner& owner = owners_[task];
    if (owner.incarnation != call.incarnation) left.swap(owner.sessions);
    owner.incarnation = call.incarnation;
    owner.sessions.try_emplace(call.request.session);
  }
  // Aborted: they have ended already.
  for (const auto& [session, kept] : left) static_cast<void>(services_.worker->DeleteSession(session));
  const Status status = services_.worker->CreateSession(call.request.spec, call.deadline);
  if (!status.ok() && status.code() != Code::kAlreadyExists) Forget(call.request.session);
  if (status.ok() && call.lost) return DeleteSession(call.request.session);  // nobody learns of it
  return status;
}

Status WorkerServer::DeleteSession(uint64_t session) {
  Forget(session);
  return services_.worker->DeleteSession(session);
}

void WorkerServer::Forget(uint64_t session) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [task, owner] : owners_) owner.sessions.erase(session);
}

void WorkerServer::Keep(const std::shared_ptr<Call>& call) {
  const std::string task = TaskOfPeer(call->peer);
  {
    const std::lock_guard<std::mutex> lock(call->server->mutex_);
    const auto owner = call->server->owners_.find(task);
    if (owner != call->server->owners_.end() && owner->second.incarnation == call->incarnation) {
      const auto kept = owner->second.sessions.find(call->request.session);
      if (kept != owner->second.sessions.end()) {
        ++kept->second.holds;
        kept->second.away_since = Clock::time_point::max();
        call->held = true;
        return;
      }
    }
  }
  call->ReplyError(Aborted("there is no session {:016x} of {}", call->request.session, call->peer));
}

void WorkerServer::Miss(const Call& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto owner = owners_.find(TaskOfPeer(call.peer));
  if (owner == owners_.end() || owner->second.incarnation != call.incarnation) return;
  const auto kept = owner->second.sessions.find(call.request.session);
  if (kept == owner->second.sessions.end() || --kept->second.holds > 0) return;
  kept->second.away_since = Clock::now();
  if (ending_ == nullptr) WakeAt(kept->second.away_since + longest_away_);
}

void WorkerServer::WakeAt(Clock::time_point when) {
  ending_ = std::make_unique<runtime::Timer>(when, [weak = weak_from_this()] {
    if (const std::shared_ptr<WorkerServer> self = weak.lock()) self->EndMissed();
  });
}

void WorkerServer::EndMissed() {
  std::unique_ptr<runtime::Timer> this_one;
  std::vector<std::pair<uint64_t, std::string>> gone;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    this_one = std::move(ending_);
    Clock::time_point next = Clock::time_point::max();
    for (auto& [task, owner] : owners_) {
      for (auto at = owner.sessions.begin(); at != owner.sessions.end();) {
        const bool away = at->second.away_since != Clock::time_point::max();
        const bool ends = away && at->second.away_since + longest_away_ <= Clock::now();
        if (away && !ends) next = std::min(next, at->second.away_since + longest_away_);
        if (ends) gone.emplace_back(at->first, task);
        at = ends ? owner.sessions.erase(at) : std::next(at);
      }
    }
    if (next != Clock::time_point::max()) WakeAt(next);
  }
  for (const auto& [session, task] : gone) {
    if (!services_.worker->DeleteSession(session).ok()) continue;
    const std::string note = fmt::format("session {:016x} of {} has ended: its master has had no connection for {} s",
                                         session, task, std::chrono::ceil<std::chrono::seconds>(longest_away_).count());
    kernel::HostTable().log(WEIR_LOG_WARNING, __FILE__, __LINE__, kernel::ViewOf(note));
  }
}

size_t WorkerServer::away() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  size_t count = 0;
  for (const auto& [task, owner] : owners_) {
    for (const auto& [session, kept] : owner.sessions) count += kept.away_since != Clock::time_point::max() ? 1 : 0;
  }
  return count;
}

void WorkerServer::RunStep(const std::shared_ptr<Call>& call, bool here) {
  Result<std::vector<Tensor>> feeds = call->feeds.Take();
  if (!feeds.ok()) return call->ReplyError(feeds.status());
  StepRequest request;
  request.session = call->request.session;
  request.part = call->request.part;
  request.step = call->request.step;
  request.request = call->request.request;
  request.alone = call->request.alone;
  request.trace = call->request.trace;
  request.deadline = call->deadline;
  request.feeds = *std::move(feeds);
  request.on_this_thread = here;
  if (call->request.forget) call->forgotten = request.forgotten = std::make_shared<std::atomic<bool>>(false);
  if (!call->request.link.job.empty()) request.links.push_back(LinkOf(call));
  call->server->services_.worker->RunStep(
      std::move(request), StepDone([call](Result<std::vector<Tensor>> fetches) {
        // Nobody else forgets the step of a master that is lost.
        if (call->lost) {
          const Worker* const worker = call->server->services_.worker.get();
          static_cast<void>(const_cast<Worker*>(worker)->CleanupStep(call->request.session, call->request.step));
        }
        call->ReplyTensors(std::move(fetches), false);
      }));
}

/// The way to the task that calls.
std::shared_ptr<const StepLink> WorkerServer::LinkOf(const std::shared_ptr<Call>& call) {
  auto link = std::make_shared<StepLink>();
  link->own = call->server->services_.worker->task();
  link->other = call->request.link;
  // The step may outlive its call.
  link->send = [weak = std::weak_ptr<Call>(call)](std::string_view key, const runtime::Message& message) {
    const std::shared_ptr<Call> to = weak.lock();
    if (to == nullptr) return true;
    const Result<SentValue> value = EncodeValue(key, message);
    return value.ok() && to->Tell(Method::kSendTensor, value->meta, value->tensors.bodies());
  };
  return link;
}

/// A value of the task that calls.
Status WorkerServer::Told(const std::shared_ptr<Call>& call, const weir_arrival& message, const void* body) {
  const std::string_view meta(static_cast<const char*>(message.meta.data), message.meta.size);
  const std::span<const uint64_t> sizes(message.body_bytes, message.body_count);
  const WireRequest& request = call->request;
  if (request.link.job.empty()) return InvalidArgument("a message came along with {}", NameOf(request.method));
  WEIR_ASSIGN(CameValue came, DecodeValue(message.method, meta, sizes, body, call->server->budget_));
  // A step that has ended wants no values.
  static_cast<void>(call->server->services_.worker->TakeValue({request.session, request.step, std::move(came.key)},
                                                              std::move(came.message)));
  return Status();
}

void WorkerServer::TakeTrace(const std::shared_ptr<Call>& call) {
  const WireRequest& request = call->request;
  const auto take = [&]() -> Result<std::vector<Tensor>> {
    WEIR_ASSIGN(const trace::StepTrace trace,
                call->server->services_.worker->TakeTrace(request.session, request.step, call->deadline));
    WEIR_ASSIGN(const std::string bytes, EncodeTrace(trace));
    WEIR_ASSIGN(Tensor value, Tensor::Make(DType::kUint8, Shape::Of({static_cast<int64_t>(bytes.size())})));
    std::ranges::copy(std::as_bytes(std::span(bytes)), reinterpret_cast<std::byte*>(value.mutable_raw()));
    return std::vector<Tensor>{std::move(value)};
  };
  call->ReplyTensors(take(), false);
}

void WorkerServer::RecvTensor(const std::shared_ptr<Call>& call) {
  const WireRequest& request = call->request;
  call->server->services_.worker->RecvTensor({request.session, request.step, request.key},
                                             runtime::Rendezvous::Received([call](Result<runtime::Message> came) {
                                               if (!came.ok()) return call->ReplyError(came.status());
                                               std::vector<Tensor> values;
                                               if (!came->dead) values.push_back(std::move(came->value));
                                               call->ReplyTensors(std::move(values), came->dead);
                                             }));
}

void WorkerServer::SendTensor(const std::shared_ptr<Call>& call) {
  Result<std::vector<Tensor>> values = call->feeds.Take();
  if (!values.ok()) return call->ReplyError(values.status());
  const WireRequest& request = call->request;
  if (values->size() != (request.dead ? 0u : 1u)) {
    return call->ReplyError(InvalidArgument("{} values came for one key", values->size()));
  }
  runtime::Message message{request.dead ? Tensor() : std::move(values->front()), request.dead};
  call->server->services_.worker->SendTensor({request.session, request.step, request.key}, std::move(message),
                                             [call](const Status& status) { call->ReplyError(status); });
}

void WorkerServer::CallMaster(const std::shared_ptr<Call>& call, bool here) {
  MasterCall passed;
  passed.method = call->request.master_method;
  passed.request = std::move(call->bytes);
  passed.deadline = call->deadline;
  passed.peer = HostOfPeer(call->peer);
  passed.cancellation = call->cancellation;
  passed.on_this_thread = here;
  call->server->services_.master->Call(std::move(passed), MasterDone([call](Result<std::string> response) {
                                         if (!response.ok()) return call->ReplyError(response.status());
                                         call->response = *std::move(response);
                                         const std::string& sent = call->response;
                                         call->Reply(WireReply(), {std::as_bytes(std::span(sent))});
                                       }));
}

void WorkerServer::Cancel(const std::shared_ptr<Call>& call, const Status& why) {
  call->lost = true;
  const Status reason = why.Prepend(fmt::format("the caller at {}: ", call->peer));
  call->cancellation->Cancel(reason);
  if (call->request.method == Method::kHoldSession) return RunLater(call);
  if (call->request.method == Method::kKeepSession && call->held.exchange(false)) {
    call->server->Miss(*call);
    return call->ReplyError(Cancelled("the session is not held any more"));
  }
  if (call->request.method != Method::kRunStep) return;
  static_cast<void>(call->server->services_.worker->CancelStep(call->request.session, call->request.step, reason));
}

void WorkerServer::BeginDrain() {
  const std::lock_guard<std::mutex> lock(mutex_);
  draining_ = true;
}

Status WorkerServer::Drain(Clock::time_point deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  draining_ = true;
  if (!changed_.wait_until(lock, deadline, [this] { return working_ == 0; })) {
    return DeadlineExceeded("{} calls are still under way", working_);
  }
  // Replies on their way, as that of CloseSession, reach their callers. A call that waits for a task does not count.
  changed_.wait_until(lock, std::min(deadline, Clock::now() + kReplyLimit), [this] { return calls_ == 0; });
  return Status();
}

size_t WorkerServer::calls() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return calls_;
}

}  // namespace weir::cluster
