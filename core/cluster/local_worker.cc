#include "core/cluster/local_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "core/base/errors.h"
#include "core/cluster/at_most_once.h"
#include "core/cluster/private_resources.h"
#include "core/cluster/short_runs.h"
#include "core/cluster/step_rendezvous.h"
#include "core/cluster/step_traces.h"
#include "core/device/device_name.h"
#include "core/graph/graph_def.h"
#include "core/graph/part.h"
#include "core/runtime/blocking_pool.h"
#include "core/runtime/cancellation.h"
#include "core/runtime/node_resources.h"
#include "core/session/memory_report.h"
#include "core/session/session.h"
#include "core/tensor/buffer.h"

namespace weir::cluster {

/// A part with its plans.
struct LocalWorker::Part {
  std::unique_ptr<graph::Definition> graph;
  std::unique_ptr<session::Session> session;
  session::CallableHandle call = 0;  // 0: nothing runs
  PartHandle handle;
  mutable ShortRuns runs;
  std::vector<size_t> fed;  // by fetch: the feed that it is, or kComputed
  static constexpr size_t kComputed = SIZE_MAX;
};

/// A step in this task. Cancelling it ends its ops and its receives.
struct LocalWorker::Step {
  explicit Step(std::shared_ptr<StepRendezvous> values) : rendezvous(std::move(values)) {}
  void Cancel(const Status& why) {
    cancellation.Cancel(why);
    rendezvous->Abort(why);
  }
  const std::shared_ptr<StepRendezvous> rendezvous;
  runtime::Cancellation cancellation;
  trace::StepTrace trace;  // protected by the worker's mutex; empty unless its part is traced and has ended
};

/// Protected by the worker's mutex, apart from what is const.
struct LocalWorker::OwnSession {
  explicit OwnSession(const WorkerSessionSpec& given) : spec(given) {}
  /// Steps that have ended, so that a late message does not revive them.
  static constexpr size_t kMostEnded = 1000;
  bool HasEnded(uint64_t step) const { return ended.contains(step); }
  void End(uint64_t step) {
    steps.erase(step);
    if (!ended.insert(step).second) return;
    ended_order.push_back(step);
    if (ended_order.size() <= kMostEnded) return;
    ended.erase(ended_order.front());
    ended_order.pop_front();
  }

