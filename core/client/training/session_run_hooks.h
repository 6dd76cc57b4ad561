// Hooks of a MonitoredSession: what happens around its steps.
#ifndef WEIR_CORE_CLIENT_TRAINING_SESSION_RUN_HOOKS_H_
#define WEIR_CORE_CLIENT_TRAINING_SESSION_RUN_HOOKS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/client/saver/saver.h"
#include "core/client/session/session.h"
#include "core/client/training/coordinator.h"
#include "core/client/training/summary.h"

namespace weir {

/// What a hook adds to a step.
struct SessionRunArgs {
  Fetch fetches = Fetch(Fetch::List());
  Feeds feeds = {};
};

/// One step, as the hooks see it.
class SessionRunContext {
 public:
  SessionRunContext(Session& session, const SessionRunArgs& original) : session_(session), original_(original) {}
  Session& session() const { return session_; }
  /// What the caller of Run asked for.
  const SessionRunArgs& original_args() const { return original_; }
  void RequestStop() { stop_requested_ = true; }
  bool stop_requested() const { return stop_requested_; }

 private:
  Session& session_;
  const SessionRunArgs& original_;
  bool stop_requested_ = false;
};

/// Base of the hooks. An error of a function is that of the session's step or creation.
class SessionRunHook {
 public:
  virtual ~SessionRunHook() = default;
  /// Once, before the graph is finalized: may add to it.
  virtual Status Begin(Graph&) { return Status(); }
  /// For each session that is made.
  virtual Status AfterCreateSession(Session&, const Coordinator&) { return Status(); }
  virtual Result<SessionRunArgs> BeforeRun(SessionRunContext&) { return SessionRunArgs(); }
  /// `results`: of the fetches of BeforeRun.
  virtual Status AfterRun(SessionRunContext&, const Fetched& results) { return (void)results, Status(); }
  /// At the end of a session that ends without an error.
  virtual Status End(Session&) { return Status(); }
};
using HookPtr = std::shared_ptr<SessionRunHook>;

/// Says when something is due: every so many steps or, if those are not given, seconds; the first time at once.
class SecondOrStepTimer {
 public:
  SecondOrStepTimer(std::optional<double> every_secs, std::optional<int64_t> every_steps);
  /// InvalidArgument "Either every_secs or every_steps should be provided." and "Can not provide both every_secs and
  /// every_steps."
  const Status& status() const { return status_; }
  void Reset() { last_step_.reset(); }
  bool ShouldTriggerForStep(int64_t step) const;
  /// Seconds and steps since the last time; nothing the first time.
  std::optional<std::pair<double, int64_t>> UpdateLastTriggeredStep(int64_t step);
  std::optional<int64_t> last_triggered_step() const { return last_step_; }

 private:
  std::optional<double> every_secs_;
  std::optional<int64_t> every_steps_;
  Status status_;
  std::optional<int64_t> last_step_;
  std::chrono::steady_clock::time_point last_time_;
};

/// Stops after `num_steps` steps from the one at which the session begins, or at `last_step`. InvalidArgument "One of
/// num_steps or last_step must be specified.", "Only one of num_steps or last_step can be specified."
class StopAtStepHook : public SessionRunHook {
 public:
  explicit StopAtStepHook(std::optional<int64_t> num_steps, std::optional<int64_t> last_step = {});
  Status Begin(Graph& graph) override;
  Status AfterCreateSession(Session& session, const Coordinator& coordinator) override;
  Result<SessionRunArgs> BeforeRun(SessionRunContext& context) override;
  Status AfterRun(SessionRunContext& context, const Fetched& results) override;

 private:
  const std::optional<int64_t> num_steps_;
  std::optional<int64_t> last_step_;
  Output global_step_;
};

/// Told when a CheckpointSaverHook saves.
class CheckpointSaverListener {
 public:
  virtual ~CheckpointSaverListener() = default;
  virtual void Begin() {}
  virtual void BeforeSave(Session&, int64_t step) { (void)step; }
  /// True stops the training.
  virtual bool AfterSave(Session&, int64_t step) { return (void)step, false; }
  virtual void End(Session&, int64_t step) { (void)step; }
};

struct CheckpointSaverOptions {
  std::optional<double> save_secs = {};
  std::optional<int64_t> save_steps = {};
  std::optional<Saver> saver = {};  // empty: the one of the collection "savers"
  std::string checkpoint_basename = "model.ckpt";
  std::vector<std::shared_ptr<CheckpointSaverListener>> listeners = {};
  bool save_graph_def = true;
};
/// Saves every so many steps or seconds, at the first step of a session and at its end, unless that step was saved.
class CheckpointSaverHook : public SessionRunHook {
 public:
  CheckpointSaverHook(const std::string& checkpoint_dir, CheckpointSaverOptions options);
  Status Begin(Graph& graph) override;
  Status AfterCreateSession(Session& session, const Coordinator& coordinator) override;
  Result<SessionRunArgs> BeforeRun(SessionRunContext& context) override;
  Status AfterRun(SessionRunContext& context, const Fetched& results) override;
  Status End(Session& session) override;

