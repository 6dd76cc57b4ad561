// The session of a client in another process.
#ifndef WEIR_CORE_DOOR_CLIENT_SESSION_H_
#define WEIR_CORE_DOOR_CLIENT_SESSION_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/cluster/cluster_spec.h"
#include "core/door/step_messages.h"
#include "core/graph/definition.h"
#include "core/runtime/cancellation.h"
#include "core/runtime/resource.h"
#include "core/session/runtime.h"
#include "core/session/session.h"

namespace weir::tf {
class MakeCallableRequest;
class PartialRunSetupRequest;
}  // namespace weir::tf

namespace weir::door {

/// What ends a step from outside.
struct StepEnd {
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  runtime::Cancellation* caller = nullptr;  // may be null
};

/// A graph that grows, and sessions on it. Thread-safe: the graph may grow while steps run. These finish on the graph
/// they began with; variables and what kernels keep are common to both.
class ClientSession {
 public:
  struct Setup {
    std::shared_ptr<session::Runtime> runtime;
    session::SessionOptions options;
    /// Where nodes without a shared name keep their resources, cleared at the end; empty: tasks see to it.
    std::string private_container = {};
    /// Time limit of steps whose caller names none, in milliseconds; 0 = none.
    int64_t step_limit_ms = 0;
    /// Named by errors of ops; nothing if the tasks name themselves.
    std::optional<cluster::TaskName> task = {};
    cluster::TaskName master = {};                 // named by errors that are found before tasks get their parts
    uint64_t expansion_bytes = uint64_t{2} << 30;  // limit of a request's tensors beyond its size
    size_t most_callables = 10000;
  };
  /// `graph`: a serialized GraphDef, which may be empty.
  static Result<std::shared_ptr<ClientSession>> Open(Setup setup, std::string_view graph);
  ~ClientSession();
  ClientSession(const ClientSession&) = delete;
  ClientSession& operator=(const ClientSession&) = delete;

  /// Adds nodes and returns the new version. Aborted unless `version` is the current one; InvalidArgument for a node
  /// that exists. The graph is unchanged on error.
  Result<int64_t> Extend(std::string_view graph, int64_t version);
  /// `result` may have metadata of a step that fails.
  Status RunStep(const StepRequest& request, const StepEnd& end, StepResult& result);
  Result<std::string> SetUpPartialRun(const tf::PartialRunSetupRequest& request);
  Result<int64_t> MakeCallable(const tf::MakeCallableRequest& request);
  Status RunCallable(const CallableRequest& request, const StepEnd& end, StepResult& result);
  void ReleaseCallable(int64_t handle);
  std::vector<session::DeviceAttributes> ListDevices();
  /// The incarnation of a device's task; `own` if this process is alone.
  uint64_t IncarnationOf(std::string_view device, uint64_t own) const;
  /// Steps under way end with Cancelled, later ones with FailedPrecondition.
  void Close();

 private:
  /// A graph and the session on it.
  struct Generation {
    std::unique_ptr<graph::Definition> graph;
    std::unique_ptr<session::Session> session;
    int users = 0;  // calls that read the graph; under mutex_
  };
  class Use;
  struct Callable;
  struct PartialRun;

  explicit ClientSession(Setup setup);
  Status Import(std::string_view graph, graph::Definition& into) const;
  Result<std::shared_ptr<Generation>> MakeGeneration(std::string_view earlier, std::string_view graph) const;
  Status Grow(std::string_view graph);
  Status RunPart(const tf::RunStepRequest& request, const std::vector<session::Feed>& feeds,
                 const session::RunOptions& options, StepResult& result);
  Status OfStep(const Status& status) const;

  const Setup setup_;
  std::mutex growing_;  // held by Extend
  mutable std::mutex mutex_;  // protects all below
  std::shared_ptr<Generation> current_;
  std::vector<std::weak_ptr<Generation>> earlier_;
  int64_t version_ = 0;  // also under growing_
  bool closed_ = false;
  int64_t next_callable_ = 0;
  std::map<int64_t, std::shared_ptr<const Callable>> callables_;
  int64_t next_partial_ = 0;
  std::map<int64_t, std::shared_ptr<PartialRun>> partial_runs_;
};

}  // namespace weir::door

#endif  // WEIR_CORE_DOOR_CLIENT_SESSION_H_
