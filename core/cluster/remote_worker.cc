#include "core/cluster/remote_worker.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "core/base/errors.h"
#include "core/cluster/ranks.h"
#include "core/cluster/step_link.h"
#include "core/cluster/step_traces.h"
#include "core/runtime/cancellation.h"

namespace weir::cluster {
namespace {

constexpr std::chrono::minutes kStartLimit{5};

/// A call whose reply has no bodies.
class PlainCall final : public WireCall {
 public:
  using Ended = std::function<void(Result<WireReply>)>;
  PlainCall(std::string waits, Ended ended) : waits_(std::move(waits)), ended_(std::move(ended)) {}

  Status Place(std::string_view meta, std::span<const uint64_t> sizes, void**) override {
    if (!sizes.empty()) return InvalidArgument("a reply has {} bodies, wanted none", sizes.size());
    WEIR_ASSIGN(reply_, DecodeReply(meta));
    return Status();
  }
  void Done(const Status& status) override {
    if (!status.ok()) return ended_(waits_.empty() ? status : status.Append("\nwaiting: " + waits_));
    ended_(reply_.status.ok() ? Result<WireReply>(std::move(reply_)) : Result<WireReply>(reply_.status));
  }

 private:
  WireReply reply_;
  const std::string waits_;
  const Ended ended_;
};

/// A call whose reply may have tensors. It owns what it sends.
class TensorCall final : public WireCall {
 public:
  using Ended = std::function<void(Result<std::vector<Tensor>>, bool dead)>;
  TensorCall(OutgoingTensors sent, std::string waits, Ended ended)
      : sent_(std::move(sent)), waits_(std::move(waits)), ended_(std::move(ended)) {}

  const OutgoingTensors& sent() const { return sent_; }
  void SetForgotten(std::shared_ptr<std::atomic<bool>> forgotten) { forgotten_ = std::move(forgotten); }
  void SetLink(std::shared_ptr<const StepLink> link) { link_ = std::move(link); }

  Status Place(std::string_view meta, std::span<const uint64_t> sizes, void** to) override {
    WEIR_ASSIGN(reply_, DecodeReply(meta));
    WEIR_ASSIGN(tensors_, IncomingTensors::Make(reply_.tensors, sizes, ByteBudget::OfProcess()));
    for (size_t i = 0; i < tensors_.size(); ++i) to[i] = tensors_.to(i);
    return Status();
  }
  Status Told(uint32_t method, std::string_view meta, std::span<const uint64_t> sizes, const void* body) override {
    if (link_ == nullptr) return WireCall::Told(method, meta, sizes, body);
    WEIR_ASSIGN(CameValue came, DecodeValue(method, meta, sizes, body, ByteBudget::OfProcess()));
    link_->taken(came.key, std::move(came.message));
    return Status();
  }
  void Done(const Status& status) override {
    if (!status.ok()) return ended_(status.Append("\nwaiting: " + waits_), false);
    if (!reply_.status.ok()) return ended_(reply_.status, false);
    if (forgotten_ != nullptr && reply_.forgotten) forgotten_->store(true, std::memory_order_relaxed);
    ended_(tensors_.Take(), reply_.dead);
  }

 private:
  const OutgoingTensors sent_;
  const std::string waits_;
  WireReply reply_;
  IncomingTensors tensors_;
  std::shared_ptr<std::atomic<bool>> forgotten_;  // may be null
  std::shared_ptr<const StepLink> link_;          // may be null
  const Ended ended_;
};

/// A call whose reply repeats its body.
class EchoCall final : public WireCall {
 public:
  EchoCall(uint64_t bytes, std::function<void(const Status&)> ended) : body_(bytes, '\0'), ended_(std::move(ended)) {}

  Status Place(std::string_view meta, std::span<const uint64_t> sizes, void** to) override {
    WEIR_ASSIGN(reply_, DecodeReply(meta));
    if (!reply_.status.ok()) return Status();
    if (sizes.size() != 1 || sizes[0] != body_.size()) {
      return InvalidArgument("the reply to a measurement has {} bodies, wanted the one of {} bytes that was sent",
                             sizes.size(), body_.size());
    }
    to[0] = body_.data();
    return Status();
  }
  void Done(const Status& status) override { ended_(status.ok() ? reply_.status : status); }

