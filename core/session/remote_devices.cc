#include "core/session/remote_devices.h"

#include "core/runtime/node_resources.h"
#include "core/runtime/resource.h"
#include "core/session/runtime.h"
#include "core/session/session.h"

namespace weir::session {

Status UseRemoteDevices(const Runtime& runtime, SessionOptions& options) {
  if (runtime.remote == nullptr || options.tasks != nullptr) return Status();
  options.replace_period = 0;  // only ops of this process are measured
  if (!options.node_resources) options.node_resources = std::make_shared<runtime::NodeResources>();
  if (!options.resources) options.resources = std::make_shared<runtime::ResourceScope>();
  WEIR_ASSIGN(options.tasks, runtime.remote->Begin(options));
  return Status();
}

}  // namespace weir::session
