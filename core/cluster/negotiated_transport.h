// Several transports to one task.
#ifndef WEIR_CORE_CLUSTER_NEGOTIATED_TRANSPORT_H_
#define WEIR_CORE_CLUSTER_NEGOTIATED_TRANSPORT_H_

#include <memory>
#include <vector>

#include "core/cluster/plugin_transport.h"
#include "core/cluster/transport.h"

namespace weir::cluster {

/// Tasks meet by `base`, whose listener tells the addresses of the others. A worker is called by the first preferred
/// transport that its task has and by which it answers as the same incarnation, until that fails; before and afterwards
/// by `base`. Calls of masters go by `base`.
std::shared_ptr<Transport> MakeNegotiated(std::vector<std::shared_ptr<PluginTransport>> preferred,
                                          std::shared_ptr<PluginTransport> base, TransportNote note);

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_NEGOTIATED_TRANSPORT_H_
