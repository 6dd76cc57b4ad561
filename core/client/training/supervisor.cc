#include "core/client/training/supervisor.h"

#include <any>
#include <chrono>
#include <cstdio>
#include <utility>

#include "core/base/errors.h"
#include "core/client/containers/lookup_table.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/ops.h"
#include "core/client/saver/meta_graph.h"
#include "core/client/training/optimizer.h"
#include "core/client/variables/variable.h"
#include "core/tensor/number.h"

namespace weir {
namespace {

using SessionEvent = summary::FileWriter::SessionEvent;

/// `given`, else the first entry of the collection, else what `make` gives, which goes to the collection.
template <class Node, class Make>
Node Chosen(const std::optional<Node>& given, Graph& graph, const char* key, Node CollectionEntry::*part, Make make) {
  if (given) return *given;
  const std::vector<CollectionEntry> entries = graph.GetCollection(key);
  if (!entries.empty()) return entries[0].*part;
  const Node made = make();
  if (made.exists()) graph.AddToCollection(key, made);
  return made;
}

Result<int64_t> StepNow(Session& session, const Output& step) {
  WEIR_ASSIGN(const Fetched fetched, session.Run(step));
  if (fetched.tensor().elements() != 1) return InvalidArgument("the global step {} is no scalar", step.name());
  return ElementAsInt(fetched.tensor(), 0);
}

/// Counts the steps between two calls.
class StepRate {
 public:
  StepRate(Output step, std::shared_ptr<summary::FileWriter> writer)
      : step_(step), writer_(std::move(writer)), tag_(step.op().name()) {
    tag_ = tag_.substr(0, tag_.find('/')) + "/sec";
  }
  Status Start(Session& session) {
    time_ = std::chrono::steady_clock::now();
    WEIR_ASSIGN(last_, StepNow(session, step_));
    return Status();
  }
  Status Write(Session& session) {
    WEIR_ASSIGN(const int64_t step, StepNow(session, step_));
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - time_).count();
    const double rate = seconds > 0 ? static_cast<double>(step - last_) / seconds : 0;
    time_ = now;
    last_ = step;
    return writer_->AddScalar(tag_, rate, step);
  }

 private:
  const Output step_;
  const std::shared_ptr<summary::FileWriter> writer_;
  std::string tag_;
  std::chrono::steady_clock::time_point time_;
  int64_t last_ = 0;
};

}  // namespace

Supervisor::Supervisor(SupervisorOptions options, Graph& graph) : options_(std::move(options)), graph_(&graph) {
  const AsDefault in(graph);
  status_ = BuildOps(graph);
  if (options_.is_chief && !options_.logdir.empty()) {
    save_path_ = options_.logdir + "/" + options_.checkpoint_basename;
  }
  if (options_.is_chief && options_.with_summary_writer) {
    writer_ = options_.summary_writer;
    if (!writer_ && !options_.logdir.empty()) {
      writer_ = std::make_shared<summary::FileWriter>(options_.logdir);
      if (status_.ok()) status_ = writer_->status();
    }
  }
  SessionManagerOptions managed;
  managed.local_init_op = local_init_op_;
  managed.ready_op = ready_op_;
  managed.ready_for_local_init_op = ready_for_local_init_op_;
  managed.recovery_wait_secs = options_.recovery_wait_secs;
  manager_.emplace(std::move(managed), graph);
  if (status_.ok()) status_ = CheckDevices(graph);
  graph.Finalize();
}

Supervisor::~Supervisor() {
  coordinator_.RequestStop();
  JoinOptions join;
  join.stop_grace_period_secs = options_.stop_grace_secs;
  (void)coordinator_.Join(join);
}

