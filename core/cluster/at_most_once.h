// Refuses to run a request a second time.
#ifndef WEIR_CORE_CLUSTER_AT_MOST_ONCE_H_
#define WEIR_CORE_CLUSTER_AT_MOST_ONCE_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <utility>

namespace weir::cluster {

/// The requests of one session, by ids that its master numbers upwards, with the replies of the latest. An id older
/// than the kept replies counts as seen. Not thread-safe.
template <class Reply>
class AtMostOnce {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Limits {
    size_t replies = 1000;
    std::chrono::milliseconds age{60000};
  };
  /// kRun: the id is new, and the caller runs the request. kRunning: it is being run. kReplied: it ran, and its reply
  /// is known. kRefused: it ran, or may have, and its reply is gone.
  enum class Verdict : uint8_t { kRun, kRunning, kReplied, kRefused };

  explicit AtMostOnce(Limits limits = {}) : limits_(limits) {}

  /// `reply` (may be null) is set for kReplied.
  Verdict Begin(uint64_t id, Time now, Reply* reply = nullptr) {
    Forget(now);
    const auto found = requests_.find(id);
    if (found == requests_.end()) {
      if (id <= forgotten_) return Verdict::kRefused;
      requests_.emplace(id, Request());
      return Verdict::kRun;
    }
    if (!found->second.ended) return Verdict::kRunning;
    if (reply != nullptr) *reply = found->second.reply;
    return Verdict::kReplied;
  }

  /// Keeps the reply of a request that Begin let run.
  void End(uint64_t id, Reply reply, Time now) {
    const auto found = requests_.find(id);
    if (found == requests_.end() || found->second.ended) return;
    found->second = {std::move(reply), now, true};
    ++ended_;
    Forget(now);
  }

  size_t kept() const { return ended_; }
  size_t running() const { return requests_.size() - ended_; }

 private:
  struct Request {
    Reply reply = {};
    Time at = {};
    bool ended = false;
  };

  /// Drops replies that are too old or too many, lowest ids first. Those of requests behind a running one stay as long
  /// as the limits allow.
  void Forget(Time now) {
    for (auto it = requests_.begin(); it != requests_.end();) {
      const bool old = it->second.ended && (ended_ > limits_.replies || now - it->second.at > limits_.age);
      if (!it->second.ended) {
        ++it;
        continue;
      }
      if (!old) return;
      forgotten_ = std::max(forgotten_, it->first);
      it = requests_.erase(it);
      --ended_;
    }
  }

  const Limits limits_;
  std::map<uint64_t, Request> requests_;
  size_t ended_ = 0;
  uint64_t forgotten_ = 0;  // ids up to this one that are not in requests_ count as seen
};

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_AT_MOST_ONCE_H_
