#include "core/scope/device_merge.h"

#include "core/device/device_name.h"

namespace weir::scope {

Result<std::string> MergeDevices(std::string_view inner, std::string_view outer) {
  WEIR_ASSIGN(device::DeviceName merged, device::ParseDeviceName(inner));
  WEIR_ASSIGN(const device::DeviceName rest, device::ParseDeviceName(outer));
  if (!merged.job) merged.job = rest.job;
  if (!merged.replica) merged.replica = rest.replica;
  if (!merged.task) merged.task = rest.task;
  if (!merged.type) merged.type = rest.type;
  if (!merged.id) merged.id = rest.id;
  return merged.ToString();
}

}  // namespace weir::scope
