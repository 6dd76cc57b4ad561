// Servers with the master and the transports of this build.
#ifndef WEIR_CORE_DOOR_SERVER_H_
#define WEIR_CORE_DOOR_SERVER_H_

#include <memory>

#include "core/base/status.h"
#include "core/cluster/server.h"

namespace weir::door {

/// cluster::Server::Start with this folder's Master and TransportOf; what `options` says of either wins.
Result<std::unique_ptr<cluster::Server>> StartServer(cluster::ServerOptions options);

}  // namespace weir::door

#endif  // WEIR_CORE_DOOR_SERVER_H_
