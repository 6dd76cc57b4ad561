// The entry of grpc: the table of frontdoor/1. Its functions are those of the backend, which is loaded when the first
// server or client is made: processes without one do not load gRPC.
#include "sdk/cpp/plugin.h"

#include <string>
#include <string_view>

#include "plugins/grpc/backend/backend.h"
#include "sdk/abi/frontdoor.h"
#include "sdk/cpp/late_part.h"

namespace weir_grpc {
namespace {

struct Loaded {
  const weir_front_door_api* api = nullptr;
  std::string why;
};

Loaded Load() {
  const weir::sdk::LatePart part = weir::sdk::LoadLatePart(reinterpret_cast<const void*>(&Load), "grpc/backend.so",
                                                           WEIR_GRPC_BACKEND_SYMBOL);
  if (part.symbol == nullptr) return {nullptr, part.why};
  const weir_front_door_api* const api = reinterpret_cast<BackendFn>(part.symbol)(weir::sdk::HostTable());
  if (api == nullptr || api->struct_size != sizeof *api) return {nullptr, "grpc/backend.so is not of this build"};
  return {api, ""};
}

const Loaded& Backend() {
  static const Loaded loaded = Load();
  return loaded;
}

int32_t Serve(const weir_door_options* options, const weir_door_handler* handler, weir_door_server** server,
              weir_error* error) {
  return weir::sdk::Guard(error, [&] {
    const Loaded& backend = Backend();
    if (backend.api == nullptr) return weir::sdk::Error(error).Fail(WEIR_FAILED_PRECONDITION, backend.why);
    return backend.api->serve(options, handler, server, error);
  });
}

int32_t Connect(const weir_door_options* options, weir_door_client** client, weir_error* error) {
  return weir::sdk::Guard(error, [&] {
    const Loaded& backend = Backend();
    if (backend.api == nullptr) return weir::sdk::Error(error).Fail(WEIR_FAILED_PRECONDITION, backend.why);
    return backend.api->connect(options, client, error);
  });
}

// A server or client exists for these, so that the backend is loaded.
void Address(weir_door_server* server, void (*emit)(void* ctx, weir_str text), void* ctx) {
  Backend().api->address(server, emit, ctx);
}
void Answer(weir_door_server* server, uint64_t call, int32_t code, weir_str message, weir_str body) {
  Backend().api->answer(server, call, code, message, body);
}
void Refuse(weir_door_server* server) { Backend().api->refuse(server); }
void Stop(weir_door_server* server) { Backend().api->stop(server); }
int32_t Call(weir_door_client* client, uint64_t call, const weir_door_request* request,
             void (*done)(void* arg, int32_t code, weir_str message, weir_str body), void* arg, weir_error* error) {
  return Backend().api->call(client, call, request, done, arg, error);
}
void Cancel(weir_door_client* client, uint64_t call) { Backend().api->cancel(client, call); }
void Disconnect(weir_door_client* client) { Backend().api->disconnect(client); }
int32_t Renew(weir_door_server* server, const weir_door_options* options, weir_error* error) {
  return Backend().api->renew(server, options, error);
}

constexpr weir_front_door_api kApi = {sizeof(weir_front_door_api),
                                      0,
                                      {"grpc", 4},
                                      &Serve,
                                      &Address,
                                      &Answer,
                                      &Refuse,
                                      &Stop,
                                      &Connect,
                                      &Call,
                                      &Cancel,
                                      &Disconnect,
                                      &Renew};

/// A part of WEIR_PLUGIN: the table of frontdoor/1.
struct Door {
  static constexpr uint32_t kKind = WEIR_KIND_FRONT_DOOR;
  static const void* Interface(std::string_view id, std::string_view) {
    return id == WEIR_FRONT_DOOR_INTERFACE ? &kApi : nullptr;
  }
};

}  // namespace
}  // namespace weir_grpc

WEIR_PLUGIN("grpc", "0.1.0", "weir", "", weir_grpc::Door)
