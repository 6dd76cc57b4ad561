// Sessions whose master is a server.
#ifndef WEIR_CORE_CLIENT_DISTRIBUTED_REMOTE_SESSION_H_
#define WEIR_CORE_CLIENT_DISTRIBUTED_REMOTE_SESSION_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/client/session/session_interface.h"
#include "core/cluster/transport.h"
#include "core/config/config.h"

namespace weir {

struct RemoteOptions {
  std::string target = {};  // "weir://host:port", for messages
  std::string config = {};  // a serialized ConfigProto
  /// Time limit of runs that specify none, and of everything that a session waits for; 0 = none.
  int64_t operation_timeout_in_ms = 0;
  /// Limit for the creation of the session where there is no other.
  std::chrono::milliseconds creation_limit{300000};
};

/// A session on `graph`, which outlives it, at a server. The server gets the graph on the first use, and nodes that
/// were added since before later runs. Until then, and while it answers Unavailable, the session waits for the server,
/// with a line on standard error per new reason; DeadlineExceeded then says the last one. Unimplemented for run options
/// that only sessions of this process have.
std::unique_ptr<SessionInterface> MakeRemoteSession(Graph& graph, std::shared_ptr<cluster::MasterService> master,
                                                    RemoteOptions options);

/// A session at `target`: in this process for "" and "local", else at the server behind "weir://host:port" or
/// "grpc://host:port". NotFound for another scheme; InvalidArgument for an address that is none.
Result<std::unique_ptr<SessionInterface>> ConnectSession(Graph& graph, const std::string& target,
                                                         const config::Config& config);

/// Clears containers in all tasks of a server, the default one if the list is empty.
Status ResetServer(const std::string& target, const std::vector<std::string>& containers,
                   const config::Config& config = {});

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_DISTRIBUTED_REMOTE_SESSION_H_
