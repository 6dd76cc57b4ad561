// A front door that a plugin brings.
#ifndef WEIR_CORE_KERNEL_FRONT_DOOR_ENTRY_H_
#define WEIR_CORE_KERNEL_FRONT_DOOR_ENTRY_H_

#include <memory>
#include <string>

#include "sdk/abi/frontdoor.h"
#include "sdk/abi/plugin.h"

namespace weir::kernel {

struct FrontDoorEntry {
  const weir_front_door_api* api = nullptr;  // complete (IsComplete); lives as long as the process
  std::string plugin;
  std::shared_ptr<const void> keep;  // keeps the plugin from being shut down
};

/// True if the table has every function.
inline bool IsComplete(const weir_front_door_api* api) {
  return WEIR_HAS(api, serve) && WEIR_HAS(api, address) && WEIR_HAS(api, answer) && WEIR_HAS(api, refuse) &&
         WEIR_HAS(api, stop) && WEIR_HAS(api, connect) && WEIR_HAS(api, call) && WEIR_HAS(api, cancel) &&
         WEIR_HAS(api, disconnect) && api->scheme.size > 0;
}

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_FRONT_DOOR_ENTRY_H_
