// Devices of other processes, as far as placement needs them.
#ifndef WEIR_CORE_DEVICE_STAND_IN_H_
#define WEIR_CORE_DEVICE_STAND_IN_H_

#include <memory>
#include <optional>

#include "core/device/device.h"
#include "sdk/abi/cost.h"

namespace weir::device {

/// What a placer knows of a device.
struct DeviceDescription {
  DeviceInfo info;
  std::optional<weir_profile> profile;
  std::optional<weir_link> to_host;  // from the device's memory to that of its process, if they are apart
};

/// Describes a device; reads its profile, which may open it.
DeviceDescription Describe(Device& device);

/// Figures of the network to a device's process, one way.
struct NetworkLink {
  double latency_ns = 50e3;
  double bytes_per_ns = 2;
  bool measured = false;
};

/// A device with these properties whose memory is apart from the host's. It is placed by cost like any other.
/// Allocations and copies fail, because its process runs its ops. Values between devices with the same
/// `DeviceInfo::elsewhere` take the links of that process.
std::shared_ptr<Device> MakeStandIn(const DeviceDescription& description, const NetworkLink& link = {});

}  // namespace weir::device

#endif  // WEIR_CORE_DEVICE_STAND_IN_H_
