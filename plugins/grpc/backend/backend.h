// The library that holds gRPC, as the plugin sees it.
#ifndef WEIR_PLUGINS_GRPC_BACKEND_BACKEND_H_
#define WEIR_PLUGINS_GRPC_BACKEND_BACKEND_H_

#include "sdk/abi/frontdoor.h"
#include "sdk/abi/host.h"

namespace weir_grpc {

#define WEIR_GRPC_BACKEND_SYMBOL "weir_grpc_backend"
/// The complete table of frontdoor/1. gRPC's log goes to `host`, which may be null.
using BackendFn = const weir_front_door_api* (*)(const weir_host* host);

}  // namespace weir_grpc

#endif  // WEIR_PLUGINS_GRPC_BACKEND_BACKEND_H_
