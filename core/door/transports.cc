#include "core/door/transports.h"

#include <map>
#include <mutex>
#include <utility>

#include "core/cluster/plugin_transport.h"
#include "core/door/front_door.h"

namespace weir::door {
namespace {

/// What programs added.
class AddedTransports {
 public:
  static AddedTransports& Get() {
    static AddedTransports added;
    return added;
  }
  void Add(std::shared_ptr<cluster::Transport> transport) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::string scheme = transport->scheme();
    by_scheme_.insert_or_assign(scheme, std::move(transport));
  }
  void Remove(const std::string& scheme) {
    const std::lock_guard<std::mutex> lock(mutex_);
    by_scheme_.erase(scheme);
  }
  std::map<std::string, std::shared_ptr<cluster::Transport>> all() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return by_scheme_;
  }

 private:
  std::mutex mutex_;  // protects by_scheme_
  std::map<std::string, std::shared_ptr<cluster::Transport>> by_scheme_;
};

}  // namespace

void AddTransport(std::shared_ptr<cluster::Transport> transport) { AddedTransports::Get().Add(std::move(transport)); }

void RemoveTransport(const std::string& scheme) { AddedTransports::Get().Remove(scheme); }

Result<std::shared_ptr<cluster::Transport>> TransportOf(const std::string& scheme, const session::Runtime& runtime) {
  const std::map<std::string, std::shared_ptr<cluster::Transport>> added = AddedTransports::Get().all();
  if (const auto found = added.find(scheme); found != added.end()) return found->second;
  Result<std::shared_ptr<cluster::Transport>> brought = cluster::FindTransport(*runtime.plugins, scheme);
  if (brought.ok() || brought.status().code() != Code::kNotFound) return brought;
  Result<std::shared_ptr<cluster::Transport>> door = FrontDoor(*runtime.plugins, scheme);
  if (door.ok() || door.status().code() != Code::kNotFound) return door;
  return brought.status().Append("; " + door.status().message());
}

}  // namespace weir::door
