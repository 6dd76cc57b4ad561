// Queues that threads fill in the background.
#ifndef WEIR_CORE_CLIENT_TRAINING_QUEUE_RUNNER_H_
#define WEIR_CORE_CLIENT_TRAINING_QUEUE_RUNNER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/client/containers/queue.h"
#include "core/client/session/session.h"
#include "core/client/training/coordinator.h"

namespace weir {

struct QueueRunnerOptions {
  Operation close_op = {};   // does not exist: the queue's Close
  Operation cancel_op = {};  // does not exist: its Close that cancels pending enqueues
  /// Errors of an enqueue after which its thread ends; the last one to end closes the queue.
  std::vector<Code> queue_closed_codes = {Code::kOutOfRange};
  /// After a stop, steps that still wait so long once the queue is closed are cancelled.
  double cancel_after_secs = 1;
};

/// Threads for the enqueue operations of a queue, one for each element of the list, and one that closes the queue when
/// the coordinator stops. Copies share their errors.
class QueueRunner {
 public:
  /// Adds the nodes that close the queue: `q_Close`, `q_Close_1`.
  QueueRunner(const QueueBase& queue, std::vector<Operation> enqueue_ops, const QueueRunnerOptions& options = {},
              Where where = Where::current());
  /// From a serialized QueueRunnerDef; `prefix`: put before its names. NotFound names a missing node.
  static Result<QueueRunner> FromProto(std::string_view def, Graph& graph = Graph::Default(),
                                       const std::string& prefix = {});
  std::string ToProto() const;

  /// Of the queue.
  const std::string& name() const { return name_; }
  const std::vector<Operation>& enqueue_ops() const { return enqueue_ops_; }
  const Operation& close_op() const { return options_.close_op; }
  const Operation& cancel_op() const { return options_.cancel_op; }

  /// `QueueRunnerThread-q-q_enqueue`, …, and with a coordinator `QueueRunnerThread-q-close_on_stop`, registered with
  /// it. An error of an enqueue requests the stop; without coordinator it is kept. The session outlives the threads.
  std::vector<ThreadPtr> CreateThreads(Session& session, const Coordinator* coordinator = nullptr,
                                       bool start = true) const;
  /// Errors of threads that had no coordinator.
  std::vector<Status> errors_raised() const;

 private:
  friend struct NoValue<QueueRunner>;
  struct Shared;
  struct Round;
  QueueRunner();

  std::string name_;
  std::vector<Operation> enqueue_ops_;
  QueueRunnerOptions options_;
  std::shared_ptr<Shared> shared_;
};

template <>
struct NoValue<QueueRunner> {
  static QueueRunner Make() { return QueueRunner(); }
};

/// To the collection, as a serialized QueueRunnerDef.
void AddQueueRunner(const QueueRunner& runner, const std::string& collection = keys::kQueueRunners,
                    Graph& graph = Graph::Default());
/// The runners of a collection; errors of QueueRunner::FromProto.
Result<std::vector<QueueRunner>> QueueRunnersIn(Graph& graph, const std::string& collection = keys::kQueueRunners);

struct StartOptions {
  Session* session = nullptr;  // null: the default session
  const Coordinator* coordinator = nullptr;
  bool start = true;
  std::string collection = keys::kQueueRunners;
};
/// Creates the threads of all queue runners of the session's graph. InvalidArgument "Cannot start queue runners: No
/// default session is registered. …".
Result<std::vector<ThreadPtr>> StartQueueRunners(const StartOptions& options = {});

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_TRAINING_QUEUE_RUNNER_H_
