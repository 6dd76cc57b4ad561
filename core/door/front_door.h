// Foreign protocols, which plugins speak, as transports.
#ifndef WEIR_CORE_DOOR_FRONT_DOOR_H_
#define WEIR_CORE_DOOR_FRONT_DOOR_H_

#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/cluster/transport.h"
#include "core/plugin/catalogue.h"

namespace weir::door {

/// The transport whose targets begin with `scheme`, of a plugin of the catalogue, which it keeps. It offers and reaches
/// masters only: Listen needs Services::master and no worker, ConnectWorker returns Unimplemented. NotFound lists the
/// schemes there are, and the reasons of plugins that were not loaded.
Result<std::shared_ptr<cluster::Transport>> FrontDoor(const plugin::Catalogue& plugins, std::string_view scheme);

/// As above for a plugin's entry.
std::shared_ptr<cluster::Transport> MakeFrontDoor(const kernel::FrontDoorEntry& entry);

}  // namespace weir::door

#endif  // WEIR_CORE_DOOR_FRONT_DOOR_H_
