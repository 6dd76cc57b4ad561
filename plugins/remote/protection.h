// What protects the connections of an end, and how it is renewed.
#ifndef WEIR_PLUGINS_REMOTE_PROTECTION_H_
#define WEIR_PLUGINS_REMOTE_PROTECTION_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "plugins/remote/tls.h"

namespace weir_remote {

struct Protection {
  std::string token;                      // empty = none
  std::shared_ptr<const TlsContext> tls;  // null = none
  bool any() const { return !token.empty() || tls != nullptr; }
};

/// The protection of a listener's or a channel's next connection. Thread-safe.
class Keyring {
 public:
  /// `incarnation`: of the process that listens or connects, for Renew.
  static std::shared_ptr<Keyring> Make(uint64_t incarnation, Protection protection);
  Protection current() const;
  /// Other machines reach the listener: it may not lose its protection.
  void Need();
  /// Sets the protection of all keyrings with this incarnation; open connections keep theirs. WEIR_FAILED_PRECONDITION
  /// if one of them needs a protection and there is none; then nothing has changed.
  static WireError Renew(uint64_t incarnation, const Protection& protection);

 private:
  explicit Keyring(Protection protection) : current_(std::move(protection)) {}
  mutable std::mutex mutex_;  // protects all below
  Protection current_;
  bool needed_ = false;
};

}  // namespace weir_remote

#endif  // WEIR_PLUGINS_REMOTE_PROTECTION_H_
