// Devices of other processes among those of a runtime.
#ifndef WEIR_CORE_SESSION_REMOTE_DEVICES_H_
#define WEIR_CORE_SESSION_REMOTE_DEVICES_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace weir::session {

class Tasks;
struct Runtime;
struct SessionOptions;

/// A process that was asked for its devices.
struct RemoteServer {
  std::string address;
  Status status;  // why its devices are missing
  std::string task;  // the start of its devices' names here: "/job:remote/replica:0/task:0"
  double latency_us = 0, gbps = 0;  // of the link, one way, as measured
};

/// The processes behind a runtime's remote devices. Thread-safe.
class RemoteDevices {
 public:
  virtual ~RemoteDevices() = default;
  virtual const std::vector<RemoteServer>& servers() const = 0;
  /// Begins a session in each process that has devices here; they end with the result. `options` are those of the
  /// session and name its resources. Unavailable if a process was lost, Aborted if it was started anew.
  virtual Result<std::shared_ptr<Tasks>> Begin(const SessionOptions& options) = 0;
  /// False if Begin would fail, or if a process that did not answer does so now. Asks them.
  virtual bool UpToDate() = 0;
};

/// Makes of a runtime one that also has the devices that its configuration names (config::ClusterConfig). A process
/// that cannot be asked is noted, or an error if it is required.
using RemoteAttacher = std::function<Result<std::shared_ptr<Runtime>>(const std::shared_ptr<Runtime>& own)>;

/// Gives `options`, of a session of the runtime, the resources and tasks that it needs.
Status UseRemoteDevices(const Runtime& runtime, SessionOptions& options);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_REMOTE_DEVICES_H_