  const WorkerSessionSpec spec;
  std::shared_ptr<runtime::ResourceScope> resources;
  const std::shared_ptr<runtime::NodeResources> node_resources = std::make_shared<runtime::NodeResources>();
  std::string private_container;  // of resources that belong to one node of this session
  std::map<uint64_t, std::shared_ptr<Part>> parts;
  uint64_t next_part = 1;
  std::map<uint64_t, std::shared_ptr<Step>> steps;
  std::set<uint64_t> ended;
  std::deque<uint64_t> ended_order;
  AtMostOnce<Status> requests;
};

/// A part that runs.
struct LocalWorker::Call {
  std::shared_ptr<LocalWorker> worker;
  std::shared_ptr<OwnSession> session;
  std::shared_ptr<Part> part;
  std::shared_ptr<Step> step;
  StepRequest request;
  StepDone done;
};

namespace {

Status NoSession(uint64_t session, const TaskName& task) {
  return Aborted("Session {:016x} is not found in {}. Possibly, this worker has restarted.", session, task.ToString());
}

/// Gives the nodes on devices of `from` those of `to`. The attributes of transfers keep their names.
void Rename(const TaskName& from, const TaskName& to, graph::Definition& graph) {
  for (graph::NodeId id = 0; id < graph.num_nodes(); ++id) {
    Result<device::DeviceName> name = device::ParseDeviceName(graph.node(id).device());
    if (!name.ok() || name->job != from.job || name->task != from.index) continue;
    name->job = to.job;
    name->task = to.index;
    graph.SetDevice(id, name->ToString());
  }
}

session::SessionOptions OptionsOf(const WorkerSessionSpec& spec) {
  session::SessionOptions options;
  options.allow_soft_placement = spec.allow_soft_placement;
  options.constant_folding = spec.constant_folding;
  options.common_subexpressions = spec.common_subexpressions;
  options.fusion = spec.fusion;
  options.deterministic = spec.deterministic;
  options.inter_op_parallelism_threads = spec.inter_op;
  options.intra_op_parallelism_threads = spec.intra_op;
  options.explain = session::SessionOptions::Explain::kNone;
  options.placement_log = [](const std::string&) {};
  return options;
}

}  // namespace

Result<std::shared_ptr<LocalWorker>> LocalWorker::Make(Options options) {
  for (const auto& device : options.runtime->plugins->devices().all()) {
    WEIR_ASSIGN(const TaskName task, TaskOfDevice(device->name()));
    if (task == options.task) continue;
    return InvalidArgument("the runtime of {} has the device {}", options.task.ToString(), device->name());
  }
  return std::shared_ptr<LocalWorker>(new LocalWorker(std::move(options)));
}

LocalWorker::LocalWorker(Options options) : options_(std::move(options)), incarnation_(RandomId()) {}

LocalWorker::~LocalWorker() { Close(); }

void LocalWorker::Close() {
  std::map<uint64_t, std::shared_ptr<OwnSession>> gone;
  std::vector<std::shared_ptr<Step>> steps;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = draining_ = true;
    gone.swap(sessions_);
    for (const auto& [handle, session] : gone) {
      for (const auto& [id, step] : session->steps) steps.push_back(step);
      session->steps.clear();
    }
  }
  for (const auto& step : steps) step->Cancel(Unavailable("{} has been closed", options_.task.ToString()));
}

Result<WorkerStatus> LocalWorker::GetStatus(Clock::time_point) {
  WorkerStatus status{options_.task, incarnation_, {}, false, WallClockMicros()};
  for (const auto& device : options_.runtime->plugins->devices().all()) {
    status.devices.push_back(device::Describe(*device));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) return Unavailable("{} has been closed", options_.task.ToString());
  status.draining = draining_;
  return status;
}

Result<std::vector<kernel::KernelDescription>> LocalWorker::GetKernels(Clock::time_point) {
  std::vector<std::string> platforms;
  for (const auto& device : own_devices()->all()) platforms.push_back(device->info().platform);
  return kernel::DescribeKernels(options_.runtime->plugins->kernels(), platforms);
}

Result<std::shared_ptr<LocalWorker::OwnSession>> LocalWorker::FindSession(uint64_t session) const {
  const auto found = sessions_.find(session);
  if (closed_) return Unavailable("{} has been closed", options_.task.ToString());
  if (found == sessions_.end()) return NoSession(session, options_.task);
  return found->second;
}

Status LocalWorker::CreateSession(const WorkerSessionSpec& spec, Clock::time_point) {
  if (spec.incarnation != incarnation_) {
    return Aborted("{} has the incarnation {:016x}, the master expects {:016x}: it was restarted",
                   options_.task.ToString(), incarnation_, spec.incarnation);
  }
  auto made = std::make_shared<OwnSession>(spec);
  made->resources = spec.isolate_state ? std::make_shared<runtime::ResourceScope>() : resources_;
  made->private_container = fmt::format("session:{:016x}", spec.handle);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) return Unavailable("{} has been closed", options_.task.ToString());
  if (draining_) return FailedPrecondition("{} is draining and takes no sessions", options_.task.ToString());
  if (sessions_.emplace(spec.handle, std::move(made)).second) return Status();
  return AlreadyExists("{} has a session {:016x} already", options_.task.ToString(), spec.handle);
}

