// The entry of the backend, and gRPC's log.
#include <grpc/support/log.h>

#include <cstring>
#include <string_view>

#include "plugins/grpc/backend/backend.h"
#include "plugins/grpc/backend/client.h"
#include "plugins/grpc/backend/server.h"

namespace weir_grpc {
namespace {

const weir_host* log_host = nullptr;  // set before gRPC starts

void Log(gpr_log_func_args* line) {
  const int32_t level = line->severity == GPR_LOG_SEVERITY_ERROR  ? WEIR_LOG_WARNING  // mostly of a peer
                        : line->severity == GPR_LOG_SEVERITY_INFO ? WEIR_LOG_INFO
                                                                  : WEIR_LOG_DEBUG;
  if (log_host->enabled(level) == 0) return;
  log_host->log(level, line->file, line->line, {line->message, std::strlen(line->message)});
}

constexpr weir_front_door_api kTable = {sizeof(weir_front_door_api),
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

}  // namespace
}  // namespace weir_grpc

extern "C" __attribute__((visibility("default"))) const weir_front_door_api* weir_grpc_backend(const weir_host* host) {
  if (host != nullptr) {
    weir_grpc::log_host = host;
    gpr_set_log_function(&weir_grpc::Log);
  }
  return &weir_grpc::kTable;
}
