// Servers: the tasks of a cluster, as in tf.train.Server.
#ifndef WEIR_CORE_CLIENT_DISTRIBUTED_SERVER_H_
#define WEIR_CORE_CLIENT_DISTRIBUTED_SERVER_H_

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/base/status.h"
#include "core/client/session/session.h"
#include "core/cluster/cluster_spec.h"

namespace weir::cluster {
class Server;
}

namespace weir {

using ClusterSpec = cluster::ClusterSpec;

struct ServerArgs {
  std::optional<std::string> job_name = {};  // absent: the only job
  std::optional<int> task_index = {};        // absent: the only task of the job
  ConfigProto config = {};                   // its `cluster` says what protects the server
  bool start = true;
};

/// A task of a cluster in this process: it listens at its address, runs parts of steps on its devices, keeps its
/// variables, and opens sessions for clients (`Session session(server.target())`). Thread-safe.
class Server {
 public:
  /// Errors of names have TensorFlow's codes and texts ("Job \"local\" was not defined in cluster"); FailedPrecondition
  /// names the port that is taken, and its owner where known.
  static Result<std::unique_ptr<Server>> Make(const ClusterSpec& cluster, const ServerArgs& args = {});
  /// A cluster of this process alone, at a free port.
  static Result<std::unique_ptr<Server>> CreateLocalServer(const ConfigProto& config = {}, bool start = true);
  /// As Stop.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// "weir://host:port"; empty before Start.
  std::string target() const;
  const cluster::TaskName& task() const { return task_; }
  const ClusterSpec& cluster() const { return cluster_; }

  /// Listens. FailedPrecondition after Stop.
  Status Start();
  /// Blocks until Stop, or until EndJob of another task if the configuration has `exit_when_done`.
  Status Join();
  /// Lets steps under way end within cluster.drain_limit_ms, then ends all sessions and frees the port. Idempotent.
  Status Stop();
  /// Tells the other tasks that the job is done: their Join returns if their configuration has `exit_when_done`.
  Status EndJob();

 private:
  Server(ClusterSpec cluster, cluster::TaskName task, ConfigProto config)
      : cluster_(std::move(cluster)), task_(std::move(task)), config_(std::move(config)) {}
  std::shared_ptr<cluster::Server> running() const;

  const ClusterSpec cluster_;
  const cluster::TaskName task_;
  const ConfigProto config_;
  mutable std::mutex mutex_;  // protects all below
  std::shared_ptr<cluster::Server> server_;
  bool stopped_ = false;
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_DISTRIBUTED_SERVER_H_
