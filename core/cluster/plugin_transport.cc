#include "core/cluster/plugin_transport.h"

#include <fmt/ranges.h>

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/cluster/negotiated_transport.h"
#include "core/cluster/remote_worker.h"
#include "core/cluster/wire_channel.h"
#include "core/cluster/worker_server.h"
#include "core/kernel/host.h"
#include "core/plugin/catalogue.h"

namespace weir::cluster {
namespace {

class PluginListener final : public Listener {
 public:
  PluginListener(kernel::TransportEntry transport, weir_listener* listener, std::shared_ptr<WorkerServer> server)
      : transport_(std::move(transport)),
        listener_(listener),
        address_(kernel::Text(transport_.api->address(listener))),
        server_(std::move(server)) {}
  ~PluginListener() override { Close(); }

  std::string address() const override { return address_; }
  Status Drain(Clock::time_point deadline) override {
    server_->BeginDrain();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (listener_ != nullptr) transport_.api->drain(listener_);
    }
    return server_->Drain(deadline);
  }
  void Close() override {
    weir_listener* closed = nullptr;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      closed = std::exchange(listener_, nullptr);
    }
    if (closed != nullptr) transport_.api->close(closed);
  }

 private:
  const kernel::TransportEntry transport_;
  std::mutex mutex_;  // protects listener_
  weir_listener* listener_;
  const std::string address_;
  const std::shared_ptr<WorkerServer> server_;
};

}  // namespace

std::string PluginTransport::scheme() const { return std::string(kernel::Text(entry_.api->scheme)); }

Result<std::unique_ptr<Listener>> PluginTransport::Listen(const Services& services, const ListenOptions& options,
                                                          std::vector<Alternate> alternates) {
  LocalEnd self = options.self;
  if (self.incarnation == 0) self.incarnation = RandomId();
  const auto server = std::make_shared<WorkerServer>(entry_, services, budget_, std::move(alternates),
                                                     WorkerServer::kAwayTimes * self.peer_timeout);
  const weir_service service = server->AsService();
  const weir_transport_end end = EndOf(self);
  weir_listener* made = nullptr;
  WEIR_TRY(kernel::CallPlugin("listen", [&](weir_error* error) {
    return entry_.api->listen(&end, &service, kernel::ViewOf(options.address), options.inherited_socket, &made, error);
  }));
  if (made == nullptr) return Internal("the transport '{}' made no listener", entry_.plugin);
  return std::unique_ptr<Listener>(std::make_unique<PluginListener>(entry_, made, server));
}

Result<std::shared_ptr<RemoteWorker>> PluginTransport::Connect(const TaskName& task, const std::string& address,
                                                               const LocalEnd& self) {
  WEIR_ASSIGN(std::shared_ptr<WireChannel> channel, WireChannel::Make(entry_, task, address, self));
  return std::make_shared<RemoteWorker>(task, std::move(channel), self.peer_timeout);
}

Result<std::shared_ptr<Worker>> PluginTransport::ConnectWorker(const TaskName& task, const std::string& address,
                                                               const LocalEnd& self) {
  return Connect(task, address, self);
}

Result<std::shared_ptr<MasterService>> PluginTransport::ConnectMaster(const std::string& address,
                                                                      const LocalEnd& self) {
  WEIR_ASSIGN(std::shared_ptr<WireChannel> channel, WireChannel::Make(entry_, TaskName(), address, self));
  return std::shared_ptr<MasterService>(std::make_shared<RemoteMaster>(std::move(channel)));
}

Status Transport::Renew(const LocalEnd&) {
  return Unimplemented("the transport '{}' takes another token and other certificates at its start only", scheme());
}

Status PluginTransport::Renew(const LocalEnd& self) {
  if (!WEIR_HAS(entry_.api, renew)) return Transport::Renew(self);
  const weir_transport_end end = EndOf(self);
  return kernel::CallPlugin("renew", [&](weir_error* error) { return entry_.api->renew(&end, error); });
}

std::shared_ptr<PluginTransport> MakeTransport(kernel::TransportEntry entry, std::shared_ptr<ByteBudget> budget) {
  return std::make_shared<PluginTransport>(std::move(entry), std::move(budget));
}

namespace {

Result<std::shared_ptr<PluginTransport>> FindOne(const plugin::Catalogue& plugins, std::string_view scheme) {
  std::vector<std::string> schemes;
  for (const kernel::TransportEntry& entry : plugins.transports()) {
    const std::string_view own = kernel::Text(entry.api->scheme);
    if (own == scheme) return MakeTransport(entry, ByteBudget::OfProcess());
    schemes.emplace_back(own);
  }
  const std::vector<std::string> absent = plugins.Absent();
  return NotFound("no plugin brings the transport '{}'; there {}: {}{}", scheme, schemes.size() == 1 ? "is" : "are",
                  schemes.empty() ? "none" : fmt::format("{}", fmt::join(schemes, ", ")),
                  absent.empty() ? "" : fmt::format("; not loaded: {}", fmt::join(absent, "; ")));
}

void LogNote(const std::string& text) {
  const weir_host& host = kernel::HostTable();
  host.log(WEIR_LOG_WARNING, __FILE__, __LINE__, kernel::ViewOf(text));
}

}  // namespace

Result<std::shared_ptr<Transport>> FindTransport(const plugin::Catalogue& plugins, std::string_view scheme,
                                                 const TransportNote& note) {
  const size_t last = scheme.rfind('+');
  if (last == std::string_view::npos) return FindOne(plugins, scheme);
  WEIR_ASSIGN(const std::shared_ptr<PluginTransport> base, FindOne(plugins, scheme.substr(last + 1)));
  const TransportNote tell = note ? note : TransportNote(&LogNote);
  std::vector<std::shared_ptr<PluginTransport>> preferred;
  for (size_t begin = 0; begin <= last;) {
    const size_t end = scheme.find('+', begin);
    Result<std::shared_ptr<PluginTransport>> one = FindOne(plugins, scheme.substr(begin, end - begin));
    if (one.ok()) {
      preferred.push_back(*std::move(one));
    } else {
      tell(fmt::format("{}; '{}' is used instead", one.status().message(), base->scheme()));
    }
    begin = end + 1;
  }
  if (preferred.empty()) return std::shared_ptr<Transport>(base);
  return MakeNegotiated(std::move(preferred), base, tell);
}

}  // namespace weir::cluster
