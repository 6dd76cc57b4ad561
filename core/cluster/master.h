// Sessions whose steps run in the tasks of a cluster.
#ifndef WEIR_CORE_CLUSTER_MASTER_H_
#define WEIR_CORE_CLUSTER_MASTER_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/cluster/worker.h"
#include "core/session/runtime.h"
#include "core/session/session.h"

namespace weir::cluster {

struct MasterOptions {
  /// The task of this process: it gets the nodes without a request, and its devices fold constants.
  TaskName task;
  /// Partial device names; the session sees devices that match one of them, and those of `task`. Empty = all.
  std::vector<std::string> device_filters;
  /// Variables are this session's alone.
  bool isolate_session_state = false;
  /// Limit for the creation of the session and the registration of a step's parts.
  std::chrono::milliseconds creation_limit{300000};
};

/// What session::Session::Make needs for a session in the cluster.
struct ClusterSession {
  std::shared_ptr<session::Runtime> runtime;
  session::SessionOptions options;
};

/// Asks all tasks for their devices and begins a session in each, which ends with the last copy of `options`. `runtime`
/// is that of this process. Without `options.default_device`, nodes without a request run in the own task, as in
/// TensorFlow. An error lists every task that did not answer, with its reason; NotFound if the own task is not in this
/// process; InvalidArgument for a malformed filter.
Result<ClusterSession> OpenClusterSession(const std::shared_ptr<session::Runtime>& runtime,
                                          std::shared_ptr<const Workers> workers, const MasterOptions& master,
                                          session::SessionOptions options);

/// Clears containers in all tasks, the default one if the list is empty. Returns the first error of a task.
Status ResetContainers(const Workers& workers, const std::vector<std::string>& containers);

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_MASTER_H_