 private:
  /// True if a listener wants to stop.
  Result<bool> Save(Session& session, int64_t step);

  const std::string dir_, path_;
  CheckpointSaverOptions options_;
  SecondOrStepTimer timer_;
  Output global_step_;
};

/// Writes how many steps run in a second, as `global_step/sec`.
class StepCounterHook : public SessionRunHook {
 public:
  StepCounterHook(const std::string& output_dir, std::optional<int64_t> every_n_steps = 100,
                  std::optional<double> every_n_secs = {}, std::shared_ptr<summary::FileWriter> writer = {});
  Status Begin(Graph& graph) override;
  Result<SessionRunArgs> BeforeRun(SessionRunContext& context) override;
  Status AfterRun(SessionRunContext& context, const Fetched& results) override;
  Status End(Session& session) override;

 private:
  SecondOrStepTimer timer_;
  const std::string output_dir_;
  std::shared_ptr<summary::FileWriter> writer_;
  Output global_step_;
};

struct SummarySaverOptions {
  std::optional<int64_t> save_steps = {};
  std::optional<double> save_secs = {};
  std::string output_dir = {};
  std::shared_ptr<summary::FileWriter> summary_writer = {};  // instead of a folder
  Output summary_op = {};  // does not exist: that of the collection "summary_op", which a Scaffold fills
};
/// Writes summaries every so many steps or seconds, also of the first step.
class SummarySaverHook : public SessionRunHook {
 public:
  explicit SummarySaverHook(SummarySaverOptions options);
  Status Begin(Graph& graph) override;
  Status AfterCreateSession(Session& session, const Coordinator& coordinator) override;
  Result<SessionRunArgs> BeforeRun(SessionRunContext& context) override;
  Status AfterRun(SessionRunContext& context, const Fetched& results) override;
  Status End(Session& session) override;

 private:
  SummarySaverOptions options_;
  SecondOrStepTimer timer_;
  Output global_step_;
  int64_t next_step_ = 0;
  bool wants_ = false;
  bool starts_ = true;
};

struct LoggingOptions {
  std::optional<int64_t> every_n_iter = {};
  std::optional<double> every_n_secs = {};
  bool at_end = false;
  std::function<void(const std::string& line)> print = {};  // empty: a line on stderr
};
/// Prints values every so many steps or seconds: "loss = 0.5, step = 3".
class LoggingTensorHook : public SessionRunHook {
 public:
  LoggingTensorHook(std::vector<std::pair<std::string, Output>> tensors, LoggingOptions options);
  Status Begin(Graph& graph) override;
  Result<SessionRunArgs> BeforeRun(SessionRunContext& context) override;
  Status AfterRun(SessionRunContext& context, const Fetched& results) override;
  Status End(Session& session) override;

 private:
  void Print(const Fetched& values);
  Fetch All() const;

  const std::vector<std::pair<std::string, Output>> tensors_;
  const LoggingOptions options_;
  std::optional<SecondOrStepTimer> timer_;
  int64_t step_ = 0;
  bool prints_ = false;
};

/// Ends the training if the loss is no number: InvalidArgument "NaN loss during training.", or a stop.
class NanTensorHook : public SessionRunHook {
 public:
  explicit NanTensorHook(const Output& loss, bool fail_on_nan_loss = true) : loss_(loss), fails_(fail_on_nan_loss) {}
  Result<SessionRunArgs> BeforeRun(SessionRunContext& context) override;
  Status AfterRun(SessionRunContext& context, const Fetched& results) override;

 private:
  const Output loss_;
  const bool fails_;
};

/// Runs operations at the end and keeps what they gave.
class FinalOpsHook : public SessionRunHook {
 public:
  explicit FinalOpsHook(Fetch final_ops, Feeds feeds = {}) : ops_(std::move(final_ops)), feeds_(std::move(feeds)) {}
  const Fetched& final_ops_values() const { return values_; }
  Status End(Session& session) override;

 private:
  const Fetch ops_;
  const Feeds feeds_;
  Fetched values_;
};

/// Waits before each step until the global step, which others count, is at least this.
class GlobalStepWaiterHook : public SessionRunHook {
 public:
  explicit GlobalStepWaiterHook(int64_t wait_until_step) : wait_until_step_(wait_until_step) {}
  Status Begin(Graph& graph) override;
  Status AfterCreateSession(Session& session, const Coordinator& coordinator) override;
  Result<SessionRunArgs> BeforeRun(SessionRunContext& context) override;

 private:
  const int64_t wait_until_step_;
  bool reached_ = false;
  std::optional<Coordinator> coordinator_;
  Output global_step_;
};

/// Feeds what a function gives for each step.
class FeedFnHook : public SessionRunHook {
 public:
  explicit FeedFnHook(std::function<Feeds()> feed_fn) : feed_fn_(std::move(feed_fn)) {}
  Result<SessionRunArgs> BeforeRun(SessionRunContext& context) override;

 private:
  const std::function<Feeds()> feed_fn_;
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_TRAINING_SESSION_RUN_HOOKS_H_
