#include "core/client/graph/replica_device_setter.h"

#include <algorithm>
#include <memory>

#include "core/client/graph/scopes.h"
#include "core/device/device_name.h"
#include "core/scope/device_merge.h"

namespace weir {
namespace {

// Ops whose kernels own the state that workers share.
constexpr const char* kStateOps[] = {"Variable",
                                     "VariableV2",
                                     "VarHandleOp",
                                     "AutoReloadVariable",
                                     "MutableHashTable",
                                     "MutableHashTableV2",
                                     "MutableHashTableOfTensors",
                                     "MutableHashTableOfTensorsV2",
                                     "MutableDenseHashTable",
                                     "MutableDenseHashTableV2",
                                     "ResourceConditionalAccumulator",
                                     "BoostedTreesEnsembleResourceHandleOp",
                                     "BoostedTreesQuantileStreamResourceHandleOp",
                                     "DecisionTreeResource"};

/// The names were read before, and so was what the scopes of the operation say.
std::string Completed(const std::string& inner, const std::string& outer) {
  const Result<std::string> merged = scope::MergeDevices(inner, outer);
  return merged.ok() ? *merged : inner;
}

}  // namespace

Result<DeviceRequest> ReplicaDeviceSetter(const ReplicaDeviceOptions& options) {
  WEIR_ASSIGN(const device::DeviceName ps, device::ParseDeviceName(options.ps_device));
  WEIR_TRY(device::ParseDeviceName(options.worker_device).status());
  ReplicaDeviceOptions chosen = options;
  if (options.cluster) {
    const auto job = options.cluster->find(ps.job.value_or(""));
    chosen.ps_tasks = job == options.cluster->end() ? 0 : static_cast<int>(job->second.size());
  }
  if (chosen.ps_tasks == 0) return DeviceRequest(std::nullopt);
  if (chosen.ps_ops.empty()) chosen.ps_ops.assign(std::begin(kStateOps), std::end(kStateOps));
  if (!chosen.ps_strategy) {
    chosen.ps_strategy = [next = std::make_shared<int>(0), tasks = chosen.ps_tasks](const Operation&) {
      return (*next)++ % tasks;
    };
  }
  return DeviceRequest([chosen, ps](const Operation& operation) {
    const std::string asked = operation.device();
    if (!chosen.merge_devices && !asked.empty()) return asked;
    const bool state = std::find(chosen.ps_ops.begin(), chosen.ps_ops.end(), operation.type()) != chosen.ps_ops.end();
    if (!state || chosen.ps_device.empty()) return Completed(asked, chosen.worker_device);
    device::DeviceName server = ps;
    const Result<device::DeviceName> inner = device::ParseDeviceName(asked);
    if (ps.job && inner.ok() && (!inner->job || inner->job == ps.job)) server.task = chosen.ps_strategy(operation);
    return Completed(asked, server.ToString());
  });
}

}  // namespace weir