Status LocalWorker::DeleteSession(uint64_t session) {
  std::shared_ptr<OwnSession> gone;
  std::vector<std::shared_ptr<Step>> steps;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    WEIR_ASSIGN(gone, FindSession(session));
    sessions_.erase(session);
    for (const auto& [id, step] : gone->steps) steps.push_back(step);
    gone->steps.clear();
  }
  for (const auto& step : steps) {
    step->Cancel(Cancelled("Step was cancelled by an explicit call to `Session::Close()`."));
  }
  gone->resources->Clear(gone->private_container);
  return Status();
}

Result<std::shared_ptr<LocalWorker::Part>> LocalWorker::MakePart(OwnSession& session, const std::string& graph) const {
  auto part = std::make_shared<Part>();
  graph::ImportOptions import;
  import.allow_internal_names = true;
  WEIR_ASSIGN(graph::Definition parsed, graph::ParseGraph(graph, *options_.runtime->ops, import));
  if (options_.session == nullptr) KeepPrivate(session.private_container, parsed);
  if (!session.spec.known_as.job.empty()) Rename(session.spec.known_as, options_.task, parsed);
  part->graph = std::make_unique<graph::Definition>(std::move(parsed));
  WEIR_ASSIGN(const graph::PartRequest request, graph::RequestOfPart(*part->graph));
  part->handle.feeds = request.feeds;
  part->handle.fetches = request.fetches;
  session::CallableOptions call;
  std::map<graph::Endpoint, size_t> fed;
  for (const graph::FeedSpec& feed : request.request.feeds) {
    fed.emplace(feed.endpoint, fed.size());
    call.feeds.push_back(graph::FullEndpointName(*part->graph, feed.endpoint));
  }
  for (const graph::Endpoint& fetch : request.request.fetches) {
    const auto found = fed.find(fetch);
    part->fed.push_back(found == fed.end() ? Part::kComputed : found->second);
    if (found == fed.end()) call.fetches.push_back(graph::FullEndpointName(*part->graph, fetch));
  }
  for (const graph::NodeId target : request.request.targets) {
    call.targets.push_back(part->graph->node(target).name());
  }
  session::SessionOptions options = options_.session != nullptr ? *options_.session : OptionsOf(session.spec);
  if (options_.session == nullptr) {
    options.resources = session.resources;
    options.node_resources = session.node_resources;
  }
  WEIR_ASSIGN(part->session, session::Session::Make(options_.runtime, *part->graph, std::move(options)));
  if (call.fetches.empty() && call.targets.empty()) return part;
  WEIR_ASSIGN(part->call, part->session->MakeCallable(call));
  return part;
}

Result<PartHandle> LocalWorker::RegisterPart(uint64_t session, const std::string& graph, Clock::time_point) {
  std::shared_ptr<OwnSession> of;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    WEIR_ASSIGN(of, FindSession(session));
  }
  WEIR_ASSIGN(const std::shared_ptr<Part> part, MakePart(*of, graph));
  const std::lock_guard<std::mutex> lock(mutex_);
  part->handle.id = of->next_part++;
  of->parts.emplace(part->handle.id, part);
  return part->handle;
}

Status LocalWorker::DeregisterPart(uint64_t session, uint64_t part) {
  std::shared_ptr<Part> gone;  // freed without the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  WEIR_ASSIGN(const std::shared_ptr<OwnSession> of, FindSession(session));
  const auto found = of->parts.find(part);
  if (found == of->parts.end()) return Aborted("Graph handle {} is not found in {}", part, options_.task.ToString());
  gone = std::move(found->second);
  of->parts.erase(found);
  return Status();
}

Result<std::shared_ptr<LocalWorker::Step>> LocalWorker::FindStep(uint64_t session, uint64_t step) {
  WEIR_ASSIGN(const std::shared_ptr<OwnSession> of, FindSession(session));
  if (of->HasEnded(step)) return Aborted("step {:x} has ended in {}", step, options_.task.ToString());
  std::shared_ptr<Step>& found = of->steps[step];
  if (found) return found;
  const WorkerSessionSpec& spec = of->spec;
  const auto foreign = spec.known_as.job.empty() ? StepRendezvous::Foreign::kAsked : StepRendezvous::Foreign::kSent;
  found = std::make_shared<Step>(
      std::make_shared<StepRendezvous>(NameIn(spec), options_.peers.lock(), session, step, foreign));
  return found;
}

