#include "core/op/vendor_ops.h"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "core/base/errors.h"

namespace weir::op {
namespace {

struct VendorOp {
  const OpDef* def = nullptr;
  std::string owner;
};
using VendorOpsByName = std::map<std::string, VendorOp, std::less<>>;

/// Readers use the latest map without a lock; maps are replaced, never changed.
struct VendorOps {
  std::mutex mutex;  // serializes writers, protects all below but `latest`
  std::vector<std::unique_ptr<const OpRegistry>> registries;
  std::vector<std::unique_ptr<const VendorOpsByName>> maps;
  std::atomic<const VendorOpsByName*> latest{nullptr};
  std::atomic<bool> loader_set{false};
  std::atomic<void (*)()> load{nullptr};
};

VendorOps& Vendors() {
  static auto* const vendors = new VendorOps;  // never destroyed: graphs refer to the definitions
  return *vendors;
}

}  // namespace

Status AddVendorOp(const OpDef* op, std::unique_ptr<const OpRegistry> keeps, std::string owner) {
  VendorOps& vendors = Vendors();
  const std::lock_guard lock(vendors.mutex);
  const VendorOpsByName* const before = vendors.latest.load(std::memory_order_acquire);
  auto next = before != nullptr ? std::make_unique<VendorOpsByName>(*before) : std::make_unique<VendorOpsByName>();
  const auto [at, added] = next->try_emplace(op->name, VendorOp{op, std::move(owner)});
  if (!added) return AlreadyExists("op '{}': plugin '{}' has brought one", op->name, at->second.owner);
  vendors.latest.store(next.get(), std::memory_order_release);
  vendors.maps.push_back(std::move(next));
  vendors.registries.push_back(std::move(keeps));
  return {};
}

const OpDef* FindVendorOp(std::string_view name) {
  const VendorOpsByName* const all = Vendors().latest.load(std::memory_order_acquire);
  if (all == nullptr) return nullptr;
  const auto found = all->find(name);
  return found == all->end() ? nullptr : found->second.def;
}

std::vector<const OpDef*> AllVendorOps() {
  std::vector<const OpDef*> ops;
  const VendorOpsByName* const all = Vendors().latest.load(std::memory_order_acquire);
  if (all == nullptr) return ops;
  for (const auto& [name, op] : *all) ops.push_back(op.def);
  return ops;
}

std::string_view OwnerOfOp(std::string_view name) {
  const VendorOpsByName* const all = Vendors().latest.load(std::memory_order_acquire);
  const auto found = all == nullptr ? VendorOpsByName::const_iterator() : all->find(name);
  return all == nullptr || found == all->end() ? std::string_view() : std::string_view(found->second.owner);
}

void SetVendorOpLoader(void (*load)()) {
  void (*none)() = nullptr;
  VendorOps& vendors = Vendors();
  if (!vendors.loader_set.exchange(true)) vendors.load.compare_exchange_strong(none, load);
}

const OpDef* FindOrLoad(const OpRegistry& ops, std::string_view name) {
  if (const OpDef* const known = ops.Find(name)) return known;
  void (*const load)() = Vendors().load.exchange(nullptr);
  if (load == nullptr) return nullptr;
  load();
  return ops.Find(name);
}

}  // namespace weir::op