Status Supervisor::BuildOps(Graph& graph) {
  ready_op_ = Chosen(options_.ready_op, graph, keys::kReadyOp, &CollectionEntry::output,
                     [&] { return ReportUninitializedVariables({}, graph); });
  ready_for_local_init_op_ = Chosen(options_.ready_for_local_init_op, graph, keys::kReadyForLocalInitOp,
                                    &CollectionEntry::output, [] { return Output(); });
  init_op_ = Chosen(options_.init_op, graph, keys::kInitOp, &CollectionEntry::operation,
                    [&] { return GlobalVariablesInitializer(graph); });
  local_init_op_ = Chosen(options_.local_init_op, graph, keys::kLocalInitOp, &CollectionEntry::operation, [&] {
    const Operation locals = LocalVariablesInitializer(graph);
    return Group({locals, TablesInitializer(graph)});
  });
  if (options_.saver) {
    saver_ = options_.saver;
  } else if (options_.with_saver) {
    const std::vector<CollectionEntry> savers = graph.GetCollection(keys::kSavers);
    const Saver* const found = savers.empty() ? nullptr : std::any_cast<Saver>(&savers[0].object);
    if (found != nullptr) {
      saver_ = *found;
    } else if (!GlobalVariables(graph).empty()) {
      saver_.emplace(SaverOptions(), graph);
      graph.AddToCollection(keys::kSavers, CollectionEntry::Object(*saver_));
    }
  }
  summary_op_ = Chosen(options_.summary_op, graph, keys::kSummaryOp, &CollectionEntry::output,
                       [&] { return summary::MergeAll(graph); });
  if (options_.global_step) {
    global_step_ = *options_.global_step;
  } else if (const Variable step = GetGlobalStep(graph); step.exists()) {
    global_step_ = step.snapshot();
  }
  return graph.status();
}

/// A variable without a device would be one of the task's own.
Status Supervisor::CheckDevices(Graph& graph) const {
  if (options_.is_chief) return Status();
  for (const Operation& operation : graph.Operations()) {
    const std::string type = operation.type();
    if ((type == "Variable" || type == "VariableV2") && operation.device().empty()) {
      return InvalidArgument("When using replicas, all Variables must have their device set: {}", operation.ToString());
    }
  }
  return Status();
}

Status Supervisor::WriteGraphFiles() {
  if (!options_.logdir.empty()) WEIR_TRY(WriteGraph(*graph_, options_.logdir, "graph.pbtxt").status());
  if (writer_ == nullptr || std::exchange(graph_written_, true)) return Status();
  return writer_->AddGraph(*graph_);
}

Status Supervisor::StartServices(Session& session) {
  if (options_.is_chief) WEIR_TRY(StartStandardServices(session).status());
  return StartQueueRunners(session).status();
}

Result<std::unique_ptr<Session>> Supervisor::PrepareOrWaitForSession(const WaitOptions& options) {
  WEIR_TRY(status_);
  coordinator_.ClearStop();
  if (writer_ != nullptr) WEIR_TRY(writer_->Reopen());
  std::unique_ptr<Session> session;
  if (options_.is_chief) {
    PrepareOptions prepare;
    prepare.make = options.make;
    prepare.init_op = init_op_;
    prepare.saver = saver_;
    prepare.checkpoint_dir = options_.logdir;
    prepare.wait_for_checkpoint = options.wait_for_checkpoint;
    prepare.max_wait_secs = options.max_wait_secs;
    prepare.init_feeds = options_.init_feeds;
    prepare.init_fn = options_.init_fn;
    WEIR_ASSIGN(session, manager_->PrepareSession(prepare));
    WEIR_TRY(WriteGraphFiles());
  } else {
    WEIR_ASSIGN(session, manager_->WaitForSession(options.make, options.max_wait_secs));
  }
  if (!options.start_standard_services) return session;
  const Status started = StartServices(*session);
  if (started.ok()) return session;
  (void)Stop();  // threads use the session, which ends here
  return started;
}

Status Supervisor::ManagedSession(const std::function<Status(Session&)>& body, const WaitOptions& options) {
  Result<std::unique_ptr<Session>> session = PrepareOrWaitForSession(options);
  if (!session.ok()) {
    coordinator_.RequestStop(session.status());
  } else {
    (void)coordinator_.StopOnError([&] { return body(**session); });
  }
  const Status stopped = Stop();
  if (session.ok()) (void)(*session)->Close();  // an error of its steps was returned by them
  return session.ok() ? stopped : session.status();
}

Status Supervisor::SaveSummary(Session& session) {
  if (!global_step_.exists()) {
    WEIR_ASSIGN(const Fetched fetched, session.Run(summary_op_));
    return writer_->AddSummary(fetched.tensor());
  }
  WEIR_ASSIGN(const Fetched fetched, session.Run({summary_op_, global_step_}));
  return writer_->AddSummary(fetched[0].tensor(), ElementAsInt(fetched[1].tensor(), 0));
}

