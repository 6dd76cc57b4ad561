// Serves a task and a master to other processes through a transport.
#ifndef WEIR_CORE_CLUSTER_WORKER_SERVER_H_
#define WEIR_CORE_CLUSTER_WORKER_SERVER_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/transport.h"
#include "core/cluster/wire_channel.h"
#include "core/cluster/wire_tensors.h"
#include "core/cluster/worker_messages.h"
#include "core/kernel/transport_entry.h"
#include "core/runtime/timer.h"

namespace weir::cluster {

/// Decodes requests, calls the services, and replies. A request that came from a connection that ends is cancelled: its
/// step ends in this task, and a session that it held. The sessions of a master that was restarted end with the first
/// one of its successor; those of one that stays away, once it has had no connection for a time. Thread-safe.
class WorkerServer : public std::enable_shared_from_this<WorkerServer> {
 public:
  static constexpr uint64_t kMostRequestBytes = (uint64_t{1} << 31) - 1;  // of a graph or a call of the master
  static constexpr uint64_t kMostMeasureBytes = uint64_t{16} << 20;
  /// How many times `peer_timeout` a master may be without a connection.
  static constexpr int kAwayTimes = 30;

  /// `alternates`: other transports of the same services, for peers that ask. `longest_away`: the time after which the
  /// sessions of a master without a connection end.
  WorkerServer(kernel::TransportEntry transport, Services services, std::shared_ptr<ByteBudget> budget,
               std::vector<Alternate> alternates = {},
               std::chrono::milliseconds longest_away = kAwayTimes * LocalEnd().peer_timeout)
      : transport_(std::move(transport)),
        help_(transport_),
        services_(std::move(services)),
        budget_(std::move(budget)),
        alternates_(std::move(alternates)),
        longest_away_(longest_away) {}

  /// For a listener of the transport, which keeps this server until it releases it.
  weir_service AsService();

  /// Refuses new sessions and steps with FailedPrecondition.
  void BeginDrain();
  /// Waits for steps and calls of the master under way. DeadlineExceeded with their number.
  Status Drain(Clock::time_point deadline);
  /// Requests that have begun and not ended, without those that only hold a session.
  size_t calls() const;
  /// Sessions whose masters have lost their connections.
  size_t away() const;

 private:
  struct Call;
  friend struct Call;

  Status Begin(weir_incoming* incoming, const weir_arrival& request, void** to, void** call);
  Status Admit(const WireRequest& request) const;
  static void Received(const std::shared_ptr<Call>& call);
  static void RunLater(const std::shared_ptr<Call>& call);
  static bool RunHere(const std::shared_ptr<Call>& call);
  static void Run(const std::shared_ptr<Call>& call);
  static WireReply Answer(Call& call);
  static void RunStep(const std::shared_ptr<Call>& call, bool here);
  static std::shared_ptr<const StepLink> LinkOf(const std::shared_ptr<Call>& call);
  static Status Told(const std::shared_ptr<Call>& call, const weir_arrival& message, const void* body);
  static void TakeTrace(const std::shared_ptr<Call>& call);
  static void RecvTensor(const std::shared_ptr<Call>& call);
  static void SendTensor(const std::shared_ptr<Call>& call);
  static void CallMaster(const std::shared_ptr<Call>& call, bool here);
  static void Cancel(const std::shared_ptr<Call>& call, const Status& why);
  void Ended(bool counted);
  /// Opens a session, after those that an earlier incarnation of its master has left.
  Status CreateSession(const Call& call);
  Status DeleteSession(uint64_t session);
  void Forget(uint64_t session);
  /// The master of a session holds it by this call, and does so no more.
  static void Keep(const std::shared_ptr<Call>& call);
  void Miss(const Call& call);
  /// Ends the sessions whose masters were away too long.
  void EndMissed();
  void WakeAt(Clock::time_point when);

  const kernel::TransportEntry transport_;
  const TransportHelp help_;
  const Services services_;
  const std::shared_ptr<ByteBudget> budget_;
  const std::vector<Alternate> alternates_;
  const std::chrono::milliseconds longest_away_;
  mutable std::mutex mutex_;  // protects all below
  std::condition_variable changed_;
  size_t calls_ = 0, working_ = 0;
  struct Kept {
    size_t holds = 0;
    Clock::time_point away_since = Clock::time_point::max();  // set while there was a hold and is none
  };
  /// Of a task whose master has sessions here.
  struct Owner {
    uint64_t incarnation = 0;
    std::map<uint64_t, Kept> sessions;
  };
  std::map<std::string, Owner, std::less<>> owners_;
  std::unique_ptr<runtime::Timer> ending_;  // set while a session may have to end
  bool draining_ = false;
};

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_WORKER_SERVER_H_
