// The transports that plugins bring.
#ifndef WEIR_CORE_CLUSTER_PLUGIN_TRANSPORT_H_
#define WEIR_CORE_CLUSTER_PLUGIN_TRANSPORT_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/cluster/remote_worker.h"
#include "core/cluster/transport.h"
#include "core/cluster/wire_tensors.h"
#include "core/kernel/transport_entry.h"
#include "core/plugin/catalogue.h"

namespace weir::cluster {

/// Messages by a plugin.
class PluginTransport final : public Transport {
 public:
  PluginTransport(kernel::TransportEntry entry, std::shared_ptr<ByteBudget> budget)
      : entry_(std::move(entry)), budget_(std::move(budget)) {}

  std::string scheme() const override;
  Result<std::unique_ptr<Listener>> Listen(const Services& services, const ListenOptions& options) override {
    return Listen(services, options, {});
  }
  /// `alternates` are told to peers that ask.
  Result<std::unique_ptr<Listener>> Listen(const Services& services, const ListenOptions& options,
                                           std::vector<Alternate> alternates);
  Result<std::shared_ptr<Worker>> ConnectWorker(const TaskName& task, const std::string& address,
                                                const LocalEnd& self) override;
  Result<std::shared_ptr<RemoteWorker>> Connect(const TaskName& task, const std::string& address, const LocalEnd& self);
  Result<std::shared_ptr<MasterService>> ConnectMaster(const std::string& address, const LocalEnd& self) override;
  Status Renew(const LocalEnd& self) override;

 private:
  const kernel::TransportEntry entry_;
  const std::shared_ptr<ByteBudget> budget_;
};

/// Gets a line that says which transport is used and why. Null: lines go to the log.
using TransportNote = std::function<void(const std::string&)>;

/// The transport of a scheme among the loaded plugins. NotFound lists the schemes that there are, and the plugins that
/// could not be loaded. "rdma+weir": tasks meet by `weir`, the last of the list, and use the first one before it that
/// both have and that works; a note says so for each that is not used.
Result<std::shared_ptr<Transport>> FindTransport(const plugin::Catalogue& plugins, std::string_view scheme,
                                                 const TransportNote& note = nullptr);

/// A transport over a plugin's table. `budget` limits the bytes of requests that a listener holds.
std::shared_ptr<PluginTransport> MakeTransport(kernel::TransportEntry entry, std::shared_ptr<ByteBudget> budget);

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_PLUGIN_TRANSPORT_H_
