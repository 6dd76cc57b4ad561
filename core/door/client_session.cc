#include "core/door/client_session.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/base/errors.h"
#include "core/cluster/private_resources.h"
#include "core/cluster/worker.h"
#include "core/graph/graph_def.h"
#include "core/proto/parse.h"
#include "core/session/resolve.h"
#include "core/session/run_metadata.h"
#include "core/session/tasks.h"
#include "core/tensor/tensor_proto.h"
#include "weir/proto/graph.pb.h"
#include "weir/proto/master.pb.h"

namespace weir::door {
namespace {

constexpr size_t kMostPartialRuns = 4096;

template <class Repeated>
std::vector<std::string> Strings(const Repeated& repeated) {
  return {repeated.begin(), repeated.end()};
}

/// TensorFlow's error for nodes that a GraphDef adds twice, else `status`.
Status OfRepeatedNode(std::string_view bytes, const graph::Definition& graph, Status status) {
  tf::GraphDef message;
  if (!proto::ParseEither(bytes, "GraphDef", message).ok()) return status;
  for (const tf::NodeDef& node : message.node()) {
    if (graph.Find(node.name()) == nullptr) continue;
    return InvalidArgument(
        "GraphDef argument to Extend includes node '{}', which was created by a previous call to Create or Extend in "
        "this session.",
        node.name());
  }
  return status;
}

/// Sets what ends a step: its caller, the caller's deadline, or a limit of its options. A caller whose deadline is that
/// limit watches the time itself; one that leaves time for the reply is told what the step waited for.
class StepWatch {
 public:
  explicit StepWatch(const StepEnd& end) : cancellation_(end.caller), deadline_(end.deadline) {
    if (end.deadline == std::chrono::steady_clock::time_point::max()) return;
    limited_ = true;
    cancellation_.CancelAt(end.deadline, DeadlineExceeded("Deadline Exceeded"));
  }
  void Apply(int64_t usual_limit_ms, session::RunOptions& options) {
    options.cancellation = &cancellation_;
    const bool early = options.timeout_in_ms > 0 && TimeFor(options.timeout_in_ms) + kReplyTime <= deadline_;
    if (limited_ && !early) options.timeout_in_ms = 0;
    else if (options.timeout_in_ms <= 0) options.timeout_in_ms = usual_limit_ms;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kReplyTime{500};
  /// When a step that begins now reaches its limit; no later than in a year.
  static Clock::time_point TimeFor(int64_t limit_ms) {
    constexpr int64_t kMostMs = int64_t{1000} * 3600 * 24 * 365;
    return Clock::now() + std::chrono::milliseconds(std::min(limit_ms, kMostMs));
  }

  runtime::Cancellation cancellation_;
  const Clock::time_point deadline_;
  bool limited_ = false;
};

/// A server sends what is fetched: an error of the node "_retval_x_0_2", which fetches "x:0", names "_send_x_0".
Status WithSend(const Status& status) {
  constexpr std::string_view kFetch = "{{node _retval_";
  const size_t begin = status.message().find(kFetch);
  if (begin == std::string::npos) return status;
  std::string text = status.message();
  const size_t end = text.find("}}", begin), last = text.rfind('_', end);
  if (end == std::string::npos || last <= begin + kFetch.size()) return status;
  text.erase(last, end - last);
  text.replace(begin, kFetch.size(), "{{node _send_");
  return Status(status.code(), std::move(text)).WithNode(status.node(), status.where());
}

/// True for what an op of TensorFlow's says, and weir before any runs.
bool FoundEarly(const Status& status) { return status.message().starts_with("You must feed a value for placeholder"); }

}  // namespace

/// Keeps the current generation from growing in place.
class ClientSession::Use {
 public:
  static Result<Use> Begin(ClientSession& of) {
    const std::lock_guard<std::mutex> lock(of.mutex_);
    return Begin(of, of.current_);
  }
  /// With the mutex held.
  static Result<Use> Begin(ClientSession& of, std::shared_ptr<Generation> generation) {
    if (of.closed_) return FailedPrecondition("Session is closed.");
    return Use(of, std::move(generation));
  }
  Use(Use&&) = default;
  Use& operator=(Use&&) = delete;
  ~Use() {
    if (generation_ == nullptr) return;
    const std::lock_guard<std::mutex> lock(of_->mutex_);
    --generation_->users;
  }
  const std::shared_ptr<Generation>& generation() const { return generation_; }
  session::Session& session() const { return *generation_->session; }
  const graph::Definition& graph() const { return *generation_->graph; }