Result<std::unique_ptr<LocalWorker::Call>> LocalWorker::Admit(StepRequest& request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  WEIR_ASSIGN(std::shared_ptr<OwnSession> session, FindSession(request.session));
  // A lost reply is not kept: its values may be large, and a master that misses one ends the step.
  Status reply;
  if (session->requests.Begin(request.request, Clock::now(), &reply) != AtMostOnce<Status>::Verdict::kRun) {
    if (!reply.ok()) return reply;
    return Aborted("The same RunStep request was received twice by {}: request {} of step {:x}",
                   options_.task.ToString(), request.request, request.step);
  }
  auto call = std::make_unique<Call>();
  const auto admit = [&]() -> Status {
    if (draining_) return FailedPrecondition("{} is draining and runs no new steps", options_.task.ToString());
    const auto part = session->parts.find(request.part);
    if (part == session->parts.end()) {
      return Aborted("Graph handle {} is not found in {}", request.part, options_.task.ToString());
    }
    if (request.feeds.size() != part->second->handle.feeds.size()) {
      return InvalidArgument("the part has {} feeds, {} were given", part->second->handle.feeds.size(),
                             request.feeds.size());
    }
    call->part = part->second;
    WEIR_ASSIGN(call->step, FindStep(request.session, request.step));
    for (std::shared_ptr<const StepLink>& link : request.links) call->step->rendezvous->Link(std::move(link));
    return Status();
  };
  if (Status status = admit(); !status.ok()) {
    session->requests.End(request.request, status, Clock::now());
    return status;
  }
  ++running_;
  call->session = std::move(session);
  return call;
}

std::string LocalWorker::OtherHolders(const Part& but) const {
  std::vector<std::shared_ptr<Part>> others;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [handle, session] : sessions_) {
      for (const auto& [id, part] : session->parts) {
        if (part.get() != &but) others.push_back(part);
      }
    }
  }
  session::MemoryReport all;
  for (const std::shared_ptr<Part>& part : others) {
    session::MemoryReport report = part->session->ReportMemory();
    for (session::MemoryReport::Holder& holder : report.holders) {
      if (!holder.what.starts_with("variable ")) all.Hold(std::move(holder));  // parts share variables
    }
  }
  constexpr size_t kMostOtherHolders = 10;
  std::string text;
  for (size_t i = 0; i < std::min(kMostOtherHolders, all.holders.size()); ++i) {
    const session::MemoryReport::Holder& holder = all.holders[i];
    text += fmt::format("\n{:>14} bytes  {}  on {}", holder.bytes, holder.what, holder.device);
  }
  return text.empty() ? text : fmt::format("\nOther steps in {}:", options_.task.ToString()) + text;
}

session::MemoryReport LocalWorker::ReportMemory() const {
  std::vector<std::shared_ptr<Part>> parts;
  std::vector<std::shared_ptr<runtime::ResourceScope>> scopes = {resources_};
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [handle, session] : sessions_) {
      if (session->resources != resources_) scopes.push_back(session->resources);
      for (const auto& [id, part] : session->parts) parts.push_back(part);
    }
  }
  session::MemoryReport all = session::MakeMemoryReport(options_.runtime->plugins->devices());
  for (const auto& scope : scopes) all.AddVariables(*scope);
  for (const std::shared_ptr<Part>& part : parts) {
    session::MemoryReport report = part->session->ReportMemory();
    for (session::MemoryReport::Holder& holder : report.holders) {
      if (!holder.what.starts_with("variable ")) all.Hold(std::move(holder));  // parts share variables
    }
    for (size_t i = 0; i < std::min(all.devices.size(), report.devices.size()); ++i) {
      all.devices[i].steps += report.devices[i].steps;
    }
  }
  return all;
}

