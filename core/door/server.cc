#include "core/door/server.h"

#include <utility>

#include "core/door/master.h"
#include "core/door/transports.h"

namespace weir::door {

Result<std::unique_ptr<cluster::Server>> StartServer(cluster::ServerOptions options) {
  if (!options.find_transport) options.find_transport = TransportOf;
  if (!options.make_master) {
    options.make_master = [](const cluster::MasterParts& parts) -> Result<std::shared_ptr<cluster::MasterService>> {
      MasterOptions master;
      master.task = parts.task;
      master.workers = parts.workers;
      return std::shared_ptr<cluster::MasterService>(std::make_shared<Master>(parts.runtime, std::move(master)));
    };
  }
  return cluster::Server::Start(std::move(options));
}

}  // namespace weir::door