 private:
  std::string body_;
  WireReply reply_;
  const std::function<void(const Status&)> ended_;
};

/// A result that another thread sets.
template <class T>
class Awaited {
 public:
  void Set(T value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    value_ = std::move(value);
    changed_.notify_all();
  }
  T Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return value_.has_value(); });
    return *std::move(value_);
  }

 private:
  std::mutex mutex_;  // protects value_
  std::condition_variable changed_;
  std::optional<T> value_;
};

/// A call of the master, its request, and its cancellation.
class PassedCall final : public WireCall {
 public:
  /// Cancels the call by its number, once both are known.
  struct Canceller {
    std::mutex mutex;  // protects all below
    std::shared_ptr<WireChannel> channel;
    uint64_t number = 0;
    bool cancelled = false;

    void Cancel() {
      const std::lock_guard<std::mutex> lock(mutex);
      cancelled = true;
      if (number != 0) channel->Cancel(number);
    }
    void Started(uint64_t started) {
      const std::lock_guard<std::mutex> lock(mutex);
      number = started;
      if (cancelled) channel->Cancel(number);
    }
  };

  PassedCall(MasterCall call, MasterDone done) : call_(std::move(call)), done_(std::move(done)) {}
  const MasterCall& call() const { return call_; }

  /// False if the call is cancelled already.
  bool Watch(const std::shared_ptr<Canceller>& canceller) {
    if (!call_.cancellation) return true;
    return callback_.Register(*call_.cancellation, [canceller] { canceller->Cancel(); });
  }
  void Fail(const Status& status) { done_(status); }

  Status Place(std::string_view meta, std::span<const uint64_t> sizes, void** to) override {
    WEIR_ASSIGN(reply_, DecodeReply(meta));
    if (!reply_.status.ok()) return Status();
    if (sizes.size() != 1) return InvalidArgument("a response has {} bodies, wanted one", sizes.size());
    WEIR_ASSIGN(charge_, ByteBudget::Take(ByteBudget::OfProcess(), sizes[0]));
    response_ = std::string();
    response_.resize(sizes[0]);
    to[0] = response_.data();
    return Status();
  }
  void Done(const Status& status) override {
    callback_.Deregister();
    if (!status.ok()) return done_(status);
    done_(reply_.status.ok() ? Result<std::string>(std::move(response_)) : Result<std::string>(reply_.status));
  }

 private:
  const MasterCall call_;
  MasterDone done_;
  WireReply reply_;
  ByteBudget::Charge charge_;
  std::string response_;
  runtime::CancelCallback callback_;
};

Bodies BodyOf(const std::string& bytes) {
  return {std::span(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size())};
}

}  // namespace

Result<WireReply> RemoteWorker::Ask(const WireRequest& request, const Bodies& bodies, uint32_t flags,
                                    Clock::time_point deadline) {
  WEIR_ASSIGN(const std::string meta, Encode(request));
  Awaited<Result<WireReply>> reply;
  std::string waits;
  if (request.session != 0) {
    waits = fmt::format("{} of session {:016x} in {}", NameOf(request.method), request.session, task_.ToString());
  }
  auto call = std::make_unique<PlainCall>(std::move(waits),
                                          [&reply](Result<WireReply> came) { reply.Set(std::move(came)); });
  channel_->Start(std::move(call), request.method, meta, bodies, flags, deadline);
  return reply.Wait();
}

Status RemoteWorker::Tell(const WireRequest& request) {
  WEIR_ASSIGN(const std::string meta, Encode(request));
  auto call = std::make_unique<PlainCall>(std::string(), [](const Result<WireReply>&) {});
  channel_->Start(std::move(call), request.method, meta, {}, WEIR_CALL_IF_CONNECTED, Clock::time_point::max());
  return Status();
}