Status Supervisor::SaveModel(Session& session) {
  SaveOptions how;
  if (global_step_.exists()) how.global_step = GlobalStep(global_step_);
  WEIR_TRY(saver_->Save(session, save_path_, how).status());
  if (writer_ == nullptr || !global_step_.exists()) return Status();
  WEIR_ASSIGN(const int64_t step, StepNow(session, global_step_));
  return writer_->AddSessionLog(SessionEvent::kCheckpoint, step, save_path_);
}

Result<std::vector<ThreadPtr>> Supervisor::StartStandardServices(Session& session) {
  if (!options_.is_chief) {
    return FailedPrecondition(
        "Only chief supervisor can start standard services. Because only chief supervisors can write events.");
  }
  std::vector<ThreadPtr> threads;
  if (options_.logdir.empty()) {
    std::fprintf(stderr, "weir: Standard services need a 'logdir' passed to the SessionManager\n");
    return threads;
  }
  if (global_step_.exists() && writer_ != nullptr) {
    WEIR_ASSIGN(const int64_t step, StepNow(session, global_step_));
    WEIR_TRY(writer_->AddSessionLog(SessionEvent::kStart, step));
  }
  const auto start = [&](double seconds, LooperBody body, const char* name) {
    threads.push_back(std::make_shared<LooperThread>(coordinator_, seconds, std::move(body), name));
    coordinator_.RegisterThread(threads.back());
    threads.back()->Start();
  };
  if (options_.save_summaries_secs > 0 && writer_ != nullptr) {
    if (summary_op_.exists()) {
      start(options_.save_summaries_secs, {.run = [this, &session] { return SaveSummary(session); }}, "SVSummary");
    }
    if (global_step_.exists()) {
      const auto rate = std::make_shared<StepRate>(global_step_, writer_);
      start(options_.save_summaries_secs,
            {.run = [rate, &session] { return rate->Write(session); },
             .start = [rate, &session] { return rate->Start(session); }},
            "SVStepCounter");
    }
  }
  if (saver_ && options_.save_model_secs > 0) {
    start(options_.save_model_secs, {.run = [this, &session] { return SaveModel(session); }}, "SVTimerCheckpoint");
  }
  return threads;
}

Result<std::vector<ThreadPtr>> Supervisor::StartQueueRunners(Session& session,
                                                             const std::vector<QueueRunner>& runners) {
  std::vector<QueueRunner> all = runners;
  if (all.empty()) {
    WEIR_ASSIGN(all, QueueRunnersIn(*graph_));
  }
  std::vector<ThreadPtr> threads;
  for (const QueueRunner& runner : all) {
    const std::vector<ThreadPtr> made = runner.CreateThreads(session, &coordinator_);
    threads.insert(threads.end(), made.begin(), made.end());
  }
  return threads;
}

ThreadPtr Supervisor::Loop(double timer_interval_secs, std::function<Status()> target) {
  return LooperThread::Loop(coordinator_, timer_interval_secs, std::move(target));
}

Status Supervisor::Stop(bool close_summary_writer, bool ignore_live_threads) {
  coordinator_.RequestStop();
  JoinOptions join;
  join.stop_grace_period_secs = options_.stop_grace_secs;
  join.ignore_live_threads = ignore_live_threads;
  Status stopped = coordinator_.Join(join);
  if (!close_summary_writer || writer_ == nullptr) return stopped;
  Status closed = writer_->AddSessionLog(SessionEvent::kStop);
  if (const Status written = writer_->Close(); closed.ok()) closed = written;
  graph_written_ = false;
  return stopped.ok() && closed.code() != Code::kFailedPrecondition ? closed : stopped;
}

Status Supervisor::SummaryComputed(Session& session, const Tensor& summary, std::optional<int64_t> global_step) {
  WEIR_TRY(status_);
  if (writer_ == nullptr) return FailedPrecondition("Writing a summary requires a summary writer.");
  int64_t step = global_step.value_or(0);
  if (!global_step && global_step_.exists()) {
    WEIR_ASSIGN(step, StepNow(session, global_step_));
  }
  return writer_->AddSummary(summary, step);
}

}  // namespace weir