/// True if nobody needs the step in this task any more.
bool LocalWorker::Forgets(const Call& call, const Status& status) {
  // A master that the task cannot reach pushes values, perhaps after the end of the part.
  const bool foreign = !call.session->spec.known_as.job.empty();
  return status.ok() && !call.request.trace && !foreign && call.step->rendezvous->Empty();
}

void LocalWorker::RunCall(std::unique_ptr<Call> call) {
  const Part& part = *call->part;
  session::RunOptions options;
  if (part.runs.AreShort()) options.inter_op_thread_pool = -1;  // another thread is not worth it within the part either
  std::optional<ShortRuns::Timed> timed(std::in_place, part.runs);
  options.rendezvous = call->step->rendezvous.get();
  options.cancellation = &call->step->cancellation;
  if (call->request.deadline != Clock::time_point::max()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(call->request.deadline - Clock::now());
    options.timeout_in_ms = std::max<int64_t>(left.count(), 1);
  }
  std::vector<Tensor> computed;
  session::RunReport report;
  Status status;
  if (part.call != 0) {
    options.trace = call->request.trace || recorder_.on();
    status = part.session->RunCallable(part.call, call->request.feeds, &computed, options,
                                       options.trace ? &report : nullptr);
  }
  if (recorder_.on()) {
    trace::StepTrace recorded = report.trace;
    recorded.step_id = static_cast<int64_t>(call->request.step >> 1);  // any number that tells steps apart
    recorder_.Add(std::move(recorded));
  }
  if (!call->request.trace) report.trace = {};
  if (OutOfMemory(status)) status = status.Append(OtherHolders(part));
  std::vector<Tensor> fetched;
  for (size_t i = 0, next = 0; status.ok() && i < part.fed.size(); ++i) {
    fetched.push_back(part.fed[i] == Part::kComputed ? std::move(computed[next++]) : call->request.feeds[part.fed[i]]);
  }
  // What waits for this part here or elsewhere ends with it.
  if (!status.ok()) call->step->rendezvous->Abort(Derived(FromTask(status, NameIn(call->session->spec))));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    call->session->requests.End(call->request.request, status, Clock::now());
    call->step->trace = std::move(report.trace);
    const bool forgets = call->request.forgotten != nullptr && Forgets(*call, status);
    if (call->request.alone || forgets) call->session->End(call->request.step);
    if (forgets) call->request.forgotten->store(true, std::memory_order_relaxed);
    if (--running_ == 0) idle_.notify_all();
  }
  timed.reset();
  StepDone done = std::move(call->done);
  call.reset();
  done(status.ok() ? Result<std::vector<Tensor>>(std::move(fetched)) : Result<std::vector<Tensor>>(std::move(status)));
}

bool LocalWorker::IsShort(uint64_t session, uint64_t part) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto of = sessions_.find(session);
  if (of == sessions_.end()) return false;
  const auto found = of->second->parts.find(part);
  return found != of->second->parts.end() && found->second->runs.AreShort();
}

void LocalWorker::RunStep(StepRequest request, StepDone done) {
  Result<std::unique_ptr<Call>> call = Admit(request);
  if (!call.ok()) return done(call.status());
  (*call)->worker = std::static_pointer_cast<LocalWorker>(shared_from_this());
  (*call)->request = std::move(request);
  (*call)->done = std::move(done);
  if ((*call)->request.on_this_thread) return RunCall(*std::move(call));
  Call* const started = (*call).release();
  const auto run = [](void* arg) {
    std::unique_ptr<Call> own(static_cast<Call*>(arg));
    const std::shared_ptr<LocalWorker> worker = own->worker;
    worker->RunCall(std::move(own));
  };
  const Status status = runtime::RunBlocking(run, started);
  if (status.ok()) return;
  const std::unique_ptr<Call> failed(started);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--running_ == 0) idle_.notify_all();
    failed->session->requests.End(failed->request.request, status, Clock::now());
  }
  failed->done(status);
}

