// Devices for training with parameter servers.
#ifndef WEIR_CORE_CLIENT_GRAPH_REPLICA_DEVICE_SETTER_H_
#define WEIR_CORE_CLIENT_GRAPH_REPLICA_DEVICE_SETTER_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/client/graph/scopes.h"

namespace weir {

/// TensorFlow's arguments and defaults.
struct ReplicaDeviceOptions {
  int ps_tasks = 0;  // `cluster`, when given, says how many instead
  std::string ps_device = "/job:ps";
  std::string worker_device = "/job:worker";
  /// False: an operation for which an inner scope asks for a device gets that one alone.
  bool merge_devices = true;
  /// Job -> addresses of its tasks.
  std::optional<std::map<std::string, std::vector<std::string>>> cluster = {};
  /// Op types that go to parameter servers; empty = those that hold state.
  std::vector<std::string> ps_ops = {};
  /// The task of an operation that goes to a parameter server; empty = one after the other.
  std::function<int(const Operation&)> ps_strategy = {};
};

/// For a DeviceScope. Operations of `ps_ops` get `ps_device` with a task, unless inner scopes ask for another job;
/// others get `worker_device`. What inner scopes ask for wins, part by part. Without parameter servers (no task, or a
/// cluster without the job of `ps_device`) it is DeviceRequest(std::nullopt), as TensorFlow's returns None.
/// InvalidArgument for a device name that cannot be read.
Result<DeviceRequest> ReplicaDeviceSetter(const ReplicaDeviceOptions& options = {});

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_GRAPH_REPLICA_DEVICE_SETTER_H_
