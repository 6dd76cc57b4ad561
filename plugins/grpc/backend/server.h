// A gRPC server whose calls are bytes.
#ifndef WEIR_PLUGINS_GRPC_BACKEND_SERVER_H_
#define WEIR_PLUGINS_GRPC_BACKEND_SERVER_H_

#include "sdk/abi/frontdoor.h"

namespace weir_grpc {

int32_t Serve(const weir_door_options* options, const weir_door_handler* handler, weir_door_server** server,
              weir_error* error) noexcept;
void Address(weir_door_server* server, void (*emit)(void* ctx, weir_str text), void* ctx) noexcept;
void Answer(weir_door_server* server, uint64_t call, int32_t code, weir_str message, weir_str body) noexcept;
void Refuse(weir_door_server* server) noexcept;
void Stop(weir_door_server* server) noexcept;
int32_t Renew(weir_door_server* server, const weir_door_options* options, weir_error* error) noexcept;

}  // namespace weir_grpc

#endif  // WEIR_PLUGINS_GRPC_BACKEND_SERVER_H_