Result<trace::StepTrace> LocalWorker::TakeTrace(uint64_t session, uint64_t step, Clock::time_point) {
  const std::lock_guard<std::mutex> lock(mutex_);
  WEIR_ASSIGN(const std::shared_ptr<Step> found, FindStep(session, step));
  return std::exchange(found->trace, {});
}

void LocalWorker::RecvTensor(const TransferRequest& request, runtime::Rendezvous::Received received) {
  const Result<KeySender> sender = SenderOfKey(request.key);
  if (!sender.ok()) return received(sender.status());
  Result<std::shared_ptr<Step>> step = Aborted("none");
  bool own = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto session = sessions_.find(request.session);
    own = sender->task == (session == sessions_.end() ? options_.task : NameIn(session->second->spec));
    if (own && sender->incarnation == incarnation_) step = FindStep(request.session, request.step);
  }
  if (!own || sender->incarnation != incarnation_) {
    return received(
        Aborted("RecvTensor expects a different device incarnation: {} vs. {}. Your worker job (\"{}\") was probably "
                "restarted. Check your worker job for the reason why it was restarted.",
                sender->incarnation, incarnation_, options_.task.ToString()));
  }
  if (!step.ok()) return received(step.status());
  (*step)->rendezvous->RecvAsync(request.key, std::move(received));
}

void LocalWorker::SendTensor(const TransferRequest& request, runtime::Message message, SendDone done) {
  Result<std::shared_ptr<Step>> step = Aborted("none");
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto session = sessions_.find(request.session);
    step = session != sessions_.end() && session->second->spec.known_as.job.empty()
               ? FailedPrecondition("{} asks for the values of its cluster: '{}' was sent", options_.task.ToString(),
                                    request.key)
               : FindStep(request.session, request.step);
  }
  done(step.ok() ? (*step)->rendezvous->Take(request.key, std::move(message)) : step.status());
}

Status LocalWorker::TakeValue(const TransferRequest& request, runtime::Message message) {
  std::shared_ptr<Step> step;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    WEIR_ASSIGN(step, FindStep(request.session, request.step));
  }
  return step->rendezvous->Take(request.key, std::move(message));
}

const TaskName& LocalWorker::NameIn(const WorkerSessionSpec& spec) const {
  return spec.known_as.job.empty() ? options_.task : spec.known_as;
}

Status LocalWorker::CancelStep(uint64_t session, uint64_t step, const Status& why) {
  std::shared_ptr<Step> found;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    WEIR_ASSIGN(found, FindStep(session, step));
  }
  found->Cancel(why);
  return Status();
}

Status LocalWorker::CleanupStep(uint64_t session, uint64_t step) {
  std::shared_ptr<Step> gone;  // freed without the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  WEIR_ASSIGN(const std::shared_ptr<OwnSession> of, FindSession(session));
  if (const auto found = of->steps.find(step); found != of->steps.end()) gone = found->second;
  of->End(step);
  return Status();
}

Status LocalWorker::ResetContainers(const std::vector<std::string>& containers) {
  if (containers.empty()) resources_->Clear(runtime::kDefaultContainer);
  for (const std::string& container : containers) {
    resources_->Clear(container == options_.task.job ? runtime::kDefaultContainer : container);
  }
  return Status();
}

Status LocalWorker::Drain(Clock::time_point deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  draining_ = true;
  if (idle_.wait_until(lock, deadline, [this] { return running_ == 0; })) return Status();
  return DeadlineExceeded("{} parts of steps are still running in {}", running_, options_.task.ToString());
}

LocalWorker::Counts LocalWorker::counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  Counts counts{sessions_.size(), 0, 0, running_};
  for (const auto& [handle, session] : sessions_) {
    counts.parts += session->parts.size();
    counts.steps += session->steps.size();
  }
  return counts;
}

}  // namespace weir::cluster
