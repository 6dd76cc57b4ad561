// The registry of a job whose launcher gives ranks but no addresses: rank 0 collects them.
#ifndef WEIR_CORE_CLUSTER_RANKS_H_
#define WEIR_CORE_CLUSTER_RANKS_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/cluster/launch.h"
#include "core/cluster/transport.h"

namespace weir::cluster {

inline constexpr std::string_view kRegisterRank = "RegisterRank";

/// Collects the addresses of ranks 0 to size - 1; each call is answered when all are known. A rank that tells another
/// address before that has been restarted, and counts with the new one; afterwards it gets Aborted. Thread-safe.
class RankRegistry final : public MasterService {
 public:
  explicit RankRegistry(int size) : addresses_(static_cast<size_t>(size)) {}
  /// Calls of kRegisterRank; others are Unimplemented.
  void Call(MasterCall call, MasterDone done) override;
  void Register(int rank, const std::string& address, MasterDone done);
  /// Returns once all ranks are known. DeadlineExceeded with those that are missing.
  Result<std::vector<std::string>> Wait(Clock::time_point deadline);

 private:
  std::mutex mutex_;  // protects all below
  std::condition_variable changed_;
  std::vector<std::string> addresses_;  // by rank; empty = unknown
  size_t known_ = 0;
  std::vector<MasterDone> waiting_;
};

/// What a rank knows after it has met the others.
struct Ranks {
  ClusterSpec cluster;
  int socket = -1;  // the listening descriptor of this rank; the caller owns it
  std::unique_ptr<Listener> registry;  // of rank 0; late answers need it
};

/// Listens on a port that the system chooses, on the interface towards the registry, and meets the other ranks of
/// `launch`, which has a registry. `self`: of this process, for its connections. Unavailable if the registry is lost,
/// DeadlineExceeded if ranks are missing (of rank 0 with their numbers), FailedPrecondition if the registry's address
/// is taken, or beyond loopback and unprotected.
Result<Ranks> MeetRanks(Transport& transport, const Launch& launch, const Roles& roles, const LocalEnd& self,
                        Clock::time_point deadline);

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_RANKS_H_
