// What tells a task in another process that the master of a session lives.
#ifndef WEIR_CORE_CLUSTER_SESSION_HOLD_H_
#define WEIR_CORE_CLUSTER_SESSION_HOLD_H_

#include <cstdint>
#include <memory>

#include "core/cluster/wire_channel.h"

namespace weir::cluster {

/// A call that stays open as long as this object lives, begun anew on every connection. A task that misses it for long
/// drops the session. It ends by itself where the task does not know the session. Thread-safe.
class SessionHold {
 public:
  SessionHold(std::shared_ptr<WireChannel> channel, uint64_t session);
  ~SessionHold();
  SessionHold(const SessionHold&) = delete;
  SessionHold& operator=(const SessionHold&) = delete;

 private:
  class Call;
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_SESSION_HOLD_H_
