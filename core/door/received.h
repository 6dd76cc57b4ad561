// Requests that were answered before, and replies that their callers did not get.
#ifndef WEIR_CORE_DOOR_RECEIVED_H_
#define WEIR_CORE_DOOR_RECEIVED_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

namespace weir::door {

/// The latest ids of requests, which clients draw at random. Thread-safe.
class ReceivedIds {
 public:
  explicit ReceivedIds(size_t most = 10000) : most_(most) {}
  /// False if the id is among the latest. 0 is no id and always new.
  bool Insert(int64_t id);

 private:
  const size_t most_;
  std::mutex mutex_;  // protects all below
  std::unordered_set<int64_t> ids_;
  std::deque<int64_t> order_;
};

/// Replies that could not be delivered because the connection broke. The client sends such a request again, and gets
/// the reply instead of a second run. Thread-safe.
class KeptReplies {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Limits {
    uint64_t bytes = 64u << 20;  // of requests and replies
    size_t replies = 1000;
    std::chrono::milliseconds age{60000};
  };
  explicit KeptReplies(Limits limits) : limits_(limits) {}

  /// Keeps the reply to a request of the host `peer`; drops the oldest ones beyond the limits. One that exceeds them
  /// alone is not kept.
  void Keep(std::string peer, std::string method, std::string request, std::string reply, Time now);
  /// The reply to an identical request from the same host; each is given once.
  std::optional<std::string> Take(std::string_view peer, std::string_view method, std::string_view request, Time now);
  size_t size() const;

 private:
  struct Kept {
    std::string peer, method, request, reply;
    Time at;
    uint64_t bytes() const { return peer.size() + method.size() + request.size() + reply.size(); }
  };
  void DropOldest();
  void Forget(Time now);

  const Limits limits_;
  mutable std::mutex mutex_;  // protects all below
  std::list<Kept> kept_;      // oldest first
  uint64_t bytes_ = 0;
};

}  // namespace weir::door

#endif  // WEIR_CORE_DOOR_RECEIVED_H_