 private:
  Use(ClientSession& of, std::shared_ptr<Generation> generation) : of_(&of), generation_(std::move(generation)) {
    ++generation_->users;
  }
  ClientSession* of_;
  std::shared_ptr<Generation> generation_;
};

struct ClientSession::Callable {
  std::shared_ptr<Generation> generation;
  session::CallableHandle handle = 0;
  session::RunOptions options;
};

struct ClientSession::PartialRun {
  std::shared_ptr<Generation> generation;
  std::string handle;
  size_t left = 0;  // feeds and fetches that did not come yet; under mutex_
};

ClientSession::ClientSession(Setup setup) : setup_(std::move(setup)) {}

ClientSession::~ClientSession() {
  Close();
  callables_.clear();
  partial_runs_.clear();
  current_ = nullptr;
  if (!setup_.private_container.empty()) setup_.options.resources->Clear(setup_.private_container);
}

Result<std::shared_ptr<ClientSession>> ClientSession::Open(Setup setup, std::string_view graph) {
  std::shared_ptr<ClientSession> made(new ClientSession(std::move(setup)));
  WEIR_ASSIGN(made->current_, made->MakeGeneration({}, graph));
  return made;
}

Status ClientSession::Import(std::string_view graph, graph::Definition& into) const {
  graph::ImportOptions options;
  options.allow_internal_names = true;
  options.allow_unknown_ops = true;  // of nodes that may never run; a step that needs them fails
  options.max_expansion_bytes = setup_.expansion_bytes;
  const graph::NodeId first = into.num_nodes();
  if (Status status = graph::ImportGraphDef(graph, options, into); !status.ok()) {
    return first == 0 ? status : OfRepeatedNode(graph, into, std::move(status));
  }
  if (!setup_.private_container.empty()) cluster::KeepPrivate(setup_.private_container, into, first);
  return Status();
}

Result<std::shared_ptr<ClientSession::Generation>> ClientSession::MakeGeneration(std::string_view earlier,
                                                                                 std::string_view graph) const {
  auto made = std::make_shared<Generation>();
  made->graph = std::make_unique<graph::Definition>(*setup_.runtime->ops);
  if (!earlier.empty()) WEIR_TRY(Import(earlier, *made->graph));
  WEIR_TRY(Import(graph, *made->graph));
  WEIR_ASSIGN(made->session, session::Session::Make(setup_.runtime, *made->graph, setup_.options));
  return made;
}

Result<int64_t> ClientSession::Extend(std::string_view graph, int64_t version) {
  const std::lock_guard<std::mutex> growing(growing_);
  if (version != version_) return Aborted("Current version is {} but caller expected {}.", version_, version);
  WEIR_TRY(Grow(graph));
  const std::lock_guard<std::mutex> lock(mutex_);
  return ++version_;
}

Status ClientSession::Grow(std::string_view graph) {
  std::shared_ptr<Generation> old;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return FailedPrecondition("Session is closed.");
    if (current_->users == 0) return Import(graph, *current_->graph);
    old = current_;
  }
  // A step, such as one that waits for a queue, reads the graph: it keeps it, and later ones get another.
  WEIR_ASSIGN(const std::string earlier, graph::ExportGraphDef(*old->graph));
  WEIR_ASSIGN(std::shared_ptr<Generation> made, MakeGeneration(earlier, graph));
  for (const session::PlacedNode& placed : old->session->ReportPlacement()) {
    const graph::Node* const node = made->graph->Find(placed.node);
    if (node != nullptr && node->device().empty() && node->op().stateful) {
      made->graph->SetDevice(node->id(), placed.device);  // where its state is
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) return FailedPrecondition("Session is closed.");
  earlier_.push_back(old);
  std::erase_if(earlier_, [](const std::weak_ptr<Generation>& each) { return each.expired(); });
  current_ = std::move(made);
  return Status();
}

Status ClientSession::OfStep(const Status& status) const {
  const Status sent = WithSend(status);
  if (status.node().empty() || !(setup_.task || FoundEarly(status))) return sent;
  return cluster::FromTask(sent, setup_.task.value_or(setup_.master));
}

Status ClientSession::RunStep(const StepRequest& of, const StepEnd& end, StepResult& result) {
  const tf::RunStepRequest& request = *of.message;
  ExpansionBudget budget{setup_.expansion_bytes};
  std::vector<session::Feed> feeds;
  for (const auto& [name, tensor] : of.feeds) {
    WEIR_ASSIGN(Tensor value, ParseTensorProto(tensor, &budget));
    feeds.emplace_back(name, std::move(value));
  }
  session::RunOptions options;
  if (!request.options().empty()) {
    WEIR_ASSIGN(options, session::ParseRunOptions(request.options()));
  }
  const bool part = !request.partial_run_handle().empty();
  StepWatch watch(part ? StepEnd{end.deadline, nullptr} : end);
  watch.Apply(setup_.step_limit_ms, options);
  if (part) return RunPart(request, feeds, options, result);
  const std::vector<std::string> fetches = Strings(request.fetch()), targets = Strings(request.target());
  WEIR_ASSIGN(const Use use, Use::Begin(*this));
  session::RunReport report;
  const bool reported = options.trace || options.output_partition_graphs;
  Result<std::vector<Tensor>> fetched =
      use.session().Run(feeds, fetches, targets, options, reported ? &report : nullptr);
  if (reported) {
    WEIR_ASSIGN(result.metadata, session::RunMetadata(use.graph(), report));
  }
  if (!fetched.ok()) return OfStep(fetched.status());
  result.fetched = *std::move(fetched);
  return Status();
}

Result<std::string> ClientSession::SetUpPartialRun(const tf::PartialRunSetupRequest& request) {
  WEIR_ASSIGN(const Use use, Use::Begin(*this));
  auto run = std::make_shared<PartialRun>();
  run->generation = use.generation();
  const std::vector<std::string> feeds = Strings(request.feed()), fetches = Strings(request.fetch()),
                                 targets = Strings(request.target());
  WEIR_ASSIGN(run->handle, use.session().PRunSetup(feeds, fetches, targets));
  run->left = static_cast<size_t>(request.feed_size()) + static_cast<size_t>(request.fetch_size());
  const std::lock_guard<std::mutex> lock(mutex_);
  if (partial_runs_.size() >= kMostPartialRuns) partial_runs_.erase(partial_runs_.begin());
  const int64_t handle = ++next_partial_;
  partial_runs_.emplace(handle, std::move(run));
  return std::to_string(handle);
}

Status ClientSession::RunPart(const tf::RunStepRequest& request, const std::vector<session::Feed>& feeds,
                              const session::RunOptions& options, StepResult& result) {
  if (request.target_size() != 0) return InvalidArgument("The targets of a partial run are those of its setup.");
  const std::string& text = request.partial_run_handle();
  int64_t handle = 0;
  std::from_chars(text.data(), text.data() + text.size(), handle);
  std::shared_ptr<PartialRun> run;
  std::optional<Use> use;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = partial_runs_.find(handle);
    if (found == partial_runs_.end() || std::to_string(handle) != text) {
      return InvalidArgument("Must run PartialRunSetup before performing partial runs");
    }
    run = found->second;
    WEIR_ASSIGN(Use begun, Use::Begin(*this, run->generation));
    use.emplace(std::move(begun));
  }
  const std::vector<std::string> fetches = Strings(request.fetch());
  Result<std::vector<Tensor>> fetched = use->session().PRun(run->handle, feeds, fetches, options);
  if (!fetched.ok()) {
    // The session forgets a run that failed, but not one that asked for something impossible.
    if (!fetched.status().message().starts_with("Must run 'setup'")) return OfStep(fetched.status());
    const std::lock_guard<std::mutex> lock(mutex_);
    partial_runs_.erase(handle);
    return InvalidArgument("Must run PartialRunSetup before performing partial runs");
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    run->left -= std::min(run->left, feeds.size() + fetches.size());
    if (run->left == 0) partial_runs_.erase(handle);
  }
  result.fetched = *std::move(fetched);
  return Status();
}

Result<int64_t> ClientSession::MakeCallable(const tf::MakeCallableRequest& request) {
  const tf::CallableOptions& options = request.options();
  if (options.tensor_connection_size() != 0) {
    return Unimplemented("CallableOptions.tensor_connection: '{}' cannot be fed from another tensor",
                         options.tensor_connection(0).to_tensor());
  }
  session::CallableOptions names{Strings(options.feed()), Strings(options.fetch()), Strings(options.target())};
  auto made = std::make_shared<Callable>();
  if (!options.run_options().empty()) {
    WEIR_ASSIGN(made->options, session::ParseRunOptions(options.run_options()));
  }
  WEIR_ASSIGN(const Use use, Use::Begin(*this));
  // A server gives the errors of a run.
  WEIR_TRY(session::Resolve(use.graph(), session::Asking::kRun, names.feeds, names.fetches, names.targets).status());
  WEIR_ASSIGN(made->handle, use.session().MakeCallable(names));
  made->generation = use.generation();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (callables_.size() >= setup_.most_callables) {
    return ResourceExhausted("{} callables were made and not released", callables_.size());
  }
  callables_.emplace(next_callable_, std::move(made));
  return next_callable_++;
}

Status ClientSession::RunCallable(const CallableRequest& of, const StepEnd& end, StepResult& result) {
  const tf::RunCallableRequest& request = *of.message;
  std::shared_ptr<const Callable> callable;
  std::optional<Use> use;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = callables_.find(request.handle());
    if (found == callables_.end()) {
      const bool issued = request.handle() >= 0 && request.handle() < next_callable_;
      return issued ? InvalidArgument("Attempted to run callable after handle was released: {}", request.handle())
                    : InvalidArgument("No such callable handle: {}", request.handle());
    }
    callable = found->second;
    WEIR_ASSIGN(Use begun, Use::Begin(*this, callable->generation));
    use.emplace(std::move(begun));
  }
  ExpansionBudget budget{setup_.expansion_bytes};
  std::vector<Tensor> feeds;
  for (const std::string_view feed : of.feeds) {
    WEIR_ASSIGN(Tensor value, ParseTensorProto(feed, &budget));
    feeds.push_back(std::move(value));
  }
  session::RunOptions options = callable->options;
  StepWatch watch(end);
  watch.Apply(setup_.step_limit_ms, options);
  session::RunReport report;
  const bool reported = options.trace || options.output_partition_graphs;
  const Status status =
      use->session().RunCallable(callable->handle, feeds, &result.fetched, options, reported ? &report : nullptr);
  if (reported) {
    WEIR_ASSIGN(result.metadata, session::RunMetadata(use->graph(), report));
  }
  return OfStep(status);
}

void ClientSession::ReleaseCallable(int64_t handle) {
  std::shared_ptr<const Callable> gone;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = callables_.find(handle);
    if (found == callables_.end()) return;
    gone = std::move(found->second);
    callables_.erase(found);
  }
  static_cast<void>(gone->generation->session->ReleaseCallable(gone->handle));  // it exists
}

std::vector<session::DeviceAttributes> ClientSession::ListDevices() {
  const Result<Use> use = Use::Begin(*this);
  return use.ok() ? (*use).session().ListDevices() : std::vector<session::DeviceAttributes>();
}

uint64_t ClientSession::IncarnationOf(std::string_view device, uint64_t own) const {
  return setup_.options.tasks == nullptr ? own : setup_.options.tasks->IncarnationOf(device);
}

void ClientSession::Close() {
  std::vector<std::shared_ptr<Generation>> generations;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    if (current_) generations.push_back(current_);
    for (const std::weak_ptr<Generation>& each : earlier_) {
      if (auto generation = each.lock()) generations.push_back(std::move(generation));
    }
  }
  for (const auto& generation : generations) static_cast<void>(generation->session->Close());  // never fails
}

}  // namespace weir::door
