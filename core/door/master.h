// A server's master: answers the calls of TensorFlow's MasterService with sessions of this process.
#ifndef WEIR_CORE_DOOR_MASTER_H_
#define WEIR_CORE_DOOR_MASTER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/cluster/cluster_spec.h"
#include "core/cluster/transport.h"
#include "core/cluster/worker.h"
#include "core/door/received.h"
#include "core/session/runtime.h"

namespace weir::door {

/// What clients may use.
struct Limits {
  uint64_t request_bytes = (uint64_t{1} << 31) - 1;
  uint64_t expansion_bytes = uint64_t{2} << 30;  // of the tensors of a request beyond its size
  size_t sessions = 1000;
  size_t callables = 10000;  // of a session
  size_t steps = 400;        // under way; each may hold a thread of the blocking pool
  KeptReplies::Limits kept = {};
};

struct MasterOptions {
  /// The task of the runtime's devices.
  cluster::TaskName task{"localhost", 0};
  /// The tasks that run the steps; null: this process alone.
  std::shared_ptr<const cluster::Workers> workers = {};
  Limits limits = {};
};

/// Variables belong to the server: they outlive sessions and are shared by name and container, unless a session's
/// ConfigProto says `isolate_session_state`. Queues and the like without a shared name belong to the session.
///
/// Errors have TensorFlow's codes and texts. Those of steps go into the response if the request says so; others are cut
/// to 3,072 bytes. A request with an id runs once. A reply to a step whose caller was gone is kept, and given to the
/// identical request that the same host sends next.
class Master final : public cluster::MasterService {
 public:
  Master(std::shared_ptr<session::Runtime> runtime, MasterOptions options);
  /// Closes all sessions and waits for the calls under way; the last `done` may still run.
  ~Master() override;
  Master(const Master&) = delete;
  Master& operator=(const Master&) = delete;

  void Call(cluster::MasterCall call, cluster::MasterDone done) override;
  bool StepsAreShort() const override;
  /// As Call, on this thread.
  Result<std::string> Answer(const cluster::MasterCall& call);
  /// Closes all sessions; later calls that need one fail.
  void Close();

  struct Counts {
    size_t sessions = 0;
    size_t calls = 0;         // under way
    size_t steps = 0;         // of these
    size_t kept = 0;          // replies
    uint64_t repeated = 0;    // requests that got a kept reply
  };
  /// For the status page and tests.
  Counts counts() const;

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace weir::door

#endif  // WEIR_CORE_DOOR_MASTER_H_