Result<WorkerStatus> RemoteWorker::GetStatus(Clock::time_point deadline) {
  WireRequest request;
  request.method = Method::kGetStatus;
  WEIR_ASSIGN(WireReply reply, Ask(request, {}, WEIR_CALL_WAIT, deadline));
  WorkerStatus& worker = reply.worker;
  worker.task = task_;
  if (task_.job.empty() && !worker.devices.empty()) {
    const device::DeviceName& first = worker.devices.front().info.name;
    worker.task = {*first.job, *first.task};
  }
  for (const device::DeviceDescription& device : worker.devices) {
    if (device.info.name.job == worker.task.job && device.info.name.task == worker.task.index) continue;
    return Internal("{} has the device {}", worker.task.ToString(), device.info.name.ToString());
  }
  return std::move(worker);
}

Result<std::vector<kernel::KernelDescription>> RemoteWorker::GetKernels(Clock::time_point deadline) {
  WireRequest request;
  request.method = Method::kGetKernels;
  WEIR_ASSIGN(WireReply reply, Ask(request, {}, 0, deadline));
  return std::move(reply.kernels);
}

Status RemoteWorker::CreateSession(const WorkerSessionSpec& spec, Clock::time_point deadline) {
  WireRequest request;
  request.method = Method::kCreateSession;
  request.session = spec.handle;
  request.spec = spec;
  WEIR_TRY(Ask(request, {}, 0, deadline).status());
  TellLeft();
  if (!spec.known_as.job.empty()) return Status();  // its owner binds it to the connection
  auto hold = std::make_unique<SessionHold>(channel_, spec.handle);
  const std::lock_guard<std::mutex> lock(mutex_);
  holds_.insert_or_assign(spec.handle, std::move(hold));
  return Status();
}

void RemoteWorker::TellLeft() {
  std::set<uint64_t> left;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    left.swap(left_);
  }
  WireRequest request;
  request.method = Method::kDeleteSession;
  for (const uint64_t session : left) {
    request.session = session;
    static_cast<void>(Tell(request));  // or the next one tells no more of it
  }
}

Status RemoteWorker::DeleteSession(uint64_t session) {
  WireRequest request;
  request.method = Method::kDeleteSession;
  request.session = session;
  std::unique_ptr<SessionHold> hold;  // until it is told
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = holds_.find(session); found != holds_.end()) {
      hold = std::move(found->second);
      holds_.erase(found);
    }
  }
  const Status status = Ask(request, {}, WEIR_CALL_IF_CONNECTED, Clock::now() + limit_).status();
  if (status.code() == Code::kUnavailable || status.code() == Code::kDeadlineExceeded) {
    const std::lock_guard<std::mutex> lock(mutex_);
    left_.insert(session);
  }
  return status;
}

Result<PartHandle> RemoteWorker::RegisterPart(uint64_t session, const std::string& graph, Clock::time_point deadline) {
  WireRequest request;
  request.method = Method::kRegisterPart;
  request.session = session;
  WEIR_ASSIGN(WireReply reply, Ask(request, BodyOf(graph), 0, deadline));
  return std::move(reply.part);
}

Status RemoteWorker::DeregisterPart(uint64_t session, uint64_t part) {
  WireRequest request;
  request.method = Method::kDeregisterPart;
  request.session = session;
  request.part = part;
  return Ask(request, {}, WEIR_CALL_IF_CONNECTED, Clock::now() + limit_).status();
}

