// A gRPC client whose calls are bytes.
#ifndef WEIR_PLUGINS_GRPC_BACKEND_CLIENT_H_
#define WEIR_PLUGINS_GRPC_BACKEND_CLIENT_H_

#include "sdk/abi/frontdoor.h"

namespace weir_grpc {

int32_t Connect(const weir_door_options* options, weir_door_client** client, weir_error* error) noexcept;
int32_t Call(weir_door_client* client, uint64_t call, const weir_door_request* request,
             void (*done)(void* arg, int32_t code, weir_str message, weir_str body), void* arg,
             weir_error* error) noexcept;
void Cancel(weir_door_client* client, uint64_t call) noexcept;
void Disconnect(weir_door_client* client) noexcept;

}  // namespace weir_grpc

#endif  // WEIR_PLUGINS_GRPC_BACKEND_CLIENT_H_
