#include "core/client/distributed/server.h"

#include <utility>

#include "core/base/errors.h"
#include "core/cluster/inherited.h"
#include "core/cluster/server.h"
#include "core/config/settings.h"
#include "core/config/sources.h"
#include "core/door/server.h"

namespace weir {
namespace {

constexpr std::chrono::milliseconds kTellLimit{10000};

Result<config::Config> WholeConfig(const config::Config& config) {
  WEIR_ASSIGN(const config::Loaded loaded, config::Load(config::Sources::OfProcess()));
  return config::Overlay(config, loaded.settings);
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Make(const ClusterSpec& cluster, const ServerArgs& args) {
  WEIR_ASSIGN(cluster::TaskName task, cluster::OwnTask(cluster, args.job_name, args.task_index));
  std::unique_ptr<Server> server(new Server(cluster, std::move(task), args.config));
  if (args.start) WEIR_TRY(server->Start());
  return server;
}

Result<std::unique_ptr<Server>> Server::CreateLocalServer(const ConfigProto& config, bool start) {
  WEIR_ASSIGN(const ClusterSpec alone, ClusterSpec::Make(std::map<std::string, std::vector<std::string>>{
                                           {"local", {"localhost:0"}}}));
  return Make(alone, {.config = config, .start = start});
}

Server::~Server() { static_cast<void>(Stop()); }  // steps that do not end are cut off

std::shared_ptr<cluster::Server> Server::running() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return server_;
}

std::string Server::target() const {
  const std::shared_ptr<cluster::Server> server = running();
  return server == nullptr ? std::string() : server->target();
}

Status Server::Start() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_) return FailedPrecondition("the server of {} was stopped", task_.ToString());
  if (server_ != nullptr) return Status();
  cluster::ServerOptions options;
  options.cluster = cluster_;
  options.task = task_;
  WEIR_ASSIGN(options.config, WholeConfig(config_));
  options.inherited_socket = cluster::TakeInheritedSocket();
  WEIR_ASSIGN(server_, door::StartServer(std::move(options)));
  return Status();
}

Status Server::Join() {
  const std::shared_ptr<cluster::Server> server = running();
  if (server == nullptr) return FailedPrecondition("the server of {} was not started", task_.ToString());
  server->Wait();
  return Status();
}

Status Server::Stop() {
  std::shared_ptr<cluster::Server> server;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    server = server_;
  }
  if (server == nullptr) return Status();
  const std::chrono::milliseconds limit(server->settings().drain_limit_ms.value());
  const Status status = server->Drain(cluster::Clock::now() + limit);
  server->Stop();
  return status;
}

Status Server::EndJob() {
  const std::shared_ptr<cluster::Server> server = running();
  if (server == nullptr) return FailedPrecondition("the server of {} was not started", task_.ToString());
  return server->EndJob(kTellLimit);
}

}  // namespace weir
