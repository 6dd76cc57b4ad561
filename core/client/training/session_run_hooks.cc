#include "core/client/training/session_run_hooks.h"

#include <cmath>
#include <cstdio>
#include <sstream>
#include <thread>

#include "core/base/errors.h"
#include "core/client/saver/meta_graph.h"
#include "core/client/training/optimizer.h"
#include "core/tensor/number.h"

namespace weir {
namespace {

Result<Output> StepOf(Graph& graph, std::string_view hook) {
  const Variable step = GetGlobalStep(graph);
  if (step.exists()) return step.snapshot();
  return FailedPrecondition("Global step should be created to use {}.", hook);
}

Result<int64_t> Number(const Fetched& fetched) {
  if (fetched.tensor().elements() != 1) return InvalidArgument("the global step is no scalar");
  return ElementAsInt(fetched.tensor(), 0);
}
Result<int64_t> Read(Session& session, const Output& step) {
  WEIR_ASSIGN(const Fetched fetched, session.Run(step));
  return Number(fetched);
}

Result<std::shared_ptr<summary::FileWriter>> WriterIn(const std::string& dir) {
  auto writer = std::make_shared<summary::FileWriter>(dir);
  WEIR_TRY(writer->status());
  return writer;
}

SessionRunArgs Asks(Fetch fetch) {
  SessionRunArgs args;
  args.fetches = std::move(fetch);
  return args;
}

}  // namespace

SecondOrStepTimer::SecondOrStepTimer(std::optional<double> every_secs, std::optional<int64_t> every_steps)
    : every_secs_(every_secs), every_steps_(every_steps) {
  if (!every_secs && !every_steps) status_ = InvalidArgument("Either every_secs or every_steps should be provided.");
  if (every_secs && every_steps) status_ = InvalidArgument("Can not provide both every_secs and every_steps.");
}

bool SecondOrStepTimer::ShouldTriggerForStep(int64_t step) const {
  if (!last_step_) return true;
  if (*last_step_ == step) return false;
  const auto now = std::chrono::steady_clock::now();
  if (every_secs_ && std::chrono::duration<double>(now - last_time_).count() >= *every_secs_) return true;
  return every_steps_ && step >= *last_step_ + *every_steps_;
}

std::optional<std::pair<double, int64_t>> SecondOrStepTimer::UpdateLastTriggeredStep(int64_t step) {
  const auto now = std::chrono::steady_clock::now();
  std::optional<std::pair<double, int64_t>> since;
  if (last_step_) since = {std::chrono::duration<double>(now - last_time_).count(), step - *last_step_};
  last_time_ = now;
  last_step_ = step;
  return since;
}

StopAtStepHook::StopAtStepHook(std::optional<int64_t> num_steps, std::optional<int64_t> last_step)
    : num_steps_(num_steps), last_step_(last_step) {}

Status StopAtStepHook::Begin(Graph& graph) {
  if (!num_steps_ && !last_step_) return InvalidArgument("One of num_steps or last_step must be specified.");
  if (num_steps_ && last_step_) return InvalidArgument("Only one of num_steps or last_step can be specified.");
  WEIR_ASSIGN(global_step_, StepOf(graph, "StopAtStepHook"));
  return Status();
}

Status StopAtStepHook::AfterCreateSession(Session& session, const Coordinator&) {
  if (last_step_) return Status();
  WEIR_ASSIGN(const int64_t step, Read(session, global_step_));
  last_step_ = step + num_steps_.value_or(0);
  return Status();
}

Result<SessionRunArgs> StopAtStepHook::BeforeRun(SessionRunContext&) { return Asks(global_step_); }

Status StopAtStepHook::AfterRun(SessionRunContext& context, const Fetched& results) {
  WEIR_ASSIGN(const int64_t before, Number(results));
  if (before + 1 < *last_step_) return Status();
  // What the step read may be the value before its update.
  WEIR_ASSIGN(const int64_t step, Read(context.session(), global_step_));
  if (step >= *last_step_) context.RequestStop();
  return Status();
}

CheckpointSaverHook::CheckpointSaverHook(const std::string& checkpoint_dir, CheckpointSaverOptions options)
    : dir_(checkpoint_dir),
      path_(checkpoint_dir + "/" + options.checkpoint_basename),
      options_(std::move(options)),
      timer_(options_.save_secs, options_.save_steps) {}

Status CheckpointSaverHook::Begin(Graph& graph) {
  WEIR_TRY(timer_.status());
  WEIR_ASSIGN(global_step_, StepOf(graph, "CheckpointSaverHook"));
  for (const auto& listener : options_.listeners) listener->Begin();
  return Status();
}

Status CheckpointSaverHook::AfterCreateSession(Session& session, const Coordinator&) {
  if (!options_.saver) {
    const std::vector<CollectionEntry> savers = session.graph().GetCollection(keys::kSavers);
    if (savers.size() > 1) {
      return FailedPrecondition(
          "More than one item in collection savers. Please indicate which one to use by passing it to the "
          "constructor.");
    }
    const Saver* const found = savers.empty() ? nullptr : std::any_cast<Saver>(&savers[0].object);
    if (found == nullptr) {
      return FailedPrecondition(
          "No items in collection savers. Please add a saver to the collection or provide a saver or scaffold.");
    }
    options_.saver = *found;
  }
  WEIR_ASSIGN(const int64_t step, Read(session, global_step_));
  if (options_.save_graph_def) WEIR_TRY(WriteGraph(session.graph(), dir_, "graph.pbtxt").status());
  WEIR_TRY(Save(session, step).status());
  timer_.UpdateLastTriggeredStep(step);
  return Status();
}

Result<SessionRunArgs> CheckpointSaverHook::BeforeRun(SessionRunContext&) { return Asks(global_step_); }

Status CheckpointSaverHook::AfterRun(SessionRunContext& context, const Fetched& results) {
  WEIR_ASSIGN(const int64_t before, Number(results));
  if (!timer_.ShouldTriggerForStep(before + 1)) return Status();
  WEIR_ASSIGN(const int64_t step, Read(context.session(), global_step_));
  if (!timer_.ShouldTriggerForStep(step)) return Status();
  timer_.UpdateLastTriggeredStep(step);
  WEIR_ASSIGN(const bool stops, Save(context.session(), step));
  if (stops) context.RequestStop();
  return Status();
}

Status CheckpointSaverHook::End(Session& session) {
  WEIR_ASSIGN(const int64_t step, Read(session, global_step_));
  if (timer_.last_triggered_step() != step) WEIR_TRY(Save(session, step).status());
  for (const auto& listener : options_.listeners) listener->End(session, step);
  return Status();
}

Result<bool> CheckpointSaverHook::Save(Session& session, int64_t step) {
  for (const auto& listener : options_.listeners) listener->BeforeSave(session, step);
  SaveOptions how;
  how.global_step = GlobalStep(step);
  how.write_meta_graph = options_.save_graph_def;
  WEIR_TRY(options_.saver->Save(session, path_, how).status());
  bool stops = false;
  for (const auto& listener : options_.listeners) stops = listener->AfterSave(session, step) || stops;
  return stops;
}

StepCounterHook::StepCounterHook(const std::string& output_dir, std::optional<int64_t> every_n_steps,
                                 std::optional<double> every_n_secs, std::shared_ptr<summary::FileWriter> writer)
    : timer_(every_n_secs, every_n_secs ? std::nullopt : every_n_steps),
      output_dir_(output_dir),
      writer_(std::move(writer)) {}

Status StepCounterHook::Begin(Graph& graph) {
  WEIR_TRY(timer_.status());
  WEIR_ASSIGN(global_step_, StepOf(graph, "StepCounterHook"));
  if (writer_ || output_dir_.empty()) return Status();
  WEIR_ASSIGN(writer_, WriterIn(output_dir_));
  return Status();
}

Result<SessionRunArgs> StepCounterHook::BeforeRun(SessionRunContext&) { return Asks(global_step_); }

Status StepCounterHook::AfterRun(SessionRunContext& context, const Fetched& results) {
  WEIR_ASSIGN(const int64_t before, Number(results));
  if (!timer_.ShouldTriggerForStep(before + 1)) return Status();
  WEIR_ASSIGN(const int64_t step, Read(context.session(), global_step_));
  if (!timer_.ShouldTriggerForStep(step)) return Status();
  const auto since = timer_.UpdateLastTriggeredStep(step);
  if (!since || !writer_) return Status();
  const double rate = since->first > 0 ? static_cast<double>(since->second) / since->first : INFINITY;
  return writer_->AddScalar(global_step_.op().name().substr(0, global_step_.op().name().find('/')) + "/sec", rate,
                            step);
}

Status StepCounterHook::End(Session&) { return writer_ ? writer_->Flush() : Status(); }

SummarySaverHook::SummarySaverHook(SummarySaverOptions options)
    : options_(std::move(options)), timer_(options_.save_secs, options_.save_steps) {}

Status SummarySaverHook::Begin(Graph& graph) {
  WEIR_TRY(timer_.status());
  WEIR_ASSIGN(global_step_, StepOf(graph, "SummarySaverHook"));
  if (options_.summary_writer) return Status();
  WEIR_ASSIGN(options_.summary_writer, WriterIn(options_.output_dir));
  return Status();
}

Status SummarySaverHook::AfterCreateSession(Session& session, const Coordinator&) {
  starts_ = true;
  if (options_.summary_op.exists()) return Status();
  const std::vector<CollectionEntry> ops = session.graph().GetCollection(keys::kSummaryOp);
  if (!ops.empty()) options_.summary_op = ops[0].output;
  return Status();
}

Result<SessionRunArgs> SummarySaverHook::BeforeRun(SessionRunContext&) {
  wants_ = starts_ || timer_.ShouldTriggerForStep(next_step_);
  const bool takes = wants_ && options_.summary_op.exists();
  return Asks(takes ? Fetch{global_step_, options_.summary_op} : Fetch{Fetch(global_step_)});
}

Status SummarySaverHook::AfterRun(SessionRunContext& context, const Fetched& results) {
  WEIR_ASSIGN(const int64_t before, Number(results[0]));
  int64_t step = before + 1;
  if (starts_ || timer_.ShouldTriggerForStep(step)) {
    WEIR_ASSIGN(step, Read(context.session(), global_step_));
  }
  if (starts_) WEIR_TRY(options_.summary_writer->AddSessionLog(summary::FileWriter::SessionEvent::kStart, step));
  starts_ = false;
  if (wants_) {
    timer_.UpdateLastTriggeredStep(step);
    if (results.size() > 1) WEIR_TRY(options_.summary_writer->AddSummary(results[1].tensor(), step));
  }
  next_step_ = step + 1;
  return Status();
}

Status SummarySaverHook::End(Session&) { return options_.summary_writer->Flush(); }

LoggingTensorHook::LoggingTensorHook(std::vector<std::pair<std::string, Output>> tensors, LoggingOptions options)
    : tensors_(std::move(tensors)), options_(std::move(options)) {
  if (options_.every_n_iter || options_.every_n_secs) timer_.emplace(options_.every_n_secs, options_.every_n_iter);
}

Status LoggingTensorHook::Begin(Graph&) {
  if (timer_ && !timer_->status().ok()) {
    return InvalidArgument("exactly one of every_n_iter and every_n_secs must be provided.");
  }
  if (!timer_ && !options_.at_end) {
    return InvalidArgument("either at_end and/or exactly one of every_n_iter and every_n_secs must be provided.");
  }
  step_ = 0;
  return Status();
}

Fetch LoggingTensorHook::All() const {
  Fetch::List all;
  for (const auto& [tag, tensor] : tensors_) all.emplace_back(tensor);
  return Fetch(std::move(all));
}

Result<SessionRunArgs> LoggingTensorHook::BeforeRun(SessionRunContext&) {
  prints_ = timer_ && timer_->ShouldTriggerForStep(step_);
  return prints_ ? Asks(All()) : SessionRunArgs();
}

void LoggingTensorHook::Print(const Fetched& values) {
  std::ostringstream line;
  for (size_t i = 0; i < tensors_.size(); ++i) line << (i == 0 ? "" : ", ") << tensors_[i].first << " = " << values[i];
  if (options_.print) {
    options_.print(line.str());
  } else {
    std::fprintf(stderr, "weir: %s\n", line.str().c_str());
  }
}

Status LoggingTensorHook::AfterRun(SessionRunContext&, const Fetched& results) {
  if (prints_) {
    timer_->UpdateLastTriggeredStep(step_);
    Print(results);
  }
  ++step_;
  return Status();
}

Status LoggingTensorHook::End(Session& session) {
  if (!options_.at_end) return Status();
  WEIR_ASSIGN(const Fetched values, session.Run(All()));
  Print(values);
  return Status();
}

Result<SessionRunArgs> NanTensorHook::BeforeRun(SessionRunContext&) { return Asks(loss_); }

Status NanTensorHook::AfterRun(SessionRunContext& context, const Fetched& results) {
  const Tensor& loss = results.tensor();
  bool nan = false;
  for (int64_t i = 0; i < loss.elements(); ++i) nan = nan || std::isnan(ElementAsDouble(loss, i));
  if (!nan) return Status();
  if (fails_) return InvalidArgument("NaN loss during training.");
  context.RequestStop();
  return Status();
}

Status FinalOpsHook::End(Session& session) {
  WEIR_ASSIGN(values_, session.Run(ops_, feeds_));
  return Status();
}

Status GlobalStepWaiterHook::Begin(Graph& graph) {
  WEIR_ASSIGN(global_step_, StepOf(graph, "_GlobalStepWaiterHook"));
  return Status();
}

Status GlobalStepWaiterHook::AfterCreateSession(Session&, const Coordinator& coordinator) {
  coordinator_ = coordinator;
  return Status();
}

Result<SessionRunArgs> GlobalStepWaiterHook::BeforeRun(SessionRunContext& context) {
  while (!reached_ && wait_until_step_ > 0) {
    WEIR_ASSIGN(const int64_t step, Read(context.session(), global_step_));
    reached_ = step >= wait_until_step_;
    if (reached_) break;
    if (coordinator_ && coordinator_->WaitForStop(0.05)) break;
    if (!coordinator_) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return SessionRunArgs();
}

Result<SessionRunArgs> FeedFnHook::BeforeRun(SessionRunContext&) {
  SessionRunArgs args;
  args.feeds = feed_fn_();
  return args;
}

}  // namespace weir
