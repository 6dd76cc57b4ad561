// Sessions of training programs: initialized, restored from a checkpoint, or waited for.
#ifndef WEIR_CORE_CLIENT_TRAINING_READY_SESSION_H_
#define WEIR_CORE_CLIENT_TRAINING_READY_SESSION_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/client/graph/graph.h"
#include "core/client/saver/saver.h"
#include "core/client/session/session.h"

namespace weir {

/// Makes a session on a graph; its status says whether it can run. Empty: a session of this process.
using SessionMaker = std::function<std::unique_ptr<Session>(Graph& graph)>;

struct Readiness {
  bool ready = true;
  std::string why = {};  // "Variables not initialized: b2"
};
/// Runs an op that lists what is not ready: ready if the op does not exist or its result is empty. `text` begins the
/// line on stderr for an error that says something else.
Result<Readiness> ReadyToRun(const Output& ready_op, Session& session, std::string_view text);

struct SessionManagerOptions {
  Operation local_init_op = {};         // runs in every new session; may not exist
  Output ready_op = {};                 // names of what is not initialized; may not exist
  Output ready_for_local_init_op = {};  // likewise before local_init_op
  double recovery_wait_secs = 30;       // between two looks
  Feeds local_init_feeds = {};
};

struct PrepareOptions {
  SessionMaker make = {};
  Operation init_op = {};
  std::optional<Saver> saver = {};
  std::string checkpoint_dir = {};
  std::string checkpoint_path = {};  // this one, instead of the newest of the folder
  bool wait_for_checkpoint = false;
  double max_wait_secs = 7200;
  Feeds init_feeds = {};
  std::function<Status(Session&)> init_fn = {};  // after init_op
};

/// Makes sessions that are ready to use. The graph must outlive it.
class SessionManager {
 public:
  explicit SessionManager(SessionManagerOptions options = {}, Graph& graph = Graph::Default());

  /// Of the chief: restores the newest checkpoint of the folder, or initializes. FailedPrecondition "Init operations
  /// did not make model ready.  Init op: init, init fn: None, local_init_op: None, error: Variables not initialized:
  /// b2", "Model is not initialized and no init_op or init_fn or local_init_op was given".
  Result<std::unique_ptr<Session>> PrepareSession(const PrepareOptions& options) const;
  /// A session, and whether it was restored and is ready.
  Result<std::pair<std::unique_ptr<Session>, bool>> RecoverSession(const PrepareOptions& options) const;
  /// Of the others: a session once the chief has made the model ready; tasks that are not there yet are waited for.
  /// DeadlineExceeded "Session was not ready after waiting 2 secs." No limit: as long as it takes.
  Result<std::unique_ptr<Session>> WaitForSession(const SessionMaker& make = {},
                                                  std::optional<double> max_wait_secs = {}) const;

 private:
  Result<std::unique_ptr<Session>> Open(const SessionMaker& make) const;
  /// True if a checkpoint was restored.
  Result<bool> Restore(Session& session, const PrepareOptions& options) const;
  Result<Readiness> RunLocalInit(Session& session) const;

  const SessionManagerOptions options_;
  Graph* const graph_;
  Status status_;
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_TRAINING_READY_SESSION_H_
