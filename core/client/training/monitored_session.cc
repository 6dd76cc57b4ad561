#include "core/client/training/monitored_session.h"

#include <algorithm>
#include <any>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>
#include <utility>

#include "core/base/errors.h"
#include "core/client/containers/lookup_table.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/array_ops.h"
#include "core/client/ops/ops.h"
#include "core/client/training/queue_runner.h"
#include "core/client/training/summary.h"
#include "core/client/variables/variable.h"

namespace weir {
namespace {

bool IsPreemption(const Status& status) {
  return status.code() == Code::kAborted || status.code() == Code::kUnavailable;
}

/// The only entry of a collection, or nothing.
Result<std::optional<CollectionEntry>> OnlyEntry(Graph& graph, const char* key, std::string_view argument) {
  const std::vector<CollectionEntry> entries = graph.GetCollection(key);
  if (entries.size() > 1) {
    return FailedPrecondition(
        "More than one item in the collection \"{}\". Please indicate which one to use by passing it to the "
        "tf.Scaffold constructor as:  tf.Scaffold({}=item to use)",
        key, argument);
  }
  return entries.empty() ? std::optional<CollectionEntry>() : entries[0];
}

/// Sets `node` from the collection, or from `make` and to the collection, unless it exists.
template <class Node, class Make>
Status FindOrMake(Graph& graph, const char* key, std::string_view argument, Node CollectionEntry::*part, Node& node,
                  Make make) {
  if (node.exists()) return Status();
  WEIR_ASSIGN(const std::optional<CollectionEntry> found, OnlyEntry(graph, key, argument));
  node = found ? (*found).*part : make();
  if (!found && node.exists()) graph.AddToCollection(key, node);
  return Status();
}

/// Names of what is not initialized; resources of this runtime are made by their ops.
Output NotInitialized(Graph& graph, const std::vector<Variable>& variables) {
  const Output names = ReportUninitializedVariables(variables, graph);
  Output resources;
  {
    const DeviceScope host("/device:CPU:0", graph);
    const NameScope scope("report_uninitialized_resources", graph);
    resources = Constant(Tensor::Vector<std::string>({}), DType::kString, "Const");
  }
  return Concat({names, resources}, 0);
}

}  // namespace

Status Scaffold::Finalize(Graph& graph) {
  if (std::exchange(finalized_, true)) return Status();
  const AsDefault in(graph);
  ScaffoldOptions& o = options_;
  WEIR_TRY(FindOrMake(graph, keys::kInitOp, "init_op", &CollectionEntry::operation, o.init_op, [&] {
    const Operation variables = GlobalVariablesInitializer(graph);
    return Group({variables, NoOp("init")});
  }));
  WEIR_TRY(FindOrMake(graph, keys::kReadyOp, "ready_op", &CollectionEntry::output, o.ready_op,
                      [&] { return NotInitialized(graph, {}); }));
  WEIR_TRY(FindOrMake(graph, keys::kReadyForLocalInitOp, "ready_for_local_init_op", &CollectionEntry::output,
                      o.ready_for_local_init_op, [&] {
                        const std::vector<Variable> globals = GlobalVariables(graph);
                        return globals.empty() ? Output() : NotInitialized(graph, globals);
                      }));
  WEIR_TRY(FindOrMake(graph, keys::kLocalInitOp, "local_init_op", &CollectionEntry::operation, o.local_init_op, [&] {
    const Operation locals = LocalVariablesInitializer(graph);
    const Operation tables = TablesInitializer(graph);
    return Group({locals, tables, NoOp("init")});
  }));
  WEIR_TRY(FindOrMake(graph, keys::kSummaryOp, "summary_op", &CollectionEntry::output, o.summary_op,
                      [&] { return summary::MergeAll(graph); }));
  if (!o.saver) {
    WEIR_ASSIGN(const std::optional<CollectionEntry> found, OnlyEntry(graph, keys::kSavers, "saver"));
    const Saver* const saver = found ? std::any_cast<Saver>(&found->object) : nullptr;
    if (saver != nullptr) {
      o.saver = *saver;
    } else if (!GlobalVariables(graph).empty()) {
      o.saver.emplace(SaverOptions{.sharded = true}, graph);
      graph.AddToCollection(keys::kSavers, CollectionEntry::Object(*o.saver));
    }
  }
  WEIR_TRY(graph.status());
  graph.Finalize();
  return Status();
}

MonitoredSession::MonitoredSession(MonitoredSessionOptions options)
    : options_(std::move(options)), graph_(options_.graph != nullptr ? options_.graph : &Graph::Default()) {
  if (!options_.scaffold) options_.scaffold = std::make_shared<Scaffold>();
  const auto begin = [&]() -> Status {
    const AsDefault in(*graph_);
    for (const HookPtr& hook : options_.hooks) WEIR_TRY(hook->Begin(*graph_));
    return Status();
  };
  status_ = begin();
  if (status_.ok()) status_ = options_.scaffold->Finalize(*graph_);
  if (status_.ok()) status_ = Create();
}

MonitoredSession::~MonitoredSession() {
  if (!closed_) (void)Close(status_);
}

Status MonitoredSession::CreateOnce() {
  const Scaffold& scaffold = *options_.scaffold;
  SessionManagerOptions managed;
  managed.local_init_op = scaffold.local_init_op();
  managed.ready_op = scaffold.ready_op();
  managed.ready_for_local_init_op = scaffold.ready_for_local_init_op();
  managed.recovery_wait_secs = options_.recovery_wait_secs;
  managed.local_init_feeds = scaffold.options().local_init_feeds;
  const SessionManager manager(std::move(managed), *graph_);
  if (options_.is_chief) {
    PrepareOptions prepare;
    prepare.make = options_.make;
    prepare.init_op = scaffold.init_op();
    prepare.saver = scaffold.saver();
    prepare.checkpoint_dir = options_.checkpoint_path.empty() ? options_.checkpoint_dir : "";
    prepare.checkpoint_path = options_.checkpoint_path;
    prepare.init_feeds = scaffold.options().init_feeds;
    prepare.init_fn = scaffold.options().init_fn;
    WEIR_ASSIGN(session_, manager.PrepareSession(prepare));
  } else {
    WEIR_ASSIGN(session_, manager.WaitForSession(options_.make, options_.max_wait_secs));
  }
  ++sessions_;
  coordinator_ = std::make_unique<Coordinator>(std::vector<Code>());
  WEIR_TRY(StartQueueRunners({.session = session_.get(), .coordinator = coordinator_.get()}).status());
  for (const HookPtr& hook : options_.hooks) WEIR_TRY(hook->AfterCreateSession(*session_, *coordinator_));
  return Status();
}

Status MonitoredSession::Create() {
  Status made = CreateOnce();
  while (!made.ok()) {
    (void)EndSession();
    if (!IsPreemption(made)) return made;
    WEIR_TRY(Recover(made));
    made = CreateOnce();
  }
  return made;
}

/// Counts a failure and waits before the next attempt; the error when there are too many.
Status MonitoredSession::Recover(const Status& why) {
  if (!options_.should_recover) return why;
  if (++failures_ > options_.max_recoveries) {
    return why.Append(" (gave up after " + std::to_string(options_.max_recoveries) + " new sessions in a row)");
  }
  std::fprintf(stderr, "weir: a task was lost, another session is made: %s\n", why.ToString().c_str());
  if (failures_ > 1) {
    const double longest = 30;
    const double pause = std::min(longest, options_.recovery_backoff_secs * std::pow(2.0, failures_ - 2));
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
  }
  return Status();
}

Result<Feeds> MonitoredSession::GatherFeeds(std::vector<SessionRunArgs>& asked, const Feeds& feeds) const {
  Feeds all;
  const auto fed = [](const Feeds& in, const FeedKey& key) {
    return std::ranges::any_of(
        in, [&](const auto& one) { return one.first.output() == key.output() && one.first.name() == key.name(); });
  };
  for (SessionRunArgs& args : asked) {
    for (auto& feed : args.feeds) {
      if (fed(all, feed.first)) return FailedPrecondition("Same tensor is fed by two hooks.");
      if (fed(feeds, feed.first)) return FailedPrecondition("Same tensor is fed by a SessionRunHook and user.");
      all.push_back(std::move(feed));
    }
  }
  all.insert(all.end(), feeds.begin(), feeds.end());
  return all;
}

Result<Fetched> MonitoredSession::RunOnce(const Fetch& fetch, const Feeds& feeds) {
  if (session_ == nullptr) {
    if (const Status made = CreateOnce(); !made.ok()) {
      (void)EndSession();
      return made;
    }
  }
  const SessionRunArgs original{fetch, feeds};
  SessionRunContext context(*session_, original);
  std::vector<SessionRunArgs> asked;
  Fetch::List fetches = {fetch};
  for (const HookPtr& hook : options_.hooks) {
    WEIR_ASSIGN(SessionRunArgs args, hook->BeforeRun(context));
    fetches.push_back(args.fetches);
    asked.push_back(std::move(args));
  }
  WEIR_ASSIGN(const Feeds all, GatherFeeds(asked, feeds));
  WEIR_ASSIGN(const Fetched fetched, session_->Run(Fetch(std::move(fetches)), all));
  for (size_t i = 0; i < options_.hooks.size(); ++i) {
    WEIR_TRY(options_.hooks[i]->AfterRun(context, fetched[i + 1]));
  }
  hooks_stop_ = hooks_stop_ || context.stop_requested();
  return fetched[0];
}

Result<Fetched> MonitoredSession::Run(const Fetch& fetch, const Feeds& feeds) {
  WEIR_TRY(status_);
  if (closed_) return FailedPrecondition("Attempted to use a closed Session.");
  if (hooks_stop_) return FailedPrecondition("Run called even after should_stop requested.");
  while (true) {
    Result<Fetched> fetched = RunOnce(fetch, feeds);
    if (fetched.ok()) {
      failures_ = 0;
      return fetched;
    }
    // A thread that stopped the training knows more than the step that it broke.
    Status why = coordinator_ ? coordinator_->RequestedError() : Status();
    if (!IsPreemption(why)) why = fetched.status();
    if (!IsPreemption(why)) return why;
    (void)EndSession();
    WEIR_TRY(Recover(why));
  }
}

bool MonitoredSession::ShouldStop() {
  if (closed_ || !status_.ok() || hooks_stop_) return true;
  if (coordinator_ == nullptr || !coordinator_->ShouldStop()) return false;
  const Status why = coordinator_->RequestedError();
  if (!IsPreemption(why)) return true;
  (void)EndSession();
  if (Recover(why).ok()) status_ = Create();
  return !status_.ok() || session_ == nullptr;
}

Status MonitoredSession::EndSession() {
  Status status;
  if (coordinator_ != nullptr) {
    coordinator_->RequestStop();
    JoinOptions join;
    join.stop_grace_period_secs = options_.stop_grace_period_secs;
    join.ignore_live_threads = true;
    status = coordinator_->Join(join);
    coordinator_.reset();
  }
  if (session_ != nullptr) {
    (void)session_->Close();
    session_.reset();
  }
  return status;
}

Status MonitoredSession::Close(const Status& why) {
  if (std::exchange(closed_, true)) return Status();
  const bool clean = why.ok() || why.code() == Code::kOutOfRange;
  Status ended;
  if (clean && session_ != nullptr) {
    for (const HookPtr& hook : options_.hooks) {
      ended = hook->End(*session_);
      if (!ended.ok()) break;
    }
  }
  const Status joined = EndSession();
  if (!clean) return why;
  if (!ended.ok()) return ended;
  return joined.code() == Code::kOutOfRange || IsPreemption(joined) ? Status() : joined;
}

std::unique_ptr<MonitoredSession> MonitoredTrainingSession(const TrainingSessionOptions& options) {
  MonitoredSessionOptions session;
  session.is_chief = options.is_chief;
  session.make = options.make;
  session.scaffold = options.scaffold ? options.scaffold : std::make_shared<Scaffold>();
  session.max_wait_secs = options.max_wait_secs;
  session.recovery_wait_secs = options.recovery_wait_secs;
  session.stop_grace_period_secs = options.stop_grace_period_secs;
  session.max_recoveries = options.max_recoveries;
  session.graph = options.graph;
  if (!options.is_chief) {
    session.hooks = options.hooks;
    return std::make_unique<MonitoredSession>(std::move(session));
  }
  session.checkpoint_dir = options.checkpoint_dir;
  session.hooks = options.chief_only_hooks;
  const std::string summaries = options.summary_dir.empty() ? options.checkpoint_dir : options.summary_dir;
  const bool by_secs = options.save_summaries_secs.has_value();
  const int64_t summary_steps = options.save_summaries_steps.value_or(by_secs ? 0 : 100);
  if (!summaries.empty() && options.log_step_count_steps > 0) {
    session.hooks.push_back(std::make_shared<StepCounterHook>(summaries, options.log_step_count_steps));
  }
  if (!summaries.empty() && (summary_steps > 0 || options.save_summaries_secs.value_or(0) > 0)) {
    SummarySaverOptions saver;
    if (summary_steps > 0) saver.save_steps = summary_steps;
    if (summary_steps <= 0) saver.save_secs = options.save_summaries_secs;
    saver.output_dir = summaries;
    saver.summary_op = session.scaffold->summary_op();
    session.hooks.push_back(std::make_shared<SummarySaverHook>(std::move(saver)));
  }
  const bool neither = !options.save_checkpoint_secs && !options.save_checkpoint_steps;
  const double save_secs = options.save_checkpoint_secs.value_or(neither ? 600 : 0);
  const int64_t save_steps = options.save_checkpoint_steps.value_or(0);
  if (!options.checkpoint_dir.empty() && (save_secs > 0 || save_steps > 0)) {
    CheckpointSaverOptions saver;
    if (save_secs > 0) saver.save_secs = save_secs;
    if (save_secs <= 0) saver.save_steps = save_steps;
    saver.saver = session.scaffold->saver();
    saver.save_graph_def = options.save_graph_def;
    session.hooks.push_back(std::make_shared<CheckpointSaverHook>(options.checkpoint_dir, std::move(saver)));
  }
  session.hooks.insert(session.hooks.end(), options.hooks.begin(), options.hooks.end());
  return std::make_unique<MonitoredSession>(std::move(session));
}

}  // namespace weir