void RemoteWorker::RunStep(StepRequest request, StepDone done) {
  WireRequest wire;
  wire.method = Method::kRunStep;
  wire.session = request.session;
  wire.part = request.part;
  wire.step = request.step;
  wire.request = request.request;
  wire.alone = request.alone;
  wire.trace = request.trace;
  wire.forget = request.forgotten != nullptr;
  const std::shared_ptr<StepLink> link = channel_->tells() ? std::move(request.link) : nullptr;
  if (link != nullptr) wire.link = link->own;
  Result<OutgoingTensors> feeds = OutgoingTensors::Make(std::move(request.feeds));
  if (!feeds.ok()) return done(feeds.status());
  wire.tensors = feeds->heads();
  const Result<std::string> meta = Encode(wire);
  if (!meta.ok()) return done(meta.status());
  const auto shared = std::make_shared<StepDone>(std::move(done));
  auto call = std::make_unique<TensorCall>(
      *std::move(feeds), fmt::format("part {} of step {:x}{}", wire.part, wire.step, InTask()),
      [shared](Result<std::vector<Tensor>> fetches, bool) { (*shared)(std::move(fetches)); });
  call->SetForgotten(std::move(request.forgotten));
  call->SetLink(link);
  const Bodies bodies = call->sent().bodies();
  const uint64_t number = channel_->Start(std::move(call), wire.method, *meta, bodies, 0, request.deadline);
  if (link == nullptr) return;
  link->send = [channel = channel_, number](std::string_view key, const runtime::Message& message) {
    const Result<SentValue> value = EncodeValue(key, message);
    return value.ok() && channel->Tell(number, Method::kSendTensor, value->meta, value->tensors.bodies());
  };
}

Result<trace::StepTrace> RemoteWorker::TakeTrace(uint64_t session, uint64_t step, Clock::time_point deadline) {
  WireRequest wire;
  wire.method = Method::kTakeTrace;
  wire.session = session;
  wire.step = step;
  WEIR_ASSIGN(const std::string meta, Encode(wire));
  Awaited<Result<std::vector<Tensor>>> came;
  auto call = std::make_unique<TensorCall>(
      OutgoingTensors(), fmt::format("the trace of step {:x} in {}", step, task_.ToString()),
      [&came](Result<std::vector<Tensor>> values, bool) { came.Set(std::move(values)); });
  channel_->Start(std::move(call), wire.method, meta, {}, WEIR_CALL_IF_CONNECTED, deadline);
  WEIR_ASSIGN(const std::vector<Tensor> values, came.Wait());
  if (values.size() != 1 || values[0].dtype() != DType::kUint8) return Internal("what came is no trace");
  return DecodeTrace({reinterpret_cast<const char*>(values[0].raw()), values[0].bytes()});
}

void RemoteWorker::RecvTensor(const TransferRequest& request, runtime::Rendezvous::Received received) {
  WireRequest wire;
  wire.method = Method::kRecvTensor;
  wire.session = request.session;
  wire.step = request.step;
  wire.key = request.key;
  const Result<std::string> meta = Encode(wire);
  if (!meta.ok()) return received(meta.status());
  const auto shared = std::make_shared<runtime::Rendezvous::Received>(std::move(received));
  const auto ended = [shared](Result<std::vector<Tensor>> values, bool dead) {
    if (!values.ok()) return (*shared)(values.status());
    if (dead) return (*shared)(runtime::Message{Tensor(), true});
    if (values->size() != 1) return (*shared)(Internal("{} values came for one key", values->size()));
    (*shared)(runtime::Message{std::move(values->front()), false});
  };
  std::string waits = fmt::format("'{}' of step {:x}", wire.key, wire.step);
  auto call = std::make_unique<TensorCall>(OutgoingTensors(), std::move(waits), ended);
  channel_->Start(std::move(call), wire.method, *meta, {}, 0, Clock::time_point::max());
}

void RemoteWorker::SendTensor(const TransferRequest& request, runtime::Message message, SendDone done) {
  WireRequest wire;
  wire.method = Method::kSendTensor;
  wire.session = request.session;
  wire.step = request.step;
  wire.key = request.key;
  wire.dead = message.dead;
  std::vector<Tensor> values;
  if (!message.dead) values.push_back(std::move(message.value));
  Result<OutgoingTensors> sent = OutgoingTensors::Make(std::move(values));
  if (!sent.ok()) return done(sent.status());
  wire.tensors = sent->heads();
  const Result<std::string> meta = Encode(wire);
  if (!meta.ok()) return done(meta.status());
  auto call = std::make_unique<TensorCall>(
      *std::move(sent), fmt::format("'{}' of step {:x}, sent", wire.key, wire.step),
      [done = std::move(done)](const Result<std::vector<Tensor>>& reply, bool) { done(reply.status()); });
  const Bodies bodies = call->sent().bodies();
  channel_->Start(std::move(call), wire.method, *meta, bodies, WEIR_CALL_IF_CONNECTED, Clock::time_point::max());
}

