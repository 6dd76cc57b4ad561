// The tasks that run the steps of a session, each with a session of its own.
#ifndef WEIR_CORE_CLUSTER_CLUSTER_TASKS_H_
#define WEIR_CORE_CLUSTER_CLUSTER_TASKS_H_

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/cluster/task_program.h"
#include "core/cluster/worker.h"
#include "core/session/session.h"
#include "core/session/tasks.h"

namespace weir::cluster {

/// How the parts of a session with these options are planned. State is shared.
WorkerSessionSpec SpecFrom(const session::SessionOptions& options);

/// Ends the sessions in all tasks at its end. Thread-safe once all are open.
class ClusterTasks final : public session::Tasks {
 public:
  /// `limit`: for the registration of a step's parts; `grace`: the time that tasks have to end a cancelled step.
  ClusterTasks(std::shared_ptr<const Workers> workers, std::chrono::milliseconds limit, std::chrono::milliseconds grace,
               OwnParts own = OwnParts::kRegistered);
  ~ClusterTasks() override;

  /// The handle of the session in all tasks.
  uint64_t session() const { return numbers_->session; }
  /// Begins the session in a task.
  Status Open(const std::shared_ptr<Worker>& worker, WorkerSessionSpec spec, Clock::time_point deadline);

  uint64_t IncarnationOf(std::string_view device) const override;
  OwnParts own_parts() const override { return own_; }
  bool IsHere(std::string_view device) const override;
  Result<std::unique_ptr<session::TaskProgram>> Register(std::vector<graph::Part> parts, size_t fetches) override;

 private:
  const std::shared_ptr<const Workers> workers_;
  const std::chrono::milliseconds limit_, grace_;
  const OwnParts own_;
  const std::shared_ptr<RequestNumbers> numbers_ = std::make_shared<RequestNumbers>();
  std::vector<std::shared_ptr<Worker>> opened_;
  std::map<TaskName, uint64_t> incarnations_;
};

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_CLUSTER_TASKS_H_
