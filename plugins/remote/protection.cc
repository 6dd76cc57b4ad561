#include "plugins/remote/protection.h"

#include <map>
#include <vector>

namespace weir_remote {
namespace {

/// All keyrings by incarnation. Never destroyed: connections of other threads may end late.
struct Keyrings {
  static Keyrings& Get() {
    static Keyrings* const all = new Keyrings;
    return *all;
  }
  std::mutex mutex;  // protects by_incarnation
  std::multimap<uint64_t, std::weak_ptr<Keyring>> by_incarnation;
};

}  // namespace

std::shared_ptr<Keyring> Keyring::Make(uint64_t incarnation, Protection protection) {
  std::shared_ptr<Keyring> made(new Keyring(std::move(protection)));
  Keyrings& all = Keyrings::Get();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::erase_if(all.by_incarnation, [](const auto& one) { return one.second.expired(); });
  all.by_incarnation.emplace(incarnation, made);
  return made;
}

Protection Keyring::current() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return current_;
}

void Keyring::Need() {
  const std::lock_guard<std::mutex> lock(mutex_);
  needed_ = true;
}

WireError Keyring::Renew(uint64_t incarnation, const Protection& protection) {
  Keyrings& all = Keyrings::Get();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::vector<std::shared_ptr<Keyring>> renewed;
  const auto [begin, end] = all.by_incarnation.equal_range(incarnation);
  for (auto at = begin; at != end; ++at) {
    const std::shared_ptr<Keyring> one = at->second.lock();
    if (!one) continue;
    const std::lock_guard<std::mutex> own(one->mutex_);
    if (one->needed_ && !protection.any()) {
      return {WEIR_FAILED_PRECONDITION,
              "other machines reach this listener, and neither a token nor TLS would protect it; the old ones stay"};
    }
    renewed.push_back(one);
  }
  for (const std::shared_ptr<Keyring>& one : renewed) {
    const std::lock_guard<std::mutex> own(one->mutex_);
    one->current_ = protection;
  }
  return {};
}

}  // namespace weir_remote