std::shared_ptr<const void> RemoteWorker::HoldSession(uint64_t session, std::function<void(const Status&)> ended) {
  WireRequest request;
  request.method = Method::kHoldSession;
  request.session = session;
  const Result<std::string> meta = Encode(request);
  if (!meta.ok()) {
    ended(meta.status());
    return nullptr;
  }
  auto call = std::make_unique<PlainCall>(
      std::string(), [ended = std::move(ended)](const Result<WireReply>& reply) { ended(reply.status()); });
  const uint64_t number = channel_->Start(std::move(call), request.method, *meta, {}, WEIR_CALL_IF_CONNECTED,
                                          Clock::time_point::max());
  return {channel_.get(), [channel = channel_, number](const void*) { channel->Cancel(number); }};
}

Result<std::chrono::nanoseconds> RemoteWorker::Measure(uint64_t bytes, Clock::time_point deadline) {
  WireRequest request;
  request.method = Method::kMeasure;
  WEIR_ASSIGN(const std::string meta, Encode(request));
  Awaited<Status> ended;
  const std::string sent(bytes, '\0');
  auto call = std::make_unique<EchoCall>(bytes, [&ended](const Status& status) { ended.Set(status); });
  const Clock::time_point begin = Clock::now();
  channel_->Start(std::move(call), request.method, meta, BodyOf(sent), 0, deadline);
  WEIR_TRY(ended.Wait());
  return std::chrono::nanoseconds(Clock::now() - begin);
}

Status RemoteWorker::CancelStep(uint64_t session, uint64_t step, const Status& why) {
  WireRequest request;
  request.method = Method::kCancelStep;
  request.session = session;
  request.step = step;
  request.why = why;
  return Tell(request);
}

Status RemoteWorker::CleanupStep(uint64_t session, uint64_t step) {
  WireRequest request;
  request.method = Method::kCleanupStep;
  request.session = session;
  request.step = step;
  return Tell(request);
}

Status RemoteWorker::ResetContainers(const std::vector<std::string>& containers) {
  WireRequest request;
  request.method = Method::kResetContainers;
  request.containers = containers;
  return Ask(request, {}, 0, Clock::now() + limit_).status();
}

Result<std::vector<Alternate>> RemoteWorker::GetTransports(Clock::time_point deadline) {
  WireRequest request;
  request.method = Method::kGetTransports;
  WEIR_ASSIGN(WireReply reply, Ask(request, {}, WEIR_CALL_WAIT, deadline));
  return std::move(reply.alternates);
}

void RemoteMaster::Call(MasterCall call, MasterDone done) {
  WireRequest wire;
  wire.method = Method::kMaster;
  wire.master_method = call.method;
  const Result<std::string> meta = Encode(wire);
  if (!meta.ok()) return done(meta.status());
  Clock::time_point deadline = call.deadline;
  const bool begins = call.method == "CreateSession" || call.method == kRegisterRank;
  if (begins) deadline = std::min(deadline, Clock::now() + kStartLimit);
  const auto canceller = std::make_shared<PassedCall::Canceller>();
  canceller->channel = channel_;
  auto passed = std::make_unique<PassedCall>(std::move(call), std::move(done));
  if (!passed->Watch(canceller)) return passed->Fail(passed->call().cancellation->status());
  const Bodies bodies = BodyOf(passed->call().request);
  canceller->Started(
      channel_->Start(std::move(passed), wire.method, *meta, bodies, begins ? uint32_t{WEIR_CALL_WAIT} : 0, deadline));
}

}  // namespace weir::cluster
