// A training program's helper: initializes or restores, saves, writes summaries, and stops all threads together.
#ifndef WEIR_CORE_CLIENT_TRAINING_SUPERVISOR_H_
#define WEIR_CORE_CLIENT_TRAINING_SUPERVISOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/client/saver/saver.h"
#include "core/client/session/session.h"
#include "core/client/training/coordinator.h"
#include "core/client/training/queue_runner.h"
#include "core/client/training/ready_session.h"
#include "core/client/training/summary.h"

namespace weir {

/// Of optional members: without a value the first entry of the collection, else one that is made; a value that does not
/// exist: none.
struct SupervisorOptions {
  std::optional<Output> ready_op = {};
  std::optional<Output> ready_for_local_init_op = {};
  bool is_chief = true;
  std::optional<Operation> init_op = {};
  Feeds init_feeds = {};
  std::optional<Operation> local_init_op = {};
  std::string logdir = {};  // shared by all tasks; empty: nothing is restored or written
  std::optional<Output> summary_op = {};
  std::optional<Saver> saver = {};
  bool with_saver = true;  // false: none
  std::optional<Output> global_step = {};
  double save_summaries_secs = 120;  // 0: no summaries
  double save_model_secs = 600;      // 0: no checkpoints
  double recovery_wait_secs = 30;
  double stop_grace_secs = 120;
  std::string checkpoint_basename = "model.ckpt";
  std::shared_ptr<summary::FileWriter> summary_writer = {};  // empty: one for logdir
  bool with_summary_writer = true;                           // false: none
  std::function<Status(Session&)> init_fn = {};
};

struct WaitOptions {
  SessionMaker make = {};
  bool wait_for_checkpoint = false;
  double max_wait_secs = 7200;
  bool start_standard_services = true;  // also the queue runners
};

/// One per task. Finalizes the graph, which outlives it. Functions with an error of the constructor return it:
/// InvalidArgument "When using replicas, all Variables must have their device set: …". Thread-safe but for the
/// functions that make sessions.
class Supervisor {
 public:
  explicit Supervisor(SupervisorOptions options = {}, Graph& graph = Graph::Default());
  /// Stops the services.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  const Status& status() const { return status_; }
  bool is_chief() const { return options_.is_chief; }
  const Coordinator& coord() const { return coordinator_; }
  const SessionManager& session_manager() const { return *manager_; }
  const Operation& init_op() const { return init_op_; }
  const Output& ready_op() const { return ready_op_; }
  const Output& ready_for_local_init_op() const { return ready_for_local_init_op_; }
  const Operation& local_init_op() const { return local_init_op_; }
  const Output& summary_op() const { return summary_op_; }
  const Output& global_step() const { return global_step_; }
  /// Null without one.
  Saver* saver() { return saver_ ? &*saver_ : nullptr; }
  summary::FileWriter* summary_writer() const { return writer_.get(); }
  /// "LOGDIR/model.ckpt"; empty without logdir and for others than the chief.
  const std::string& save_path() const { return save_path_; }
  double save_summaries_secs() const { return options_.save_summaries_secs; }
  double save_model_secs() const { return options_.save_model_secs; }

  /// The chief restores the newest checkpoint of logdir or initializes; others wait. The caller stops the supervisor
  /// before the session ends. Errors as SessionManager's.
  Result<std::unique_ptr<Session>> PrepareOrWaitForSession(const WaitOptions& options = {});
  /// Runs `body` with such a session, then stops the services and closes the session. Returns the first error of body,
  /// services and queue runners; OutOfRange is none.
  Status ManagedSession(const std::function<Status(Session&)>& body, const WaitOptions& options = {});

  /// Of the chief: threads for summaries, steps per second and checkpoints. FailedPrecondition "Only chief supervisor
  /// can start standard services. …". Without logdir only a line on stderr.
  Result<std::vector<ThreadPtr>> StartStandardServices(Session& session);
  /// Empty: those of the collection.
  Result<std::vector<ThreadPtr>> StartQueueRunners(Session& session, const std::vector<QueueRunner>& runners = {});
  /// A thread that calls a function every so many seconds until the stop.
  ThreadPtr Loop(double timer_interval_secs, std::function<Status()> target);

  void RequestStop(const Status& why = {}) { coordinator_.RequestStop(why); }
  bool ShouldStop() const { return coordinator_.ShouldStop(); }
  void WaitForStop() const { coordinator_.WaitForStop(); }
  /// Stops and joins all threads. The error of the coordinator.
  Status Stop(bool close_summary_writer = true, bool ignore_live_threads = false);

  /// Writes what a summary op gave. Without a step, that of the global step. FailedPrecondition "Writing a summary
  /// requires a summary writer."
  Status SummaryComputed(Session& session, const Tensor& summary, std::optional<int64_t> global_step = {});

 private:
  Status BuildOps(Graph& graph);
  Status CheckDevices(Graph& graph) const;
  Status WriteGraphFiles();
  Status StartServices(Session& session);
  Status SaveSummary(Session& session);
  Status SaveModel(Session& session);

  SupervisorOptions options_;
  Graph* const graph_;
  Status status_;
  Coordinator coordinator_;
  std::optional<SessionManager> manager_;
  Operation init_op_, local_init_op_;
  Output ready_op_, ready_for_local_init_op_, summary_op_, global_step_;
  std::optional<Saver> saver_;
  std::shared_ptr<summary::FileWriter> writer_;
  std::string save_path_;
  bool graph_written_ = false;
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_TRAINING_SUPERVISOR_H_
