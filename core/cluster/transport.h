// How the processes of a cluster reach one another.
#ifndef WEIR_CORE_CLUSTER_TRANSPORT_H_
#define WEIR_CORE_CLUSTER_TRANSPORT_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/cluster/worker.h"
#include "core/runtime/cancellation.h"
#include "core/runtime/completion.h"
#include "core/runtime/wait_help.h"

namespace weir::cluster {

/// A call of TensorFlow's MasterService.
struct MasterCall {
  std::string method;   // "RunStep", "CreateSession", …
  std::string request;  // the serialized request
  Clock::time_point deadline = Clock::time_point::max();
  std::string peer;  // host of the caller, for messages; empty within a process
  /// Cancelled when the caller gives up or its connection ends; may be null.
  std::shared_ptr<runtime::Cancellation> cancellation;
  bool on_this_thread = false;  // a master of this process may answer before Call returns
};
/// Gets the serialized response.
using MasterDone = runtime::OneShot<std::string>;

/// Opens sessions and runs steps for clients in other processes. A server implements it with its sessions, a client
/// with a connection. Thread-safe; `done` is called on any thread, by the deadline or the limit for cancellation after
/// it.
class MasterService {
 public:
  virtual ~MasterService() = default;
  virtual void Call(MasterCall call, MasterDone done) = 0;
  /// For a thread that waits for a response; null: nothing helps. Valid as long as the service.
  virtual const runtime::WaitHelp* help() const { return nullptr; }
  /// True if steps have taken so little time that another thread is not worth it: MasterCall::on_this_thread.
  virtual bool StepsAreShort() const { return false; }
};

/// What both sides of a connection must agree upon, and what protects it.
struct Security {
  std::string token;  // a shared secret; empty = none
  std::string tls_certificate, tls_key, tls_authorities;  // PEM files; empty = no TLS
  bool insecure_listen = false;  // listen beyond loopback without a token and TLS
};

/// The process that connects or listens.
struct LocalEnd {
  TaskName task;  // an empty job = a client that is no task
  uint64_t incarnation = 0;  // of the task, or of the client
  std::string cluster_id;  // equal in all processes of a cluster; empty = not compared
  Security security;
  std::chrono::milliseconds peer_timeout{10000};  // silence after which a peer counts as lost
  bool socket_only = false;  // no shared memory with processes of this machine
};

/// What a listener offers; null = calls of that kind are refused with Unimplemented.
struct Services {
  std::shared_ptr<Worker> worker;
  std::shared_ptr<MasterService> master;
};

struct ListenOptions {
  std::string address;  // "host:port"; port 0 = the system chooses
  int inherited_socket = -1;  // a listening descriptor to use instead of `address`; the listener owns it
  LocalEnd self;
};

/// Accepts connections until it is closed or destroyed.
class Listener {
 public:
  virtual ~Listener() = default;
  /// "host:port" with the actual port.
  virtual std::string address() const = 0;
  /// Tells peers that no new calls are accepted and waits for those under way. DeadlineExceeded with their number.
  virtual Status Drain(Clock::time_point deadline) = 0;
  /// Ends all connections; waits for its threads.
  virtual void Close() = 0;
};

/// A way to reach other processes: a protocol that a plugin speaks. Thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;
  /// "weir", "grpc": the scheme of its targets.
  virtual std::string scheme() const = 0;
  /// InvalidArgument for an address that cannot be parsed or resolved; FailedPrecondition if it is taken, with its
  /// owner where known, or unprotected beyond loopback.
  virtual Result<std::unique_ptr<Listener>> Listen(const Services& services, const ListenOptions& options) = 0;
  /// A worker that connects on its first call, and again after a failure. Unimplemented where the protocol has none.
  virtual Result<std::shared_ptr<Worker>> ConnectWorker(const TaskName& task, const std::string& address,
                                                        const LocalEnd& self) = 0;
  /// Likewise a server's master.
  virtual Result<std::shared_ptr<MasterService>> ConnectMaster(const std::string& address, const LocalEnd& self) = 0;
  /// New connections of all ends with the incarnation of `self` use its security, whose files are read again; open ones
  /// stay. After an error nothing has changed; Unimplemented where only a restart helps.
  virtual Status Renew(const LocalEnd& self);
};

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_TRANSPORT_H_
