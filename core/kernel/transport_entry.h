// A transport that a plugin brings.
#ifndef WEIR_CORE_KERNEL_TRANSPORT_ENTRY_H_
#define WEIR_CORE_KERNEL_TRANSPORT_ENTRY_H_

#include <memory>
#include <string>

#include "sdk/abi/transport.h"

namespace weir::kernel {

struct TransportEntry {
  const weir_transport_api* api = nullptr;  // complete (IsComplete); lives as long as the process
  std::string plugin;
  std::shared_ptr<const void> keep;  // keeps the plugin from being shut down
};

/// True if the table has all functions and a scheme.
inline bool IsComplete(const weir_transport_api* api) {
  return WEIR_HAS(api, listen) && WEIR_HAS(api, address) && WEIR_HAS(api, drain) && WEIR_HAS(api, close) &&
         WEIR_HAS(api, connect) && WEIR_HAS(api, disconnect) && WEIR_HAS(api, call) && WEIR_HAS(api, cancel) &&
         WEIR_HAS(api, reply) && api->scheme.size > 0;
}

}  // namespace weir::kernel

#endif  // WEIR_CORE_KERNEL_TRANSPORT_ENTRY_H_
