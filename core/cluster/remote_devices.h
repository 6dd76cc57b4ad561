// Devices of other processes in sessions of this one, without a cluster.
#ifndef WEIR_CORE_CLUSTER_REMOTE_DEVICES_H_
#define WEIR_CORE_CLUSTER_REMOTE_DEVICES_H_

#include <functional>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/cluster/transport.h"
#include "core/device/stand_in.h"
#include "core/session/runtime.h"

namespace weir::cluster {

/// The job of remote devices in names: "/job:remote/replica:0/task:0/device:GPU:0". The task counts the servers.
inline constexpr char kRemoteJob[] = "remote";

/// From now on session::Runtime::For gives its runtimes the devices that their configuration names. Thread-safe, any
/// number of times.
void UseRemoteDevices();

/// A session::RemoteAttacher: asks the servers of `own->config.cluster` for their devices and kernels, all at once, and
/// measures the links to them. A server that fails is listed with the reason, or is the error if it is required.
/// Errors of the configuration and the transport as those of EndFrom and FindTransport.
Result<std::shared_ptr<session::Runtime>> AttachRemoteDevices(const std::shared_ptr<session::Runtime>& own);

/// The link to a worker: half the middle one of five round trips, and the rate of the larger of two bodies that can be
/// sent within the time. Errors of the connection.
Result<device::NetworkLink> MeasureLink(Worker& worker, Clock::time_point deadline);

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_REMOTE_DEVICES_H_
