// A task of a cluster that other processes reach.
#ifndef WEIR_CORE_CLUSTER_SERVER_H_
#define WEIR_CORE_CLUSTER_SERVER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/cluster/cluster_spec.h"
#include "core/cluster/local_worker.h"
#include "core/cluster/transport.h"
#include "core/config/config.h"
#include "core/session/runtime.h"

namespace weir::cluster {

/// Finds the transport of a scheme; `runtime` has the plugins.
using TransportFinder =
    std::function<Result<std::shared_ptr<Transport>>(const std::string& scheme, const session::Runtime& runtime)>;

/// What a master needs of its server.
struct MasterParts {
  TaskName task;
  std::shared_ptr<session::Runtime> runtime;
  std::shared_ptr<const Workers> workers;  // all tasks, the own one among them
};
using MakeMaster = std::function<Result<std::shared_ptr<MasterService>>(const MasterParts& parts)>;

struct ServerOptions {
  ClusterSpec cluster;  // empty: the task alone
  TaskName task;
  config::Config config;        // the whole configuration; its `cluster` table counts where nothing is said here
  std::string listen = {};      // empty: cluster.listen, else the task's address, else a port of 127.0.0.1
  std::string grpc = {};        // empty: cluster.grpc, else none
  int inherited_socket = -1;    // a listening descriptor for `listen`
  TransportFinder find_transport = {};
  MakeMaster make_master = {};  // null: clients are refused
};

/// How a server sees another task.
struct PeerView {
  TaskName task;
  std::string address;
  Status status;  // of asking it for its status
  std::chrono::microseconds took{0};
  uint64_t incarnation = 0;
  bool draining = false;
};

/// What a server says of itself.
struct ServerView {
  TaskName task;
  std::string address, version;
  uint64_t incarnation = 0;
  int64_t clock_us = 0;  // since 1970
  bool draining = false;
  LocalWorker::Counts counts;
  int64_t seconds_up = 0;
  std::vector<std::string> devices;
  std::vector<PeerView> peers;  // without the own task; only if they were asked
};

/// What a server ran during a time, and the memory that it held at the end.
struct ServerProfile {
  std::string chrome_trace;        // of all steps that began in it
  int64_t parts = 0, dropped = 0;  // of steps: in the trace, and too many for it
  session::MemoryReport memory;
};

/// Listens from Start to Stop; clients open sessions here, other tasks run parts. Thread-safe.
class Server {
 public:
  /// Loads the devices and listens. Errors of the runtime, of the addresses and of the transport; NotFound if no
  /// transport of the scheme was loaded.
  static Result<std::unique_ptr<Server>> Start(ServerOptions options);
  /// As Stop.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const TaskName& task() const;
  /// "weir://host:port", with the actual port.
  const std::string& target() const;
  /// "grpc://host:port"; empty if TensorFlow's clients are not served.
  const std::string& grpc_target() const;
  const config::ClusterConfig& settings() const;
  LocalWorker& worker();
  /// For sessions of this process.
  std::shared_ptr<MasterService> master() const;

  /// What the server says of itself; with a limit also what its peers answer within it.
  ServerView View(std::chrono::milliseconds peer_limit = {}) const;

  /// New connections, from here and to here, use the token and the certificates that `settings` names, as its files are
  /// now; open ones stay. The first error of reading them, and Unimplemented of a transport that has to be restarted.
  Status Renew(const config::ClusterConfig& settings);
  /// Refuses new sessions and steps, and waits for those under way. DeadlineExceeded with their number.
  Status Drain(Clock::time_point deadline);
  /// Ends all sessions and frees the ports. Idempotent.
  void Stop();
  /// Returns after Stop, or once the job is done (ClusterConfig::exit_when_done); then true.
  bool Wait();
  /// `told` is called once, on any thread, when the job is done.
  void OnDone(std::function<void()> told);
  /// Tells all other tasks that the job is done: those with `exit_when_done` end. Returns the first error of a task
  /// that could not be told.
  Status EndJob(std::chrono::milliseconds limit);

 private:
  struct Core;
  class Front;
  explicit Server(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  const std::shared_ptr<Core> core_;
};

/// The end of connections from this process according to `config`, with the token of its file. InvalidArgument for a
/// file that others may read or that is empty; errors of reading it.
Result<LocalEnd> EndFrom(const config::ClusterConfig& config, const TaskName& task, uint64_t incarnation);

/// The devices that match one of the partial names; all without a name. InvalidArgument for a malformed one, NotFound
/// if none is left.
Result<std::shared_ptr<session::Runtime>> WithDevices(std::shared_ptr<session::Runtime> runtime,
                                                      const std::vector<std::string>& names);

/// The master of a server of this process at "scheme://host:port"; null if there is none.
std::shared_ptr<MasterService> MasterHere(std::string_view target);

/// Asks the server behind `master` for its view, with that of its peers if `peer_limit` is not 0. `padding` bytes go
/// both ways with it.
Result<ServerView> AskServer(MasterService& master, std::chrono::milliseconds peer_limit, Clock::time_point deadline,
                             size_t padding = 0);
/// Attaches to the server behind `master`: records what runs there during `time`, at most ten minutes.
/// FailedPrecondition while somebody else does.
Result<ServerProfile> ProfileServer(MasterService& master, std::chrono::milliseconds time, Clock::time_point deadline);
/// Whether messages that need several packets cross to a server that has answered, and back. The error of one that does
/// not is told with the usual reason.
Status TryLargeMessage(MasterService& master, Clock::time_point deadline);
/// Tells the server behind `master` that the job is done; true if it ends.
Result<bool> TellJobEnd(MasterService& master, Clock::time_point deadline);

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_SERVER_H_
