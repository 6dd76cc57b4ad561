#include <future>
#include <utility>

#include "core/base/errors.h"
#include "core/client/distributed/remote_session.h"
#include "core/cluster/remote_devices.h"
#include "core/cluster/server.h"
#include "core/config/config_proto.h"
#include "core/door/transports.h"
#include "core/proto/parse.h"
#include "core/session/options.h"
#include "weir/proto/master.pb.h"

namespace weir {
namespace {

/// A server that was named by a program.
struct NamedServer {
  std::shared_ptr<session::Runtime> runtime;
  std::shared_ptr<cluster::MasterService> master;
};

bool IsHere(const std::string& target) { return target.empty() || target == "local"; }

Result<NamedServer> FindServer(const std::string& target, const config::Config& config) {
  const size_t mark = target.find("://");
  if (mark == std::string::npos || mark == 0) {
    return NotFound("No session factory registered for the given session options: {{target: \"{}\"}}: wanted \"\", "
                    "\"local\", \"weir://host:port\" or \"grpc://host:port\"", target);
  }
  NamedServer server;
  WEIR_ASSIGN(server.runtime, session::Runtime::For(config));
  server.master = cluster::MasterHere(target);
  if (server.master != nullptr) return server;
  const std::string address = target.substr(mark + 3);
  if (const Status bad = cluster::CheckTaskAddress(address); !bad.ok()) return bad.Prepend(target + ": ");
  WEIR_ASSIGN(const auto transport, door::TransportOf(target.substr(0, mark), *server.runtime));
  static const uint64_t kIncarnation = cluster::RandomId();  // of this process
  WEIR_ASSIGN(const cluster::LocalEnd self, cluster::EndFrom(server.runtime->config.cluster, {}, kIncarnation));
  WEIR_ASSIGN(server.master, transport->ConnectMaster(address, self));
  return server;
}

}  // namespace

Result<std::unique_ptr<SessionInterface>> ConnectSession(Graph& graph, const std::string& target,
                                                         const config::Config& config) {
  if (IsHere(target)) {
    cluster::UseRemoteDevices();
    WEIR_ASSIGN(std::shared_ptr<session::Runtime> runtime, session::Runtime::For(config));
    session::SessionOptions options = session::SessionOptionsFrom(runtime->config);
    return InProcess(graph, std::move(options), std::move(runtime));
  }
  WEIR_ASSIGN(const NamedServer server, FindServer(target, config));
  const config::Config& whole = server.runtime->config;
  RemoteOptions options;
  options.target = target;
  WEIR_ASSIGN(options.config, config::WriteConfigProto(whole));
  options.operation_timeout_in_ms = whole.operation_timeout_in_ms;
  options.creation_limit = std::chrono::milliseconds(whole.cluster.creation_limit_ms.value());
  return MakeRemoteSession(graph, server.master, std::move(options));
}

Status ResetServer(const std::string& target, const std::vector<std::string>& containers,
                   const config::Config& config) {
  WEIR_ASSIGN(const NamedServer server, FindServer(target, config));
  tf::ResetRequest request;
  request.mutable_container()->Add(containers.begin(), containers.end());
  request.mutable_device_filters()->Add(config.device_filters.begin(), config.device_filters.end());
  cluster::MasterCall call;
  call.method = "Reset";
  WEIR_ASSIGN(call.request, proto::Serialize(request, "ResetRequest"));
  call.deadline = cluster::Clock::now() + std::chrono::milliseconds(server.runtime->config.cluster.creation_limit_ms);
  const auto answered = std::make_shared<std::promise<Status>>();
  std::future<Status> answer = answered->get_future();
  server.master->Call(std::move(call), cluster::MasterDone([answered](const Result<std::string>& result) {
                        answered->set_value(result.status());
                      }));
  return answer.get();
}

}  // namespace weir
