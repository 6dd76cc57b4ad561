// Credit, liveness and retries of a connection, and how its messages are waited for. Pure: the caller brings the time.
#ifndef WEIR_PLUGINS_REMOTE_FLOW_H_
#define WEIR_PLUGINS_REMOTE_FLOW_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "plugins/remote/wire_error.h"

namespace weir_remote {

struct CreditLimits {
  uint64_t stream_bytes = 4u << 20;
  uint64_t connection_bytes = 64u << 20;
};

/// The sender's side: what it may send before the receiver grants more.
class SendCredit {
 public:
  explicit SendCredit(CreditLimits limits = {}) : limits_(limits), connection_(limits.connection_bytes) {}

  /// As much of `wanted` as may be sent on the stream now; it counts as sent.
  uint64_t Take(uint32_t stream, uint64_t wanted) {
    const auto [left, fresh] = streams_.try_emplace(stream, limits_.stream_bytes);
    const uint64_t taken = std::min({wanted, left->second, connection_});
    left->second -= taken;
    connection_ -= taken;
    return taken;
  }
  /// The receiver has consumed bytes. WEIR_INVALID_ARGUMENT if they are more than were sent.
  WireError Grant(uint32_t stream, uint64_t bytes) {
    const auto found = streams_.find(stream);
    if (found == streams_.end() || bytes > limits_.stream_bytes - found->second) {
      return Malformed("a credit of " + std::to_string(bytes) + " bytes on stream " + std::to_string(stream) +
                       " exceeds what was sent");
    }
    found->second += bytes;
    connection_ += bytes;
    return {};
  }
  /// The stream has ended; what it sent counts as consumed.
  void End(uint32_t stream) {
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return;
    connection_ += limits_.stream_bytes - found->second;
    streams_.erase(found);
  }
  uint64_t connection_left() const { return connection_; }
  size_t streams() const { return streams_.size(); }

 private:
  const CreditLimits limits_;
  uint64_t connection_;
  std::map<uint32_t, uint64_t> streams_;  // bytes left
};

/// The receiver's side: refuses what exceeds the credit, and says when to grant more.
class ReceiveCredit {
 public:
  explicit ReceiveCredit(CreditLimits limits = {}) : limits_(limits) {}

  /// WEIR_RESOURCE_EXHAUSTED if the peer sent more than it was allowed.
  WireError Arrived(uint32_t stream, uint64_t bytes) {
    Held& held = streams_[stream];
    if (bytes > limits_.stream_bytes - held.bytes || bytes > limits_.connection_bytes - all_) {
      return {WEIR_RESOURCE_EXHAUSTED, std::to_string(bytes) + " bytes came on stream " + std::to_string(stream) +
                                           " beyond its credit"};
    }
    held.bytes += bytes;
    all_ += bytes;
    return {};
  }
  /// Bytes that arrived left this side's memory. The credit to send now, 0 = none yet: grants come in halves of a
  /// window, so that they are few.
  uint64_t Consumed(uint32_t stream, uint64_t bytes) {
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return 0;
    Held& held = found->second;
    held.consumed = std::min(held.consumed + bytes, held.bytes);
    if (held.consumed < limits_.stream_bytes / 2 && held.consumed < held.bytes) return 0;
    const uint64_t grant = held.consumed;
    held.bytes -= grant;
    all_ -= grant;
    held.consumed = 0;
    return grant;
  }
  void End(uint32_t stream) {
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return;
    all_ -= found->second.bytes;
    streams_.erase(found);
  }
  uint64_t held() const { return all_; }

 private:
  struct Held {
    uint64_t bytes = 0;     // arrived and not granted again
    uint64_t consumed = 0;  // of these
  };
  const CreditLimits limits_;
  std::map<uint32_t, Held> streams_;
  uint64_t all_ = 0;
};

struct LivenessLimits {
  std::chrono::milliseconds ping{1000}, suspect{3000}, dead{10000};
};

/// Whether the peer lives: any byte is life, a ping asks for one.
class Liveness {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class State : uint8_t { kAlive, kSuspect, kDead };

  explicit Liveness(Time now, LivenessLimits limits = {}) : limits_(limits), heard_(now), pinged_(now) {}

  void Heard(Time now) { heard_ = std::max(heard_, now); }
  State At(Time now) const {
    const auto silent = now - heard_;
    return silent >= limits_.dead ? State::kDead : silent >= limits_.suspect ? State::kSuspect : State::kAlive;
  }
  /// True if a ping is due; it counts as sent.
  bool TakePing(Time now) {
    if (now - pinged_ < limits_.ping) return false;
    pinged_ = now;
    return true;
  }
  /// When At or TakePing may change.
  Time Next() const { return std::min(pinged_ + limits_.ping, heard_ + limits_.dead); }

 private:
  const LivenessLimits limits_;
  Time heard_, pinged_;
};

/// Whether a thread that waits for messages looks for them for a while before it sleeps: only where the latest ones
/// have come that soon.
class Patience {
 public:
  using Time = std::chrono::nanoseconds;

  bool looks() const { return score_ >= kEnough; }
  /// A message came after so long; `most` is the longest time to look.
  void Came(Time waited, Time most) {
    score_ = waited <= most ? std::min(score_ + 1, kMost) : std::max(score_ - kLate, 0);
  }

 private:
  static constexpr int kEnough = 2, kMost = 4, kLate = 2;
  int score_ = 0;
};

/// The waits between attempts to connect: 50 ms, doubled to 2 s, each shortened at random by up to a half.
class Backoff {
 public:
  explicit Backoff(uint64_t seed) : random_(seed) {}
  std::chrono::milliseconds Next() {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    const auto base = static_cast<uint64_t>(wait_.count());
    const uint64_t wait = base - (random_ >> 33) % (base / 2 + 1);
    wait_ = std::min(wait_ * 2, std::chrono::milliseconds(2000));
    return std::chrono::milliseconds(wait);
  }
  void Reset() { wait_ = std::chrono::milliseconds(50); }

 private:
  std::chrono::milliseconds wait_{50};
  uint64_t random_;
};

}  // namespace weir_remote

#endif  // WEIR_PLUGINS_REMOTE_FLOW_H_
