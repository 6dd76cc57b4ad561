// Sessions that initialize or recover themselves, and call hooks around every step.
#ifndef WEIR_CORE_CLIENT_TRAINING_MONITORED_SESSION_H_
#define WEIR_CORE_CLIENT_TRAINING_MONITORED_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/client/training/coordinator.h"
#include "core/client/training/ready_session.h"
#include "core/client/training/session_run_hooks.h"

namespace weir {

struct ScaffoldOptions {
  Operation init_op = {};  // what does not exist is looked for in its collection, else made
  Feeds init_feeds = {};
  std::function<Status(Session&)> init_fn = {};
  Output ready_op = {};
  Output ready_for_local_init_op = {};
  Operation local_init_op = {};
  Feeds local_init_feeds = {};
  Output summary_op = {};
  std::optional<Saver> saver = {};
};

/// The operations that a training program needs beside its model.
class Scaffold {
 public:
  explicit Scaffold(ScaffoldOptions options = {}) : options_(std::move(options)) {}
  /// Makes what is missing, adds it to its collections, and finalizes the graph. A second call has no effect.
  /// FailedPrecondition "More than one item in the collection …".
  Status Finalize(Graph& graph = Graph::Default());

  const Operation& init_op() const { return options_.init_op; }
  const Output& ready_op() const { return options_.ready_op; }
  const Output& ready_for_local_init_op() const { return options_.ready_for_local_init_op; }
  const Operation& local_init_op() const { return options_.local_init_op; }
  const Output& summary_op() const { return options_.summary_op; }
  const std::optional<Saver>& saver() const { return options_.saver; }
  const ScaffoldOptions& options() const { return options_; }

 private:
  ScaffoldOptions options_;
  bool finalized_ = false;
};

struct MonitoredSessionOptions {
  bool is_chief = true;
  SessionMaker make = {};
  std::shared_ptr<Scaffold> scaffold = {};  // empty: of its own
  std::string checkpoint_dir = {};          // from which the chief restores
  std::string checkpoint_path = {};         // instead: this one
  std::vector<HookPtr> hooks = {};
  double max_wait_secs = 7200;     // for the chief
  double recovery_wait_secs = 30;  // between two looks
  double stop_grace_period_secs = 120;
  bool should_recover = true;          // by a new session after Aborted and Unavailable
  int max_recoveries = 10;             // in a row, without a step that succeeds
  double recovery_backoff_secs = 0.1;  // before the second one in a row; twice as long before each further one
  Graph* graph = nullptr;              // null: the default graph
};

/// A session whose graph is finalized. It starts the queue runners, calls the hooks, and after Aborted or Unavailable,
/// which a lost task gives, makes another session, restored from the last checkpoint, and runs the step again. Other
/// errors are the caller's. One thread runs steps.
class MonitoredSession {
 public:
  explicit MonitoredSession(MonitoredSessionOptions options = {});
  /// Closes.
  ~MonitoredSession();
  MonitoredSession(const MonitoredSession&) = delete;
  MonitoredSession& operator=(const MonitoredSession&) = delete;

  /// Why there is no session, if so.
  const Status& status() const { return status_; }
  Graph& graph() const { return *graph_; }
  /// FailedPrecondition "Run called even after should_stop requested."
  Result<Fetched> Run(const Fetch& fetch, const Feeds& feeds = {});
  /// True once a hook, a thread or Close stops the training.
  bool ShouldStop();
  /// Ends threads and session. `why`: the error that ended the caller's loop; without one, and after OutOfRange, which
  /// is an end of data, the hooks' End runs. Returns an error that is neither, else the first one of closing.
  Status Close(const Status& why = {});
  /// How many sessions were made.
  int sessions() const { return sessions_; }
  /// The present session, or null.
  Session* session() const { return session_.get(); }

 private:
  Status Create();
  Status CreateOnce();
  Status Recover(const Status& why);
  Result<Fetched> RunOnce(const Fetch& fetch, const Feeds& feeds);
  Result<Feeds> GatherFeeds(std::vector<SessionRunArgs>& asked, const Feeds& feeds) const;
  Status EndSession();

  MonitoredSessionOptions options_;
  Graph* graph_;
  Status status_;
  std::unique_ptr<Coordinator> coordinator_;  // of the present session
  std::unique_ptr<Session> session_;
  int sessions_ = 0, failures_ = 0;
  bool hooks_stop_ = false, closed_ = false;
};

struct TrainingSessionOptions {
  bool is_chief = true;
  SessionMaker make = {};
  std::string checkpoint_dir = {};
  std::shared_ptr<Scaffold> scaffold = {};
  std::vector<HookPtr> hooks = {};
  std::vector<HookPtr> chief_only_hooks = {};
  std::optional<double> save_checkpoint_secs = {};  // neither this nor steps: 600; 0: no checkpoints
  std::optional<int64_t> save_checkpoint_steps = {};
  std::optional<int64_t> save_summaries_steps = {};  // neither this nor secs: 100; 0: no summaries
  std::optional<double> save_summaries_secs = {};
  double stop_grace_period_secs = 120;
  int64_t log_step_count_steps = 100;  // 0: no step counter
  double max_wait_secs = 7200;
  double recovery_wait_secs = 30;
  std::string summary_dir = {};  // empty: checkpoint_dir
  bool save_graph_def = true;
  int max_recoveries = 10;
  Graph* graph = nullptr;
};
/// A MonitoredSession with the hooks of a training: of the chief those that save checkpoints and summaries and count
/// steps, in `checkpoint_dir` if given. Others only wait for the chief.
std::unique_ptr<MonitoredSession> MonitoredTrainingSession(const TrainingSessionOptions& options = {});

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_TRAINING_MONITORED_SESSION_H_
