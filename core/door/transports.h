// The transports of this process by scheme.
#ifndef WEIR_CORE_DOOR_TRANSPORTS_H_
#define WEIR_CORE_DOOR_TRANSPORTS_H_

#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/cluster/transport.h"
#include "core/session/runtime.h"

namespace weir::door {

/// Adds a transport of this program; it comes before plugins' and replaces an added one of its scheme. Thread-safe.
void AddTransport(std::shared_ptr<cluster::Transport> transport);
/// Removes an added one.
void RemoveTransport(const std::string& scheme);

/// NotFound with the schemes that there are. Thread-safe.
Result<std::shared_ptr<cluster::Transport>> TransportOf(const std::string& scheme, const session::Runtime& runtime);

}  // namespace weir::door

#endif  // WEIR_CORE_DOOR_TRANSPORTS_H_
